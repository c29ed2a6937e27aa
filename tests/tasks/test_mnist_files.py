import gzip
import math
import struct
import tracemalloc

import numpy as np
import pytest

from keras_ortho.tasks.mnist_files import FILES, read_idx, read_mnist
from tests.tasks.image_data import idx, write_mnist


@pytest.mark.parametrize("zipped", [True, False])
def test_four_files(tmp_path, zipped):
    arrays = write_mnist(tmp_path, zipped=zipped)
    for found, expected in zip(read_mnist(tmp_path), arrays, strict=True):
        assert found.dtype == "uint8"
        np.testing.assert_array_equal(found, expected)


def test_a_literal_file(tmp_path):
    path = tmp_path / "images"
    path.write_bytes(bytes.fromhex("00000803 00000002 00000001 00000003 0102030405ff"))
    assert read_idx(path, 3).tolist() == [[[1, 2, 3]], [[4, 5, 255]]]


WHOLE = idx(np.zeros((2, 28, 28), "uint8"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (WHOLE[:-1], "1568 values. Received: 1567"),
        (WHOLE + b"\0", "1568 values. Received: more than 1568"),
        (gzip.compress(WHOLE + b"\0"), "1568 values. Received: more than 1568"),
        (WHOLE[:10], "Received: 00 00 08 03 .* of 10 bytes"),
        (b"", "of 0 bytes"),
        (b"\0\0\x08\x01" + WHOLE[4:], "Received: 00 00 08 01"),  # that of labels
        (b"\0\0\x0d\x03" + WHOLE[4:], "Received: 00 00 0d 03"),  # floats
        # So many values that a size of 64 bits would wrap around to 0.
        (b"\0\0\x08\x03" + 3 * b"\x80\0\0\0", f"{2**93} values. Received: 0"),
        (gzip.compress(b"\0\0\x08\x03" + 3 * b"\x80\0\0\0"), "values. Received: 0"),
        (gzip.compress(WHOLE)[:-9], "is truncated or damaged. Received"),
        (gzip.compress(WHOLE)[:10] + b"\xff" * 20, "is truncated or damaged. Received"),
    ],
    # What is packed holds the time; names of tests must be the same in each process.
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} bytes",
)
def test_damaged_files_are_named(tmp_path, content, message):
    path = tmp_path / "some-images"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_idx(path, 3)
    assert str(path) in str(error.value)


def peak_memory(call):
    """The most that a call, which fails, holds at one time, in bytes."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="Received"):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_small_file_that_unpacks_to_much(tmp_path):
    path = tmp_path / "bomb.gz"
    shape = (2**17, 28, 28)  # 98 MiB of zeros, in 100 kB
    content = WHOLE[:4] + struct.pack(">3I", *shape) + bytes(math.prod(shape))
    path.write_bytes(gzip.compress(content, 1))
    del content
    assert peak_memory(lambda: read_idx(path, 3)) < 2**26
    # And one that holds more than it says.
    path.write_bytes(gzip.compress(WHOLE + bytes(2**26), 1))
    assert peak_memory(lambda: read_idx(path, 3)) < 2**21


def test_missing_file(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").unlink()
    message = "must contain t10k-labels-idx1-ubyte.*https.*Received: data_dir="
    with pytest.raises(FileNotFoundError, match=message):
        read_mnist(tmp_path)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        (FILES[1], np.zeros(19, "uint8"), "each of the 20 images"),
        (FILES[1], np.full(20, 10, "uint8"), r"0\.\.9. Received: 10 for image 0"),
        (FILES[0], np.zeros((20, 28, 27), "uint8"), r"\(20, 28, 27\)"),
        (FILES[2], np.zeros((0, 28, 28), "uint8"), r"\(0, 28, 28\)"),
    ],
)
def test_files_that_do_not_fit(tmp_path, name, array, message):
    write_mnist(tmp_path)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(idx(array)))
    with pytest.raises(ValueError, match=message) as error:
        read_mnist(tmp_path)
    assert name.split("-")[0] in str(error.value)


def test_the_original(data_dir):
    images = read_mnist(data_dir / "mnist")
    assert images.train.shape == (60_000, 28, 28)
    assert images.test.shape == (10_000, 28, 28)
    assert images.train_labels[:4].tolist() == [5, 0, 4, 1]
    assert images.test_labels[:4].tolist() == [7, 2, 1, 0]
    # How many of each digit, as published with the data.
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(images.train_labels).tolist() == counts
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(images.test_labels).tolist() == counts
    # The mean pixel that normalizations of MNIST take away.
    assert images.train.mean() / 255 == pytest.approx(0.1307, abs=5e-5)
