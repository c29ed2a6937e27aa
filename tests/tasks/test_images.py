import gzip
import math
import re
import struct

import keras
import numpy as np
import pytest

from keras_ortho.tasks.images import read_images
from keras_ortho.tasks.pixels import cifar10, mnist
from tests.tasks.image_data import FILES, draw, idx, write_mnist


def write_npz(path, **changes):
    (x, y), (x_test, y_test) = draw(5, 0), draw(3, 1)
    arrays = {"x_train": x, "y_train": y, "x_test": x_test, "y_test": y_test}
    np.savez_compressed(path, **{**arrays, **changes})
    return list(arrays.values())


@pytest.mark.parametrize("zipped", [True, False])
def test_the_four_files_of_mnist(tmp_path, zipped):
    arrays = write_mnist(tmp_path, zipped=zipped)
    for found, expected in zip(read_images("mnist", tmp_path), arrays, strict=True):
        assert found.dtype == "uint8"
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("file", ["", "mnist.npz"])
def test_the_file_of_keras(tmp_path, file):
    arrays = [np.full((n, 28, 28), n, "uint8") for n in (4, 2)]
    labels = [np.arange(n, dtype="uint8") for n in (4, 2)]
    path = tmp_path / "mnist.npz"
    write_npz(
        path, x_train=arrays[0], y_train=labels[0], x_test=arrays[1], y_test=labels[1]
    )
    found = read_images("mnist", tmp_path / file)
    expected = (arrays[0], labels[0], arrays[1], labels[1])
    for array, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)
    assert len(next(iter(mnist(path, valid_size=2).test))[1]) == 2


@pytest.mark.parametrize("column", [True, False])
@pytest.mark.parametrize("file", ["", "images.npz"])
def test_a_file_of_cifar10(tmp_path, column, file):
    path = tmp_path / "images.npz"
    arrays = write_npz(path)
    if column:
        write_npz(path, y_train=arrays[1][:, None], y_test=arrays[3][:, None])
    for array, expected in zip(
        read_images("cifar10", tmp_path / file), arrays, strict=True
    ):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("name", "task", "shape"),
    [("mnist", mnist, (28, 28)), ("cifar10", cifar10, (32, 32, 3))],
)
def test_without_a_folder_keras_downloads(monkeypatch, name, task, shape):
    x, y = np.arange(6, dtype="uint8"), np.arange(6, dtype="uint8")
    x = np.broadcast_to(x.reshape(6, *[1] * len(shape)), (6, *shape))
    y = y[:, None] if name == "cifar10" else y
    module = getattr(keras.datasets, name)
    monkeypatch.setattr(module, "load_data", lambda: ((x, y), (x[:2], y[:2])))
    found = read_images(name)
    np.testing.assert_array_equal(found.train, x)
    assert found.test_labels.tolist() == [0, 1]
    assert len(next(iter(task(valid_size=2, batch_size=4).train))[1]) == 4

    def fail():
        raise Exception("URL fetch failure")

    monkeypatch.setattr(module, "load_data", fail)
    message = f"`data_dir` must .*{name}.* Received: data_dir=None.* URL fetch failure"
    with pytest.raises(FileNotFoundError, match=message):
        task()


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_missing_files(tmp_path, name):
    for path in (tmp_path, tmp_path / "none", tmp_path / "none.npz"):
        with pytest.raises(FileNotFoundError, match=f"Received: data_dir={path}$"):
            read_images(name, path)
    for file in ("a.npz", "b.npz"):
        write_npz(tmp_path / file)
    with pytest.raises(FileNotFoundError, match="with a single one"):
        read_images(name, tmp_path)
    with pytest.raises(ValueError, match="Received: name='emnist'"):
        read_images("emnist", tmp_path)


def test_one_of_the_four_is_missing(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / f"{FILES[3]}.gz").unlink()
    with pytest.raises(FileNotFoundError, match=f"{tmp_path} without {FILES[3]}$"):
        read_images("mnist", tmp_path)


