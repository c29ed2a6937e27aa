"""Reads arrays of numbers safely from any file of `numpy.savez`.

`numpy.load` allocates what a header promises, and unpacks what a member holds. Here
both are first compared with the size of the file.
"""

import io
import math
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_ortho.reading import fill, unpacked_limit

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those of savez
# Errors that zipfile, zlib and the parser of headers raise for damaged files.
_DAMAGE = (
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TypeError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_arrays(data: bytes, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Reads arrays from a file of `numpy.savez` or `numpy.savez_compressed`.

    Args:
        data: Contents of the file.
        names: Names of the arrays to read.

    Returns:
        The arrays by name.

    Raises:
        ValueError: If `data` is not such a file, lacks an array, holds Python objects,
            is damaged, or unpacks to more than a file of its size should.

    Example:
    >>> np.savez("some.npz", a=np.arange(3))
    >>> with open("some.npz", "rb") as file:
    ...     read_arrays(file.read(), ["a"])
    {'a': array([0, 1, 2])}
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [archive.getinfo(f"{name}.npy") for name in names]
            size = sum(member.file_size for member in members)
            limit = unpacked_limit(len(data))
            if size > limit:
                raise ValueError(f"{size} bytes unpacked, more than {limit}")
            for member in members:
                if member.compress_type not in _METHODS:
                    raise ValueError(
                        f"{member.filename} is compressed by an unknown method"
                    )
            return {
                name: _read_array(archive, member)
                for name, member in zip(names, members, strict=True)
            }
    except _DAMAGE as error:
        raise ValueError(f"damaged: {error!r}") from error


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(member) as file:
        shape, in_fortran_order, dtype = _read_header(file)
        if dtype.hasobject:
            raise ValueError(f"{member.filename} is a pickle of objects")
        size = math.prod(shape) * dtype.itemsize
        if size > member.file_size:
            raise ValueError(
                f"the header of {member.filename} states {size} bytes, but it has "
                f"{member.file_size}"
            )
        values, more = fill(file, size)
    if more or len(values) != size:
        raise ValueError(
            f"{member.filename} does not have the size that its header states"
        )
    array = values.view(dtype)
    return array.reshape(shape[::-1]).T if in_fortran_order else array.reshape(shape)


def _read_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise ValueError(f"a header of version {version}")
