"""How a command ends that cannot go on. Loads no Keras."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from keras_ortho.executors.programs import wait_for


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Ends the command with a line on what is wrong with its options or its data.

    Raises:
        SystemExit: For an error that a user can do something about, and for Ctrl-C.
    """
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        raise SystemExit(2) from error
    except KeyboardInterrupt as error:
        print(f"\n{Path(sys.argv[0]).name}: interrupted", file=sys.stderr)
        raise SystemExit(130) from error


def run_python(arguments: Sequence[str]) -> None:
    """Runs Python on a module, a script or code; a kill of this process ends it, too.

    Args:
        arguments: Those of the interpreter.

    Raises:
        SystemExit: If it fails, which it has then said why, with its status.

    Example:
    >>> run_python(["-c", "assert 1 + 1 == 2"])
    """
    status = wait_for([sys.executable, *arguments])
    if status:
        raise SystemExit(status)
