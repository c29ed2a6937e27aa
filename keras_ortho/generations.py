"""States of a run on disk: the last two, each a folder with checksums of its files."""

import contextlib
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from keras_ortho.files import flush
from keras_ortho.sealed import file_sha256, read_sealed, write_sealed

CHECKSUMS = "checksums.json"
KEPT = 2
_NAME = re.compile(r"epoch-\d{6,}")


class UnreadableError(ValueError):
    """Raised if a run cannot resume from a state; the message names the files."""


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns errors into ones that name the file being read.

    Args:
        path: The file.

    Raises:
        UnreadableError: In place of any error within the context.
    """
    try:
        yield
    except Exception as error:  # HDF5 and Keras raise errors of all kinds.
        raise UnreadableError(f"{path} cannot be read: {error}") from error


class Generations:
    """The states of a run, of which the newest intact one counts.

    A state appears atomically: its folder is renamed once all files are on disk.

    Args:
        folder: The run's folder, which this process has locked.
        file: Name of a file that every state contains. A folder counts as a state if it
            contains this file or, in case it is damaged, the file of checksums.
    """

    def __init__(self, folder: Path, file: str) -> None:
        self._of_each = (file, CHECKSUMS)
        self.folder = folder
        # Names that no one else is likely to use for a folder.
        self._aside, self._old = folder / ".state-aside", folder / ".state-old"
        # A state that is known to be intact, and the one before it; the newest last.
        self._kept: list[Path] = []

    def tidy(self) -> None:
        """Removes the folders that a killed process has left behind."""
        for left in (self._aside, self._old):
            shutil.rmtree(left, ignore_errors=True)

    @property
    def newest(self) -> Path | None:
        """The folder of the state that was last read or written, or `None`."""
        return self._kept[-1] if self._kept else None

    def read(self, read: Callable[[Path], None]) -> None:
        """Reads the newest state or, if it is damaged, the one before.

        Args:
            read: Function that reads a state from its folder, each file within
                `reading`. If the state is damaged, it is called again with the folder
                of the previous one. It is not called if there is no state yet.

        Raises:
            UnreadableError: If no state is intact, with a message that names the
                damaged files; or if `read` fails on a state whose checksums match.
        """
        states = self._states()
        damaged: list[str] = []
        for index in reversed(range(len(states))):
            checked = False
            try:
                checked = _check(states[index])
                read(states[index])
            except UnreadableError as error:
                if checked:
                    raise
                damaged.append(str(error))
                continue
            if damaged:
                warnings.warn(
                    f"{'; '.join(damaged)}. The run resumes from the previous state: "
                    f"{states[index]}",
                    stacklevel=2,
                )
            self._kept = states[max(0, index + 1 - KEPT) : index + 1]
            return
        if damaged:
            raise UnreadableError(
                "The run cannot be resumed from any saved state: "
                f"{'; '.join(damaged)}. Remove the folder to start again. Received: "
                f"{self.folder}"
            )

    def exist(self) -> bool:
        """Returns whether the folder contains a state, possibly a damaged one."""
        return bool(self._states())

    def _states(self) -> list[Path]:
        return [
            path
            for path in sorted(self.folder.glob("epoch-*"))
            if _NAME.fullmatch(path.name)
            # Excludes other folders with such a name.
            and any((path / name).exists() for name in self._of_each)
        ]

    def path(self, epoch: int) -> Path:
        """Returns the folder of the state after a given number of epochs."""
        return self.folder / f"epoch-{epoch:06d}"

    @contextlib.contextmanager
    def add(self, epoch: int) -> Iterator[Path]:
        """Yields a folder to write a state to; on exit, it becomes the newest state.

        Args:
            epoch: Number of the last epoch in the state.
        """
        state = self.path(epoch)
        self.tidy()
        self._aside.mkdir()
        yield self._aside
        files = sorted(self._aside.iterdir())
        for file in files:
            flush(file)
        sums = {file.name: file_sha256(file) for file in files}
        write_sealed(self._aside / CHECKSUMS, {"sha256": sums})
        if state in self._states():  # It is damaged, or it would not be written again.
            self._discard(state)
        os.replace(self._aside, state)
        flush(self.folder)
        self._kept = [*self._kept, state][-KEPT:]
        for old in self._states():
            if old not in self._kept:
                self._discard(old)

    def _discard(self, state: Path) -> None:
        """Removes a state, renaming it first so that it disappears at once."""
        os.replace(state, self._old)
        shutil.rmtree(self._old)


def _check(state: Path) -> bool:
    """Checks the files of a state; returns whether the state has checksums."""
    path = state / CHECKSUMS
    if not path.exists():  # Written by a version without checksums.
        return False
    with reading(path):
        sums = read_sealed(path, ["sha256"])["sha256"]
    differing = []
    for name, expected in sums.items():
        file = state / name
        if not file.exists():
            differing.append(f"{file} is missing")
        elif file_sha256(file) != expected:
            differing.append(f"{file} is damaged: its checksum does not match")
    if differing:
        raise UnreadableError("; ".join(differing))
    return True
