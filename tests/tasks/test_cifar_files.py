import io
import os
import pickle
import zipfile
from typing import ClassVar

import numpy as np
import pytest

from keras_ortho.tasks.cifar_batches import read_binary, read_pickled
from keras_ortho.tasks.cifar_files import read_cifar10, read_npz
from tests.tasks.image_data import draw

PARTS = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


class Python2Pickler(pickle._Pickler):
    """Writes what Python 2 wrote: strings of bytes, for texts and arrays alike."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_python2_string(self, value):
        value = value.encode("latin1") if isinstance(value, str) else value
        self.write(pickle.BINSTRING + len(value).to_bytes(4, "little") + value)
        self.memoize(value)

    def save_global(self, value, name=None):
        # Where NumPy had it in those days.
        if value is np.zeros(0).__reduce__()[0]:
            self.write(pickle.GLOBAL + b"numpy.core.multiarray\n_reconstruct\n")
        else:
            super().save_global(value, name)

    dispatch[bytes] = dispatch[str] = save_python2_string
    dispatch[type(np.zeros(0).__reduce__()[0])] = save_global


def python2_pickle(value):
    file = io.BytesIO()
    Python2Pickler(file, protocol=2).dump(value)
    return file.getvalue()


def rows(images):
    """Red, green and blue of each image, one after the other."""
    planes = [images[..., color].reshape(len(images), 1024) for color in range(3)]
    return np.concatenate(planes, axis=1)


def write_pickled(folder):
    folder.mkdir()
    for seed, part in enumerate(PARTS):
        images, labels = draw(4, seed)
        content = {
            "batch_label": part,
            "labels": labels.tolist(),
            "data": rows(images),
            "filenames": ["a.png"] * 4,
        }
        (folder / part).write_bytes(python2_pickle(content))


def write_binary(folder):
    folder.mkdir()
    for seed, part in enumerate(PARTS):
        images, labels = draw(4, seed)
        records = np.column_stack([labels.astype("uint8"), rows(images)])
        (folder / f"{part}.bin").write_bytes(records.tobytes())


WRITERS = {"cifar-10-batches-py": write_pickled, "cifar-10-batches-bin": write_binary}


@pytest.mark.parametrize("layout", WRITERS)
@pytest.mark.parametrize("above", [True, False])
def test_six_batches(tmp_path, layout, above):
    WRITERS[layout](tmp_path / layout)
    images = read_cifar10(tmp_path if above else tmp_path / layout)
    train = [draw(4, seed) for seed in range(5)]
    expected, labels = (np.concatenate(parts) for parts in zip(*train, strict=True))
    assert images.train.dtype == "uint8"
    np.testing.assert_array_equal(images.train, expected)
    np.testing.assert_array_equal(images.train_labels, labels)
    np.testing.assert_array_equal(images.test, draw(4, 5)[0])
    np.testing.assert_array_equal(images.test_labels, draw(4, 5)[1])


@pytest.mark.parametrize("layout", WRITERS)
def test_a_batch_that_is_missing(tmp_path, layout):
    WRITERS[layout](tmp_path / layout)
    first, *_ = sorted((tmp_path / layout).iterdir())
    first.unlink()
    with pytest.raises(
        FileNotFoundError, match=f"`data_dir` .* Received: .*without {first.name}$"
    ):
        read_cifar10(tmp_path)


@pytest.mark.parametrize("protocol", [3, 4])
def test_pickles_of_python_3(tmp_path, protocol):
    images, labels = draw(3, 0)
    path = tmp_path / "data_batch_1"
    content = {"data": rows(images), "labels": labels.tolist()}
    path.write_bytes(pickle.dumps(content, protocol))
    np.testing.assert_array_equal(read_pickled(path)[0], images)


class Harmful:
    def __init__(self, call, *args):
        self.call = call, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("call", [os.mkdir, eval, np.load, np.memmap])
def test_pickles_run_no_code(tmp_path, monkeypatch, protocol, call):
    monkeypatch.chdir(tmp_path)
    argument = "__import__('os').mkdir('made')" if call is eval else "made"
    path = tmp_path / "data_batch_1"
    path.write_bytes(pickle.dumps({"data": Harmful(call, argument)}, protocol))
    with pytest.raises(ValueError, match="data_batch_1: .* is not allowed"):
        read_pickled(path)
    assert not (tmp_path / "made").exists()


def test_a_real_batch_is_read(tmp_path):
    """The layout of the original files, down to the opcodes of Python 2."""
    images, labels = draw(10, 1)
    raw = rows(images).tobytes()
    names = [f"leptodactylus_pentadactylus_s_{n:06d}.png" for n in range(10)]
    path = tmp_path / "data_batch_1"
    path.write_bytes(
        b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x15training batch 1 of 5q\x03"
        + b"U\x06labelsq\x04]q\x05("
        + b"".join(b"K" + bytes([label]) for label in labels)
        + b"eU\x04dataq\x06cnumpy.core.multiarray\n_reconstruct\nq\x07"
        + b"cnumpy\nndarray\nq\x08K\x00\x85U\x01b\x87Rq\x09(K\x01K\x0aM\x00\x0c\x86"
        + b"cnumpy\ndtype\nq\x0aU\x02u1K\x00K\x01\x87Rq\x0b(K\x03U\x01|NNN"
        + b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
        + len(raw).to_bytes(4, "little")
        + raw
        + b"tbU\x09filenamesq\x0c]q\x0d("
        + b"".join(b"U" + bytes([len(name)]) + name.encode() for name in names)
        + b"eu."
    )
    found, found_labels = read_pickled(path)
    np.testing.assert_array_equal(found, images)
    np.testing.assert_array_equal(found_labels, labels)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "data_batch_1: "),
        (b"GIF89a", "data_batch_1: "),
        (pickle.dumps({"data": np.zeros((2, 3072), "uint8")}, 4)[:-99], "batch_1: "),
        (pickle.dumps([1]), "must be a dictionary. Received: .*list"),
        (pickle.dumps({"data": 1}), r"\['data'\] in .*data_batch_1"),
        (
            pickle.dumps({"data": np.zeros((2, 3071), "uint8"), "labels": [1, 2]}, 4),
            r"rows of 3072 values. Received: shape \(2, 3071\) in .*data_batch_1",
        ),
        (
            pickle.dumps({"data": np.zeros((2, 3072), "uint8"), "labels": [1]}, 4),
            "each of the 2 images",
        ),
        (
            pickle.dumps({"data": np.zeros((2, 3072)), "labels": [1, 2]}, 4),
            "data_batch_1: an array must be uint8, not another type 'f8'",
        ),
        (
            pickle.dumps({"data": np.zeros((1, 3072), "uint8"), "labels": [10]}, 4),
            "Received: 10 for image 0 in .*data_batch_1",
        ),
        (
            pickle.dumps({"data": np.zeros((1, 3072), "uint8"), "labels": [[1], 2]}, 4),
            "list of integers. Received: .*data_batch_1",
        ),
        (
            pickle.dumps({"data": np.zeros((1, 3072), "uint8"), "labels": [2**70]}, 4),
            "must be integers.* Received: object",
        ),
        (
            pickle.dumps({"data": [[1] * 3072], "labels": [1]}, 4),
            "rows of 3072 values. Received: <class 'list'>",
        ),
    ],
)
def test_damaged_pickles_are_named(tmp_path, content, message):
    path = tmp_path / "data_batch_1"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_pickled(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (bytes(3074), "records of 3073 bytes. Received: 3074 bytes in .*some.bin"),
        (b"", "Received: uint8 of shape .0, 32, 32, 3. in .*some.bin"),
        (bytes([10] + 3072 * [0]), "Received: 10 for image 0 in .*some.bin"),
    ],
)
def test_damaged_binary_files_are_named(tmp_path, content, message):
    path = tmp_path / "some.bin"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_binary(path)


@pytest.mark.parametrize("column", [True, False])
@pytest.mark.parametrize("file", ["", "images.npz"])
def test_npz(tmp_path, column, file):
    (x, y), (x_test, y_test) = draw(5, 0), draw(3, 1)
    np.savez_compressed(
        tmp_path / "images.npz",
        x_train=x,
        y_train=y[:, None] if column else y,
        x_test=x_test,
        y_test=y_test,
    )
    found = read_cifar10(tmp_path / file)
    for array, expected in zip(found, (x, y, x_test, y_test), strict=True):
        np.testing.assert_array_equal(array, expected)


def test_damaged_npz_files_are_named(tmp_path):
    images, labels = draw(3, 0)
    whole = {"x_train": images, "y_train": labels, "x_test": images, "y_test": labels}
    path = tmp_path / "images.npz"
    for change, message in (
        ({"y_test": labels[:2]}, "each of the 3 images.*images.npz"),
        ({"x_test": images[:, :31]}, r"\(3, 31, 32, 3\) in .*images.npz"),
        ({"y_train": labels.astype(object)}, "images.npz: .*pickle"),
    ):
        np.savez(path, **{**whole, **change})
        with pytest.raises(ValueError, match=message):
            read_npz(path)
    np.savez(path, x_train=images)
    with pytest.raises(ValueError, match="contain x_train, y_train.*images.npz"):
        read_npz(path)
    np.savez(path, **whole)
    content = path.read_bytes()
    for damaged in (content[:-200], content[:100], b"", b"text"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="images.npz: "):
            read_npz(path)
    np.save(tmp_path / "images.npy", images)
    with pytest.raises(ValueError, match="images.npy: "):
        read_npz(tmp_path / "images.npy")


def test_npz_files_that_cannot_be_made_to_misbehave(tmp_path):
    images, labels = draw(3, 0)
    whole = {"x_train": images, "y_train": labels, "x_test": images, "y_test": labels}
    path = tmp_path / "images.npz"
    np.savez(path, **whole)
    content = path.read_bytes()
    shape = b"(3, 32, 32, 3)"
    for old, new, message in (
        (shape, b"(9999999999,3)", "states .* bytes"),
        (shape, b"(((((((((3, 3)", "images.npz: damaged"),
        (shape, b"(3, 32, 32, 3'", "images.npz"),
        (b"|u1", b"|O1", "images.npz"),
        (b"PK\x01\x02", b"PK\x01\x03", "images.npz: damaged"),
    ):
        damaged = content.replace(old, new)
        assert damaged != content
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=message):
            read_npz(path)
    whole["x_test"] = np.zeros((2**14, 32, 32, 3), "uint8")  # 48 MiB in 50 kB
    np.savez_compressed(path, **whole)
    with pytest.raises(ValueError, match="bytes unpacked, more than"):
        read_npz(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name in whole:
            archive.writestr(f"{name}.npy", b"")
    with pytest.raises(ValueError, match="compressed by an unknown method"):
        read_npz(path)


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="https.*with 0 .npz files"):
        read_cifar10(tmp_path)
    with pytest.raises(FileNotFoundError, match="none.npz"):
        read_npz(tmp_path / "none.npz")
    write_binary(tmp_path / "cifar-10-batches-bin")
    (tmp_path / "cifar-10-batches-bin" / "data_batch_4.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"data_batch_4\.bin"):
        read_cifar10(tmp_path)


def test_the_subset_of_the_original(data_dir):
    images = read_cifar10(data_dir / "cifar10")
    assert images.train.shape == (4000, 32, 32, 3)
    assert images.test.shape == (1000, 32, 32, 3)
    assert images.train_labels[:8].tolist() == [6, 9, 9, 4, 1, 1, 2, 7]
    assert images.test_labels[:8].tolist() == [3, 8, 8, 0, 6, 6, 1, 6]
    counts = [396, 366, 420, 384, 422, 393, 414, 385, 407, 413]
    assert np.bincount(images.train_labels).tolist() == counts
    assert images.train[0, 0, :3].tolist() == [[59, 62, 63], [43, 46, 45], [50, 48, 43]]
    assert images.test[0, 0, 0].tolist() == [158, 112, 49]
