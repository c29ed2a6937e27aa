"""Runs the study behind the defaults of the layers: many short training runs.

    python examples/defaults.py --data-dir DATA --jobs 2
    python examples/defaults.py --only copying-200-scornn

Each run is one of the other examples, in its own process. An interrupted run resumes,
and a run whose row is in the table is not repeated. DATA holds the folders mnist, ucr,
and timit, which contains the output of `keras-ortho-data --splits speakers` for NLTK's
sample. Runs without data are skipped and named. Writes results/defaults.csv, with a row
added as each run ends, and the tables in results/defaults.md; `--report` only writes
these tables.

The whole study takes many hours; `--only` selects a part of it.
"""

import argparse
import functools
from collections.abc import Mapping
from pathlib import Path

from experiments.engine import RunScript, run_all
from experiments.errors import plain_errors
from experiments.options import SCHEDULER
from experiments.records import read_record
from experiments.study import Trial, finals, screen
from experiments.study_tables import add_row, outcome, read_rows, write_tables
from keras_ortho.checks import check_count
from keras_ortho.locks import locked

HERE = Path(__file__).resolve().parent


@plain_errors()
def main() -> None:
    """Executes the remaining runs, and writes the tables."""
    options = parse()
    table = options.out / "defaults.csv"
    trials = [] if options.report else list(dict.fromkeys([*screen(), *finals()]))
    if options.only:
        trials = [t for t in trials if t.name.startswith(tuple(options.only))]
        if not trials and not options.report:
            raise ValueError(
                f"--only must begin the name of a run. Received: {options.only}"
            )
    done = set(read_rows(table))
    left = {t.name: t for t in trials if t not in done}
    without = [t for t in left.values() if not t.run().has_data(options.data_dir)]
    for trial in without:
        print(f"Left out for want of {trial.run().data} in --data-dir: {trial.name}")
        del left[trial.name]
    print(f"{len(trials) - len(left)} of {len(trials)} are done or left out")
    options.out.mkdir(parents=True, exist_ok=True)
    make = functools.partial(carry_out, left, table, options)
    folders = {name: options.work / name for name in left}
    ended = run_all(make, folders, options.jobs, options.scheduler)
    failed = [f"Not done: {name}. {wrong}" for name, wrong in ended if wrong]
    write_tables(options.out / "defaults.md", read_rows(table))
    if failed:
        raise SystemExit("\n".join(failed))


def carry_out(
    trials: Mapping[str, Trial],
    table: Path,
    options: argparse.Namespace,
    make: RunScript,
    name: str,
) -> None:
    """Executes a trial, and adds its row to the table."""
    run, folder = trials[name].run(), options.work / name
    with locked(options.work, f".{name}.lock"):
        script = str(HERE / f"{run.script}.py")
        make([script, *run.options(folder, options.data_dir)], folder)
        add_row(table, outcome(trials[name], read_record(folder / "run.json")))


def parse() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", nargs="+", metavar="PREFIX", help="runs whose names begin so")
    add("--data-dir", type=Path, help="folder with mnist, ucr and timit")
    add("--out", type=Path, default=Path("results"), help="for the table (results)")
    add("--work", type=Path, default=Path("out/defaults"), help="(out/defaults)")
    add("--jobs", type=int, metavar="N", help="runs at once (1; on a cluster all)")
    add("--scheduler", metavar="ADDRESS", help=SCHEDULER)
    add("--report", action="store_true", help="run nothing, only tabulate")
    options = parser.parse_args()
    if options.jobs is not None:
        check_count("--jobs", options.jobs)
    return options


if __name__ == "__main__":
    main()
