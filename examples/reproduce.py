"""Runs the papers' experiments, and compares the results with the published ones.

    python examples/reproduce.py --set quick
    python examples/reproduce.py --set standard --data-dir DATA
    python examples/reproduce.py --set full --list

Each run is one of the other examples, in its own process. An interrupted run resumes;
one with a record, such as those of the checkout, is not repeated, but with `--fresh`.
Runs without data are skipped and named. DATA holds the folders mnist, ucr, ptb and
cifar10, timit with the output of `keras-ortho-data`, and timit-corpus with the corpus.
Writes RESULTS.md, and the records and figures of its sections to results/.

`quick` takes a few minutes on two cores, and `standard` about a day. `full` adds every
preset with its paper's training length, on all data, and takes weeks. `--jobs` executes
several at once, each with its share of the cores; `--scheduler` executes them on the
workers of a Dask cluster.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

from experiments.catalog import SETS, Run, select
from experiments.engine import RunScript, plain_errors, run_all
from experiments.options import SCHEDULER
from experiments.records import add_record, brief, read_record, read_records
from experiments.report import write_report
from keras_ortho.files import replacing

HERE = Path(__file__).resolve().parent


@plain_errors()
def main() -> None:
    """Describes the existing records, executes the remaining runs, and reports."""
    options = parse()
    results = options.out / "results"
    runs = [] if options.report else select(options.set, options.only)
    left = {run.name: run for run in runs if not is_done(run, options)}
    done = f"{len(runs) - len(left)} of {len(runs)} runs have their record in {results}"
    print(f"{done}; --fresh trains them anew, --out FOLDER leaves these alone.")
    if options.list:
        for run in runs:
            lacks = run.lacks(options.data_dir)
            text = f"needs {lacks}" if lacks else "to do"
            print(f"{run.name}: {text if run.name in left else 'recorded'}")
        return
    results.mkdir(parents=True, exist_ok=True)
    write_report(options.out)
    places = {
        name: options.work / name
        for name, run in left.items()
        if not run.lacks(options.data_dir)
    }

    def make(run_script: RunScript, name: str) -> None:
        """Executes a run, and puts its results in place, the record last."""
        run, folder = left[name], places[name]
        script = str(HERE / f"{run.section.example}.py")
        run_script([script, *run.options(folder, options.data_dir)], folder)
        for file, result in run.section.files.items():
            with replacing(results / result) as aside:
                shutil.copyfile(folder / file, aside)
        add_record(results / run.section.records, name, made_by(run, folder))

    failed = []
    for name, wrong in run_all(make, places, options.jobs, options.scheduler):
        if wrong:
            failed.append(f"Not done: {name}. {wrong}")
        else:
            write_report(options.out)
    for name in left.keys() - places.keys():
        print(f"Left out for want of {left[name].section.data} in --data-dir: {name}")
    if failed:
        raise SystemExit("\n".join(failed))


def is_done(run: Run, options: argparse.Namespace) -> bool:
    """Whether a run has a record; with `--fresh`, that of its work folder."""
    path = options.out / "results" / run.section.records
    record = read_records(path).get(run.name)
    if record is None or not options.fresh:
        return record is not None
    folder = options.work / run.name
    made = folder / run.section.record
    return made.exists() and made_by(run, folder) == record


def made_by(run: Run, folder: Path) -> dict[str, Any]:
    """Reads the record of a run as the results have it."""
    record = read_record(folder / run.section.record)
    return brief(record) if run.section.data_sets else record


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--set", choices=SETS, default="quick", help="(quick)")
    add("--only", nargs="+", metavar="PREFIX", help="runs whose names begin so")
    add("--data-dir", type=Path, help="folder with mnist, ucr, ptb, cifar10, timit...")
    add("--out", type=Path, default=Path(), help="for RESULTS.md and results (.)")
    add("--work", type=Path, default=Path("out/reproduce"), help="(out/reproduce)")
    add("--jobs", type=int, metavar="N", help="runs at once (1; on a cluster all)")
    add("--scheduler", metavar="ADDRESS", help=SCHEDULER)
    add("--fresh", action="store_true", help="also repeat what has a record")
    add("--list", action="store_true", help="run nothing, only list what is left to do")
    add("--report", action="store_true", help="run nothing, only report")
    return parser.parse_args()


if __name__ == "__main__":
    main()