WHOLE = idx(np.zeros((20, 28, 28), "uint8"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (WHOLE[:-1], r"it holds 15679 values, not those of \(20, 28, 28\)"),
        (WHOLE + b"\0", "it holds 15681 values"),
        (WHOLE[:10], "buffer is smaller"),
        (b"", "begins with"),
        (b"\0\0\x0d\x03" + WHOLE[4:], "begins with 00 00 0d 03"),  # floats
        # So many values that a size of 64 bits would wrap around to 0.
        (b"\0\0\x08\x03" + 3 * b"\x80\0\0\0", r"it holds 0 values"),
        (gzip.compress(WHOLE)[:-9], "ended before"),
        (gzip.compress(WHOLE)[:10] + b"\xff" * 20, "invalid block"),
    ],
    # What is packed holds the time; names of tests must be the same in each process.
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} bytes",
)
def test_damaged_idx_files_are_named(tmp_path, content, message):
    write_mnist(tmp_path, zipped=False)
    path = tmp_path / FILES[0]
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"Received: {path}: .*{message}"):
        read_images("mnist", tmp_path)


@pytest.mark.parametrize(
    ("file", "array", "message"),
    [
        (FILES[1], np.zeros(19, "uint8"), "each of the 20 images.*training data"),
        (FILES[1], np.full(20, 10, "uint8"), r"0\.\.9. Received: 10 in the training"),
        (FILES[0], np.zeros((20, 28, 27), "uint8"), r"\(20, 28, 27\) in the training"),
        (FILES[2], np.zeros((0, 28, 28), "uint8"), r"\(0, 28, 28\) in the test data"),
    ],
)
def test_files_that_do_not_fit(tmp_path, file, array, message):
    write_mnist(tmp_path)
    (tmp_path / f"{file}.gz").write_bytes(gzip.compress(idx(array)))
    with pytest.raises(ValueError, match=f"{message}.* of {tmp_path}$"):
        read_images("mnist", tmp_path)


def test_a_header_may_claim_anything(tmp_path):
    """What it claims is not allocated before it is found to be wrong."""
    write_mnist(tmp_path)
    content = WHOLE[:4] + struct.pack(">3I", 2**31, 28, 28) + bytes(math.prod((9, 9)))
    (tmp_path / f"{FILES[0]}.gz").write_bytes(gzip.compress(content))
    with pytest.raises(ValueError, match="it holds 81 values"):
        read_images("mnist", tmp_path)


def test_damaged_npz_files_are_named(tmp_path):
    path = tmp_path / "images.npz"
    _, labels, images, _ = write_npz(path)
    for changes, message in (
        ({"y_test": labels[:2]}, "each of the 3 images.*test data of .*images.npz"),
        ({"x_test": images[:, :31]}, r"\(3, 31, 32, 3\) in the test .*images.npz"),
        ({"x_test": images * 1.0}, r"float64 of shape \(3, 32, 32, 3\)"),
        ({"y_train": labels * 1.0}, "must be integers.*float64"),
        # Nothing is unpickled: a pickle may run any code.
        ({"y_train": labels.astype(object)}, "images.npz: .*allow_pickle=False"),
    ):
        write_npz(path, **changes)
        with pytest.raises(ValueError, match=message):
            read_images("cifar10", path)
    np.savez(path, x_train=images)
    with pytest.raises(ValueError, match="images.npz: KeyError: .*y_train"):
        read_images("cifar10", path)
    np.save(tmp_path / "images.npy", images)
    with pytest.raises(ValueError, match=re.escape(str(tmp_path / "images.npy"))):
        read_images("cifar10", tmp_path / "images.npy")


def test_the_original_mnist(data_dir):
    images = read_images("mnist", data_dir / "mnist")
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


def test_the_subset_of_the_original_cifar10(data_dir):
    images = read_images("cifar10", data_dir / "cifar10")
    assert images.train.shape == (4000, 32, 32, 3)
    assert images.test.shape == (1000, 32, 32, 3)
    assert images.train_labels[:8].tolist() == [6, 9, 9, 4, 1, 1, 2, 7]
    assert images.test_labels[:8].tolist() == [3, 8, 8, 0, 6, 6, 1, 6]
    counts = [396, 366, 420, 384, 422, 393, 414, 385, 407, 413]
    assert np.bincount(images.train_labels).tolist() == counts
    assert images.train[0, 0, :3].tolist() == [[59, 62, 63], [43, 46, 45], [50, 48, 43]]
    assert images.test[0, 0, 0].tolist() == [158, 112, 49]
