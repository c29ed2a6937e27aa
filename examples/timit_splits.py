"""Trains and scores predictors of speech on several divisions of the speakers.

    python examples/timit_splits.py --corpus TIMIT --splits 3 --seeds 3 --out out/splits
    python examples/timit_splits.py --corpus TIMIT --out out/timit --models lstm scornn

With few speakers, the prediction error depends more on who they are than on the
network. For each split, this command divides the speakers of a corpus anew, prepares
the records, and runs `examples/timit.py` on them once per seed. It reports the means
over the splits, with the standard deviation over the seeds, and the error on each split
beside that of linear prediction. A single split, the default, is the one that
`keras-ortho-data` chooses: TIMIT's own, if the corpus includes the test part. All other
options are passed on to `examples/timit.py`. If the command is run again, it resumes.

Writes results.md, results.json and curves.png, and a folder for each run, such as
split-0/seed-0.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.comparison import spread
from experiments.errors import plain_errors, run_python
from experiments.options import check_values
from experiments.records import check_record, read_record
from experiments.speech import COLUMNS, LINEAR_2
from experiments.tables import table
from keras_ortho.diagnostics import plot_curves
from keras_ortho.files import read_json, replacing, write_json

HERE = Path(__file__).resolve().parent
RECORD, TABLE = "results.json", "results.md"
MODE = "division.json"
# Entries that differ from run to run.
OWN = ("settings", "started", "data", "results", "curves")
VALIDATION, TEST = "validation_valid_frame_mse", "valid_frame_mse"
# For each split, the records of its seeds.
Runs = Sequence[Sequence[Mapping[str, Any]]]


@plain_errors()
def main() -> None:
    """Prepares the splits, executes their runs, and writes the results."""
    options, others = parse()
    check_record(options.out, RECORD, "runs", [TABLE])
    runs = [
        [
            run(options.out, split, seed, others)
            for seed in range(options.seed, options.seed + options.seeds)
        ]
        for split in prepare(options)
    ]
    report(options, runs)


def prepare(options: argparse.Namespace) -> list[str]:
    """Makes the records of each split, and returns the names of the splits' folders."""
    if not options.corpus.is_dir():
        raise FileNotFoundError(
            f"--corpus must be a folder. Received: {options.corpus}"
        )
    names = [f"split-{number}" for number in range(options.splits)]
    mode = "auto" if options.splits == 1 else "speakers"
    written = options.out / MODE
    if written.exists() and read_json(written)["mode"] != mode:
        raise ValueError(
            "--out holds runs on another division of the speakers: give several "
            f"splits another folder than one. Received: {options.out}"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(written, {"mode": mode})
    for number, name in enumerate(names):
        command = ["-m", "keras_ortho.data_prep", str(options.corpus)]
        command += [str(options.out / name / "records"), "--splits", mode]
        run_python([*command, "--seed", str(number)])
    return names


def run(out: Path, split: str, seed: int, others: Sequence[str]) -> dict[str, Any]:
    """Trains and scores on a split from a seed, and returns the record."""
    folder = out / split / f"seed-{seed}"
    command = [str(HERE / "timit.py"), "--records", str(out / split / "records")]
    run_python([*command, "--seed", str(seed), "--out", str(folder), *others])
    return read_record(folder / RECORD, ["started", "data", "results", "curves"])


def report(options: argparse.Namespace, runs: Runs) -> None:
    """Prints the tables, and writes them, the figure and the record."""
    everything = [record for of_split in runs for record in of_split]
    first = everything[0]
    shared = {name: value for name, value in first.items() if name not in OWN}
    settings = {
        name: value
        for name, value in first["settings"].items()
        if name not in ("out", "records")
    }
    settings |= {"splits": options.splits, "seeds": options.seeds}
    parts = [
        {"split": split, "seed": record["settings"]["seed"]}
        | {name: record[name] for name in ("started", "data", "results")}
        for split, of_split in enumerate(runs)
        for record in of_split
    ]
    whole = shared | {"settings": settings, "runs": parts}
    write_json(options.out / RECORD, whole)
    text = "\n".join([*table(*means(runs)), "", *table(*by_split(runs))]) + "\n"
    with replacing(options.out / TABLE) as aside:
        aside.write_text(text, "utf-8")
    draw(options.out / "curves.png", runs)
    print(f"\n{text}\nTables and figure are in {options.out}")


def figures(runs: Runs, name: str, key: str) -> list[list[float]]:
    """Lists a figure of a predictor for all seeds of each split."""
    return [[record["results"][name][key] for record in seeds] for seeds in runs]


def means(runs: Runs) -> tuple[list[str], list[list[str]]]:
    """Makes the table of means over the splits, with deviations over the seeds."""
    scores = {key: title for key, title in COLUMNS.items() if key != "parameters"}
    rows = []
    for name, result in runs[0][0]["results"].items():
        cells = [name, f"{result['parameters']:,}"]
        for key in scores:
            seeds = zip(*figures(runs, name, key), strict=True)
            mean = spread([statistics.fmean(splits) for splits in seeds])
            cells.append(mean + unscored(runs, name, key))
        rows.append(cells)
    return ["test", "parameters", *scores.values()], rows


def unscored(runs: Runs, name: str, key: str) -> str:
    """Says how many utterances of all runs a mean leaves out, if any."""
    rows = [record["results"][name] for seeds in runs for record in seeds]
    without = sum(row["utterances_without_a_score"].get(key, 0) for row in rows)
    scored = sum(row["utterances"] for row in rows)
    return f" ({without} of {scored} not scored)" if without else ""


def by_split(runs: Runs) -> tuple[list[str], list[list[str]]]:
    """Makes the table of errors on each split, with deviations over the seeds.

    The last column counts the runs whose test error is below that of linear prediction
    from two frames.
    """
    limits = figures(runs, LINEAR_2, TEST)
    rows = []
    for name in runs[0][0]["results"]:
        tested = figures(runs, name, TEST)
        pairs = zip(figures(runs, name, VALIDATION), tested, strict=True)
        below = np.less(tested, limits)
        rows.append(
            [
                name,
                *(spread(values) for pair in pairs for values in pair),
                f"{below.sum()} of {below.size}",
            ]
        )
    titles = [
        f"{part} {i}" for i in range(len(runs)) for part in ("validation", "test")
    ]
    return ["MSE dB², valid frames", *titles, f"test below {LINEAR_2}"], rows


def draw(path: Path, runs: Runs) -> None:
    """Draws the validation error of each epoch minus that of linear prediction.

    The line is the median of all runs; the band spans their minimum and maximum.
    """
    limits = figures(runs, LINEAR_2, VALIDATION)
    curves, bands = {}, {}
    for name in runs[0][0]["curves"]:
        found = np.array([[record["curves"][name] for record in of] for of in runs])
        less = (found - np.array(limits)[:, :, None]).reshape(-1, found.shape[-1])
        curves[name] = np.median(less, axis=0)
        bands[name] = (less.min(axis=0), less.max(axis=0))
    plot_curves(
        path,
        curves,
        bands=bands,
        baselines={LINEAR_2: 0.0},
        ylabel="validation MSE, dB², less that of linear prediction",
    )


def parse(
    argv: Sequence[str] | None = None,
) -> tuple[argparse.Namespace, list[str]]:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--corpus", type=Path, required=True, help="a copy of TIMIT")
    add("--out", type=Path, required=True, help="folder for the results")
    add("--splits", type=int, default=1, help="divisions of the speakers (1)")
    add("--seeds", type=int, default=3, help="runs on each (3)")
    add("--seed", type=int, default=0, help="the first of them (0)")
    options, others = parser.parse_known_args(argv)
    check_values(options, "speech")
    for option in ("--records", "--smoke"):
        if any(word.partition("=")[0] == option for word in others):
            raise ValueError(f"The records are made here: no {option}. Received: it")
    return options, others


if __name__ == "__main__":
    main()
