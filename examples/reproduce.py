"""Runs the papers' experiments, and writes what came out beside what was published.

    python examples/reproduce.py --set quick
    python examples/reproduce.py --set standard --data-dir DATA

Each run is one of the other examples, in a process of its own; one that was broken off
goes on, one that is done is not done again. What has no data is left out, and named.
DATA holds the folders mnist, ucr, ptb and cifar10, and timit with what `python -m
data_prep` wrote. Writes results/RUN.json for each run, results/SECTION.png, and
RESULTS.md; `--report` only writes the latter two anew.

`quick` takes some minutes on two cores, `standard` about ten hours, `full`, of the
papers' own lengths, weeks. `--only` takes a part; several parts may run at once.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from keras_ortho.experiments.options import plain_errors
from keras_ortho.experiments.reproduction import SETS, select, write_report
from keras_ortho.experiments.sections import Run
from keras_ortho.files import replacing

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Runs the command."""
    options = parse()
    with plain_errors():
        runs = [] if options.report else select(options.set, options.only)
    results = options.out / "results"
    results.mkdir(parents=True, exist_ok=True)
    missing = []
    for run in runs:
        record = results / f"{run.name}.json"
        if record.exists():
            continue
        if run.data and not (
            options.data_dir and (options.data_dir / run.data).exists()
        ):
            missing.append(run)
            continue
        print(f"\n{run.name}", flush=True)
        folder = options.work / run.name
        subprocess.run(command(run, folder, options.data_dir), check=True)
        for file, name in run.products.items():
            with replacing(results / name) as aside:
                shutil.copyfile(folder / file, aside)
        write_report(options.out)
    write_report(options.out)
    for run in missing:
        print(f"Left out for want of {run.data} in --data-dir: {run.name}")


def command(run: Run, folder: Path, data_dir: Path | None) -> list[str]:
    """Writes the command of a run.

    Args:
        run: The run.
        folder: Folder for its files.
        data_dir: Folder that holds the data sets.

    Returns:
        The command and its arguments.
    """
    script = str(HERE / f"{run.script}.py")
    arguments = [sys.executable, script, "--out", str(folder), *run.arguments]
    if run.data and data_dir:
        arguments += [run.data_option, str(data_dir / run.data)]
    if (folder / "run" / "settings.json").exists():
        arguments.append("--resume")
    return arguments


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--set", choices=SETS, default="quick", help="(quick)")
    add("--only", nargs="+", metavar="PREFIX", help="runs whose names begin so")
    add("--data-dir", type=Path, help="folder with mnist, ucr, ptb, cifar10, timit")
    add("--out", type=Path, default=Path(), help="for RESULTS.md and results (.)")
    add("--work", type=Path, default=Path("out/reproduce"), help="(out/reproduce)")
    add("--report", action="store_true", help="run nothing, only report")
    return parser.parse_args()


if __name__ == "__main__":
    main()
