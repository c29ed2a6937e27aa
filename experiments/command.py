"""The command line of a task, for the example that trains its network."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path

from experiments.comparison import write_comparison
from experiments.errors import plain_errors
from experiments.options import Settings, read_task
from experiments.records import read_record
from experiments.runs import RECORD
from experiments.seeds import run_seeds


def command(task: str) -> Callable[[Callable[[Settings], None]], Callable[[], None]]:
    """Makes a command from a function that builds and trains a network.

    The command reads its options and calls the function; with `--seeds`, it runs once
    for each seed, each time in its own process. `--help` begins with the docstring of
    the function's module.
    """

    def decorate(main: Callable[[Settings], None]) -> Callable[[], None]:
        @functools.wraps(main)
        @plain_errors()
        def run() -> None:
            script = Path(inspect.getfile(main))
            settings = read_task(task, inspect.getdoc(inspect.getmodule(main)) or "")
            if settings.seeds is None:
                main(settings)
                write_comparison(settings.out, [read_record(settings.out / RECORD)])
            else:
                run_seeds(script, settings)

        return run

    return decorate
