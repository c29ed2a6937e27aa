"""The command line of a task: one run of the example that trains, or several seeds."""

import argparse
import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from experiments.comparison import write_comparison
from experiments.engine import RunScript, plain_errors, run_all
from experiments.options import Settings, read_task
from experiments.records import read_record
from experiments.runs import RECORD
from keras_ortho.files import locked


def command(task: str) -> Callable[[Callable[[Settings], None]], Callable[[], None]]:
    """Makes a command from a function that builds and trains a network.

    With `--seeds`, it runs once for each seed, each time in its own process.
    """

    def decorate(main: Callable[[Settings], None]) -> Callable[[], None]:
        @functools.wraps(main)
        @plain_errors()
        def run() -> None:
            settings = read_task(task, inspect.getdoc(inspect.getmodule(main)) or "")
            if settings.seeds is None:
                main(settings)
                write_comparison(settings.out, [read_record(settings.out / RECORD)])
            else:
                run_seeds(Path(inspect.getfile(main)), settings)

        return run

    return decorate


def run_seeds(script: Path, settings: Settings) -> None:
    """Runs a script from each seed, in folders `seed-0` and so on, and compares."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--resume", action="store_true")
    # Each run has its own, or none.
    for option in ("--seeds", "--jobs", "--scheduler", "--seed", "--out"):
        parser.add_argument(option)
    given = parser.parse_known_args(sys.argv[1:])[1]
    seeds = range(settings.seed, settings.seed + settings.seeds)
    folders = {f"seed-{seed}": settings.out / f"seed-{seed}" for seed in seeds}
    with locked(settings.out):

        def make(run: RunScript, name: str) -> None:
            own = ["--seed", name.removeprefix("seed-"), "--out", str(folders[name])]
            run([str(script), *given, *own], folders[name])

        ended = dict(run_all(make, folders, settings.jobs, settings.scheduler))
        failed = [f"{name}: {wrong}" for name, wrong in ended.items() if wrong]
        if failed:
            raise SystemExit("\n".join(failed))
        records = [read_record(folder / RECORD) for folder in folders.values()]
        text = write_comparison(settings.out, records)
    print(f"\n{text}\n\nThe table and the figure are in {settings.out}")
