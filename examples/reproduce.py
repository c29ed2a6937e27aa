"""Runs the papers' experiments, and compares the results with the published ones.

    python examples/reproduce.py --set quick
    python examples/reproduce.py --set standard --data-dir DATA
    python examples/reproduce.py --set full --list

Each run is one of the other examples, in its own process. An interrupted run resumes,
and a finished run is not repeated. Records that came with the checkout count as
finished; the command begins by saying how many there are. With `--fresh` they are
retrained, and only the runs in the `--work` folder count as finished. `--out` writes
the results to another folder. Runs without data are skipped and named.

DATA holds the folders mnist, ucr, ptb and cifar10, timit with the output of
`keras-ortho-data`, and timit-corpus with the corpus itself. Writes RESULTS.md, and for
each of its sections results/SECTION.json with the records of its runs, or for UCR
results/ucr.csv, and results/SECTION.png; `--report` only writes RESULTS.md and figures.

`quick` takes a few minutes on two cores, and `standard` about a day. `full` adds every
preset with its paper's training length, on all data, and takes weeks. `--list` runs
nothing, and lists what is done and what is left. `--only` selects some of the runs.
`--jobs` executes several at once, each with its share of the cores;
`--scheduler` executes them on the workers of a Dask cluster. If two commands reach the
same run, one of them skips it.
"""

import argparse
import shutil
from pathlib import Path

from experiments.catalog import SETS, Run, select
from experiments.engine import RunScript, run_all
from experiments.errors import plain_errors
from experiments.options import SCHEDULER
from experiments.records import add_record, as_kept, read_record, read_records
from experiments.report import write_report
from keras_ortho.checks import check_count
from keras_ortho.files import replacing
from keras_ortho.locks import locked

HERE = Path(__file__).resolve().parent


@plain_errors()
def main() -> None:
    """Describes the existing records, executes the remaining runs, and reports."""
    options = parse()
    results = options.out / "results"
    runs = [] if options.report else select(options.set, options.only)
    left = {run.name: run for run in runs if not is_done(run, options)}
    if options.list:
        for run in runs:
            record = read_records(results / run.records).get(run.name)
            text = "to do" if run.has_data(options.data_dir) else f"needs {run.data}"
            if record and run.name not in left:
                text = f"recorded at {record['commit']}"
            print(f"{run.name}: {text}")
    if runs:
        print(
            f"{len(runs) - len(left)} of {len(runs)} runs have their record in "
            f"{results}; --fresh trains them anew, --out FOLDER leaves these alone.",
            flush=True,
        )
    if options.list:
        return
    results.mkdir(parents=True, exist_ok=True)
    write_report(options.out)
    places = {
        name: options.work / name
        for name, run in left.items()
        if run.has_data(options.data_dir)
    }

    def make(run: RunScript, name: str) -> None:
        carry_out(left[name], run, options)

    failed = []
    for name, wrong in run_all(make, places, options.jobs, options.scheduler):
        if wrong:
            failed.append(f"Not done: {name}. {wrong}")
        else:
            write_report(options.out)
    for name in left.keys() - places.keys():
        print(f"Left out for want of {left[name].data} in --data-dir: {name}")
    if failed:
        raise SystemExit("\n".join(failed))


def is_done(run: Run, options: argparse.Namespace) -> bool:
    """Whether a run has a record; with `--fresh`, that of its work folder."""
    path = options.out / "results" / run.records
    record = read_records(path).get(run.name)
    if record is None or not options.fresh:
        return record is not None
    made = options.work / run.name / run.record
    return made.exists() and as_kept(path, read_record(made)) == record


def carry_out(run: Run, make: RunScript, options: argparse.Namespace) -> None:
    """Executes a run, and puts its results in place, the record last."""
    results, folder = options.out / "results", options.work / run.name
    with locked(results, f".{run.name}.lock"):
        if is_done(run, options):  # Another command has finished it.
            return
        script = str(HERE / f"{run.script}.py")
        make([script, *run.options(folder, options.data_dir)], folder)
        for file, result in run.files.items():
            with replacing(results / result) as aside:
                shutil.copyfile(folder / file, aside)
        made = read_record(folder / run.record)
        add_record(results / run.records, run.name, made)


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
    options = parser.parse_args()
    if options.jobs is not None:
        check_count("--jobs", options.jobs)
    return options


if __name__ == "__main__":
    main()
