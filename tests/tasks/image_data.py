import gzip
import struct

import numpy as np

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def draw(shape, train, test):
    """Images and classes to train on, and for the test."""
    random = np.random.default_rng(0)
    arrays = []
    for size in (train, test):
        arrays.append(random.integers(0, 256, (size, *shape), "uint8"))
        arrays.append(random.integers(0, 10, size, "uint8"))
    return arrays


def write_mnist(folder, train=40, test=10, zipped=True):
    """Writes the four files as the format's description has it."""
    arrays = draw((28, 28), train, test)
    for name, array in zip(FILES, arrays, strict=True):
        header = b"\0\0\x08" + bytes([array.ndim])
        header += struct.pack(f">{array.ndim}I", *array.shape)
        content = header + array.tobytes()
        path = folder / (f"{name}.gz" if zipped else name)
        path.write_bytes(gzip.compress(content) if zipped else content)
    return arrays


def write_npz(path, arrays):
    names = ("x_train", "y_train", "x_test", "y_test")
    np.savez(path, **dict(zip(names, arrays, strict=True)))
