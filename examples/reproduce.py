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
`keras-ortho-data`, and timit-corpus with the corpus itself. Writes results/RUN.json for
each run, results/SECTION.png, and RESULTS.md; `--report` only rewrites the latter two,
and moves the records of UCR into results/ucr.csv.

`quick` takes a few minutes on two cores, and `standard` about a day. `full` adds every
preset with its paper's training length, on all data, and takes weeks. `--list` runs
nothing, and lists what is done and what is left. `--only` selects some of the runs.
`--jobs` executes several at once, each with its share of the cores;
`--scheduler` executes them on the workers of a Dask cluster. If two commands reach the
same run, one of them skips it.
"""

import argparse
import functools
import shutil
from collections.abc import Mapping
from pathlib import Path

from experiments.catalog import SETS, select
from experiments.engine import RunScript, run_all
from experiments.errors import plain_errors
from experiments.options import SCHEDULER
from experiments.records import brief, read_record
from experiments.report import write_report
from experiments.sections import Run
from experiments.standing import Folders, listing, standing
from keras_ortho.checks import check_count
from keras_ortho.files import remove_asides, replacing, write_json
from keras_ortho.locks import locked

HERE = Path(__file__).resolve().parent


@plain_errors()
def main() -> None:
    """Describes the existing records, executes the remaining runs, and reports."""
    options = parse()
    runs = [] if options.report else select(options.set, options.only)
    folders = Folders(options.out / "results", options.work, options.data_dir)
    if options.list:
        print("\n".join(listing(runs, folders, options.fresh)))
    if runs:
        print("\n".join(standing(runs, folders, options.fresh)), flush=True)
    if options.list:
        return
    folders.results.mkdir(parents=True, exist_ok=True)
    write_report(options.out, gathered=options.report)
    left = [run for run in runs if not folders.is_done(run, options.fresh)]
    by_name = {run.name: run for run in left if run.has_data(folders.data)}
    make = functools.partial(carry_out, by_name, folders, options.fresh)
    places = {name: folders.work / name for name in by_name}
    failed = []
    for name, wrong in run_all(make, places, options.jobs, options.scheduler):
        if wrong:
            failed.append(f"Not done: {name}. {wrong}")
        else:
            write_report(options.out)
    for run in left:
        if run.name not in by_name:
            print(f"Left out for want of {run.data} in --data-dir: {run.name}")
    if failed:
        raise SystemExit("\n".join(failed))


def carry_out(
    runs: Mapping[str, Run], folders: Folders, fresh: bool, make: RunScript, name: str
) -> None:
    """Executes a run, and puts its results in place, the record last."""
    run = runs[name]
    with locked(folders.results, f".{name}.lock"):
        if folders.is_done(run, fresh):  # Another command has finished it.
            return
        folder = folders.work / name
        script = str(HERE / f"{run.script}.py")
        make([script, *run.options(folder, folders.data)], folder)
        for file, result in run.products.items():
            path = folders.results / result
            remove_asides(path)
            if run.table:
                write_json(path, brief(read_record(folder / file)), indent=None)
                continue
            with replacing(path) as aside:
                shutil.copyfile(folder / file, aside)


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
    add("--report", action="store_true", help="run nothing, only gather and report")
    options = parser.parse_args()
    if options.jobs is not None:
        check_count("--jobs", options.jobs)
    return options


if __name__ == "__main__":
    main()
