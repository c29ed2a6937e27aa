"""Small data sets of images, drawn."""

import gzip
import struct

import numpy as np

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def idx(array):
    """An array as the format's description has it."""
    header = b"\0\0\x08" + bytes([array.ndim])
    return header + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_mnist(folder, train=20, test=10, zipped=True):
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(0)
    arrays = []
    for size in (train, test):
        arrays.append(random.integers(0, 256, (size, 28, 28), "uint8"))
        arrays.append(random.integers(0, 10, size, "uint8"))
    for name, array in zip(FILES, arrays, strict=True):
        if zipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
        else:
            (folder / name).write_bytes(idx(array))
    return arrays


def draw(size, seed):
    random = np.random.default_rng(seed)
    images = random.integers(0, 256, (size, 32, 32, 3), "uint8")
    return images, random.integers(0, 10, size)
