"""Communication between several JAX processes that train one network."""

import io
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import keras
import numpy as np


def process_count() -> int:
    """Returns the number of connected processes, 1 on other backends than JAX."""
    if keras.backend.backend() != "jax":
        return 1
    import jax

    # `jax.process_count` by itself would initialize the devices.
    return jax.process_count() if jax.distributed.is_initialized() else 1


def process_index() -> int:
    """Returns the index of this process, counted from 0."""
    if process_count() == 1:
        return 0
    import jax

    return jax.process_index()


def on_first(function: Callable[[], object]) -> None:
    """Calls a function in the first process, while the others wait for it."""
    error = None
    if process_index() == 0:
        try:
            function()
        except Exception as raised:  # The other processes must not wait forever.
            error = raised
    said = _from_first(repr(error).encode() if error else b"")
    if error:
        raise error
    if said:
        raise ValueError(f"The first process failed. Received: {said.decode()}")


def copy_from_first(files: Iterable[Path], folder: Path) -> None:
    """Copies the files that exist in the first process into a folder of each other."""
    first = process_index() == 0
    packed = io.BytesIO()
    if first:
        with zipfile.ZipFile(packed, "w") as archive:
            for file in filter(Path.exists, files):
                archive.write(file, file.name)
    received = _from_first(packed.getvalue())
    if not first:
        with zipfile.ZipFile(io.BytesIO(received)) as archive:
            archive.extractall(folder)


def _from_first(data: bytes) -> bytes:
    """Returns the data of the first process, in all processes."""
    if process_count() == 1:
        return data
    from jax.experimental.multihost_utils import broadcast_one_to_all

    # The arrays of all processes must have the same shape.
    size = int(broadcast_one_to_all(np.array(len(data))))
    held = np.zeros(size, "uint8")
    if process_index() == 0:
        held[:] = np.frombuffer(data, "uint8")
    return np.asarray(broadcast_one_to_all(held)).tobytes() if size else b""
