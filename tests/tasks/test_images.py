import gzip

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


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
@pytest.mark.parametrize("column", [True, False])
@pytest.mark.parametrize("file", ["", "images.npz"])
def test_a_file_of_arrays(tmp_path, name, column, file):
    path = tmp_path / "images.npz"
    arrays = write_npz(path)
    if name == "mnist":
        arrays[::2] = [x[:, :28, :28, 0] for x in arrays[::2]]
    labels = [y[:, None] if column else y for y in arrays[1::2]]
    changes = dict(zip(("x_train", "x_test"), arrays[::2], strict=True))
    write_npz(path, **changes, y_train=labels[0], y_test=labels[1])
    found = read_images(name, tmp_path / file)
    for array, expected in zip(found, arrays, strict=True):
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


WHOLE = idx(np.zeros((20, 28, 28), "uint8"))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (FILES[0], WHOLE[:-1], r"holds 15679 values, not those of \(20, 28, 28\)"),
        (FILES[0], b"", "begins with"),
        (FILES[0], b"\0\0\x0d\x03" + WHOLE[4:], "begins with 00 00 0d 03"),  # floats
        # So many values that a size of 64 bits would wrap around to 0.
        (FILES[0], b"\0\0\x08\x03" + 3 * b"\x80\0\0\0", "it holds 0 values"),
        (FILES[0], gzip.compress(WHOLE)[:-9], "ended before"),
        (FILES[1], idx(np.zeros(19, "uint8")), r"uint8 of shape \(19,\): training"),
        (FILES[1], idx(np.full(20, 10, "uint8")), "class in 0..9 .*: training"),
        (FILES[2], idx(np.zeros((0, 28, 28), "uint8")), r"\(0, 28, 28\) .*: test"),
        (FILES[3], None, f"all four files .* without {FILES[3]}"),
    ],
    # What is packed holds the time; names of tests must be the same in each process.
    ids=lambda value: value if isinstance(value, str) else "content",
)
def test_damaged_idx_files_are_named(tmp_path, file, content, message):
    write_mnist(tmp_path, zipped=False)
    path = tmp_path / file
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as error:
        read_images("mnist", tmp_path)
    assert str(tmp_path) in str(error.value)


def test_damaged_npz_files_are_named(tmp_path):
    path = tmp_path / "images.npz"
    for missing in (tmp_path, path):
        with pytest.raises(FileNotFoundError, match=f"Received: data_dir={missing}$"):
            read_images("cifar10", missing)
    _, labels, images, _ = write_npz(path)
    for changes, message in (
        ({"y_test": labels[:2]}, "class in 0..9 for each.*test data of .*images.npz"),
        ({"x_test": images[:, :31]}, r"\(3, 31, 32, 3\) .*test .*images.npz"),
        ({"x_test": images * 1.0}, r"float64 of shape \(3, 32, 32, 3\)"),
        ({"y_train": labels * 1.0}, "float64 of shape .5"),
        # Nothing is unpickled: a pickle may run any code.
        ({"y_train": labels.astype(object)}, "images.npz: .*allow_pickle=False"),
    ):
        write_npz(path, **changes)
        with pytest.raises(ValueError, match=message):
            read_images("cifar10", path)
    np.savez(path, x_train=images)
    with pytest.raises(ValueError, match="images.npz: KeyError: .*y_train"):
        read_images("cifar10", path)
