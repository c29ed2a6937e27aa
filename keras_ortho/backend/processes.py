"""What several processes of JAX that train one network tell each other."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np


def process_count() -> int:
    """The number of processes that are connected; 1 on other backends than JAX."""
    if keras.backend.backend() != "jax":
        return 1
    import jax

    # `jax.process_count` alone settles what devices there are.
    return jax.process_count() if jax.distributed.is_initialized() else 1


def process_index() -> int:
    """The number of this process, from 0 on."""
    if process_count() == 1:
        return 0
    import jax

    return jax.process_index()


def on_first(function: Callable[[], object]) -> None:
    """Calls a function in the first process, while the others wait for it.

    Args:
        function: The function.

    Raises:
        ValueError: In the other processes, if it failed in the first, where its own
            error is raised.
    """
    error = None
    if process_index() == 0:
        try:
            function()
        except Exception as raised:  # The others must not wait for ever.
            error = raised
    said = _from_first(repr(error).encode() if error else b"")
    if error:
        raise error
    if said:
        raise ValueError(f"The first process failed. Received: {said.decode()}")


def copy_from_first(files: Path | None, folder: Path) -> None:
    """Copies a folder of the first process to the others, over their network.

    Args:
        files: In the first process the folder, without others in it, or `None` where
            there is none. Elsewhere it is not looked at.
        folder: Where each of the others gets it, by its name.
    """
    first = process_index() == 0
    packed = io.BytesIO()
    if first and files is not None:
        with zipfile.ZipFile(packed, "w") as archive:
            for file in sorted(files.iterdir()):
                archive.write(file, f"{files.name}/{file.name}")
    received = _from_first(packed.getvalue())
    if received and not first:
        with zipfile.ZipFile(io.BytesIO(received)) as archive:
            archive.extractall(folder)


def _from_first(data: bytes) -> bytes:
    """What the first process has, in all of them."""
    if process_count() == 1:
        return data
    from jax.experimental.multihost_utils import broadcast_one_to_all

    # All arrays must be of one shape.
    size = int(broadcast_one_to_all(np.array(len(data))))
    held = np.zeros(size, "uint8")
    if process_index() == 0:
        held[:] = np.frombuffer(data, "uint8")
    return np.asarray(broadcast_one_to_all(held)).tobytes() if size else b""
