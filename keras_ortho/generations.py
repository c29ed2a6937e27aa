"""States of a run on disk: folders with a checksum for each file, the last two kept."""

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
    """A state that cannot be gone on from; the message names the files."""


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Has an error name the file that was read.

    Args:
        path: The file.

    Raises:
        UnreadableError: In the place of any error.
    """
    try:
        yield
    except Exception as error:  # HDF5 and Keras raise of all kinds.
        raise UnreadableError(f"{path} cannot be read: {error}") from error


class Generations:
    """The states of a run, of which the newest whole one counts.

    A state appears at once, by its folder being renamed when all of it is on the disk.

    Args:
        folder: The run's folder, which this process holds alone.
        file: A file that each state has, by which it is known. One that is damaged is
            known by its checksums, too.
    """

    def __init__(self, folder: Path, file: str) -> None:
        self._of_each = (file, CHECKSUMS)
        self.folder = folder
        # No names that anybody else gives a folder of theirs.
        self._aside, self._old = folder / ".state-aside", folder / ".state-old"
        # What is known to be whole, or is the one before that; the newest last.
        self._kept: list[Path] = []

    def tidy(self) -> None:
        """Removes what a killed process has left."""
        for left in (self._aside, self._old):
            shutil.rmtree(left, ignore_errors=True)

    @property
    def newest(self) -> Path | None:
        """The folder of the state that was read or written last."""
        return self._kept[-1] if self._kept else None

    def read(self, read: Callable[[Path], None]) -> None:
        """Reads the newest state, or, if it is damaged, the one before.

        Args:
            read: Reads a state from its folder, each file within `reading`. It is
                called again, with another folder, after an error. Not called if there
                is no state yet.

        Raises:
            UnreadableError: If none is whole; the message names what is damaged. Or if
                `read` fails on one that is as it was written.
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
                    f"{'; '.join(damaged)}. The run goes on from the state before: "
                    f"{states[index]}",
                    stacklevel=2,
                )
            self._kept = states[max(0, index + 1 - KEPT) : index + 1]
            return
        if damaged:
            raise UnreadableError(
                f"No state of the run can be gone on from: {'; '.join(damaged)}. "
                f"Remove the folder to begin anew. Received: {self.folder}"
            )

    def exist(self) -> bool:
        """Whether the folder holds a state, be it damaged."""
        return bool(self._states())

    def _states(self) -> list[Path]:
        return [
            path
            for path in sorted(self.folder.glob("epoch-*"))
            if _NAME.fullmatch(path.name)
            # Not a folder of another's with such a name.
            and any((path / name).exists() for name in self._of_each)
        ]

    def path(self, epoch: int) -> Path:
        """The folder of the state after an epoch."""
        return self.folder / f"epoch-{epoch:06d}"

    @contextlib.contextmanager
    def add(self, epoch: int) -> Iterator[Path]:
        """Yields a folder to write a state to, which is the newest at the end.

        Args:
            epoch: The number of the last epoch in it.
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
        if state in self._states():  # Damaged, else there were no need for another.
            self._discard(state)
        os.replace(self._aside, state)
        flush(self.folder)
        self._kept = [*self._kept, state][-KEPT:]
        for old in self._states():
            if old not in self._kept:
                self._discard(old)

    def _discard(self, state: Path) -> None:
        """Removes a state, at once by its name."""
        os.replace(state, self._old)
        shutil.rmtree(self._old)


def _check(state: Path) -> bool:
    """Compares the files of a state with their checksums, if they have been written."""
    path = state / CHECKSUMS
    if not path.exists():  # Of a version that wrote none.
        return False
    with reading(path):
        sums = read_sealed(path, ["sha256"])["sha256"]
    differing = []
    for name, expected in sums.items():
        file = state / name
        if not file.exists():
            differing.append(f"{file} is missing")
        elif file_sha256(file) != expected:
            differing.append(f"{file} is damaged: it is not what its checksum is of")
    if differing:
        raise UnreadableError("; ".join(differing))
    return True
