"""Error handling of the commands."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.engine import wait_for


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Ends the command with a one-line message if its options or data are wrong."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    except KeyboardInterrupt as error:
        print(f"\n{Path(sys.argv[0]).name}: interrupted", file=sys.stderr)
        raise SystemExit(130) from error


def run_python(arguments: Sequence[str]) -> None:
    """Runs Python in a process that also ends if this one is killed."""
    if status := wait_for(arguments):
        raise SystemExit(status)
