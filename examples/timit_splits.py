"""Trains and scores predictors of speech on several divisions of the speakers.

    python examples/timit_splits.py --corpus TIMIT --splits 3 --seeds 3 --out out/splits
    python examples/timit_splits.py --corpus TIMIT --out out/timit --models lstm scornn

With few speakers, the error depends more on who they are than on the network. For each
split, the speakers of a corpus are divided anew, and `timit.py`, which gets all other
options, is run once per seed. A single split, the default, is the one that
`keras-ortho-data` chooses: TIMIT's own, if the corpus includes the test part. If the
command is run again, it resumes.

Writes results.md, with means over the splits and the standard deviation over the seeds,
results.json and curves.png, and a folder for each run, such as split-0/seed-0.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.comparison import spread
from experiments.engine import plain_errors, run_python
from experiments.options import check_values
from experiments.records import check_record, read_record, run_record
from experiments.speech import LINEAR_2, mean_table
from experiments.tables import table
from keras_ortho.diagnostics import plot_curves
from keras_ortho.files import replacing, write_json

TIMIT = Path(__file__).resolve().with_name("timit.py")
RECORD, TABLE = "results.json", "results.md"
KEPT = ("started", "data", "results")
VALIDATION, TEST = "validation_valid_frame_mse", "valid_frame_mse"
# For each split, the records of its seeds.
Runs = Sequence[Sequence[Mapping[str, Any]]]


@plain_errors()
def main() -> None:
    """Prepares the splits, executes their runs, and writes the results."""
    options, others = parse()
    out, count = options.out, options.splits
    check_record(out, RECORD, "runs", [TABLE])
    runs: list[list[dict[str, Any]]] = []
    parts = []
    for split in range(count):
        folder = out / f"split-{split}"
        records, mode = str(folder / "records"), "auto" if count == 1 else "speakers"
        prepare = ["-m", "keras_ortho.data_prep", str(options.corpus), records]
        run_python([*prepare, "--splits", mode, "--seed", str(split)])
        runs.append([])
        for seed in range(options.seed, options.seed + options.seeds):
            own = folder / f"seed-{seed}"
            command = [str(TIMIT), "--records", records, "--out", str(own)]
            run_python([*command, "--seed", str(seed), *others])
            found = read_record(own / RECORD, [*KEPT, "curves"])
            runs[-1].append(found)
            kept = {name: found[name] for name in KEPT}
            parts.append({"split": split, "seed": seed, **kept})
    record = run_record(runs[0][0]["settings"] | vars(options))
    write_json(out / RECORD, {**record, "runs": parts})
    text = "\n".join([*table(*mean_table(runs)), "", *table(*by_split(runs))]) + "\n"
    with replacing(out / TABLE) as aside:
        aside.write_text(text, "utf-8")
    draw(out / "curves.png", runs)
    print(f"\n{text}\nTables and figure are in {out}")


def figures(runs: Runs, name: str, key: str) -> np.ndarray:
    """Returns a figure of a predictor for all seeds of each split."""
    return np.array([[r["results"][name][key] for r in seeds] for seeds in runs])


def by_split(runs: Runs) -> tuple[list[str], list[list[str]]]:
    """Makes the table of errors on each split, with deviations over the seeds."""
    rows = []
    for name in runs[0][0]["results"]:
        valid, tested = (figures(runs, name, key) for key in (VALIDATION, TEST))
        below = tested < figures(runs, LINEAR_2, TEST)
        pairs = zip(valid.tolist(), tested.tolist(), strict=True)
        cells = [spread(of_seeds) for pair in pairs for of_seeds in pair]
        rows.append([name, *cells, f"{below.sum()} of {below.size}"])
    titles = [
        f"{part} {i}" for i in range(len(runs)) for part in ("validation", "test")
    ]
    return ["MSE dB², valid frames", *titles, f"test below {LINEAR_2}"], rows


def draw(path: Path, runs: Runs) -> None:
    """Draws the median and range of validation errors minus those of `LINEAR_2`."""
    limits = figures(runs, LINEAR_2, VALIDATION)
    curves, bands = {}, {}
    for name in runs[0][0]["curves"]:
        found = np.array([[record["curves"][name] for record in of] for of in runs])
        less = (found - limits[:, :, None]).reshape(-1, found.shape[-1])
        curves[name] = np.median(less, axis=0)
        bands[name] = (less.min(axis=0), less.max(axis=0))
    plot_curves(
        path,
        curves,
        bands=bands,
        baselines={LINEAR_2: 0.0},
        ylabel="validation MSE, dB², less that of linear prediction",
    )


def parse(argv: Sequence[str] | None = None) -> tuple[argparse.Namespace, list[str]]:
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
    return options, others


if __name__ == "__main__":
    main()
