import keras
import numpy as np
import pytest

from keras_ortho.tasks.images import read_images
from keras_ortho.tasks.pixels import cifar10, mnist
from tests.tasks.image_data import draw, write_mnist, write_npz

# What dividing by 255, directly or by its reciprocal, may be off by.
RTOL = 3 * np.finfo("float32").eps


def arrays(dataset):
    return [np.concatenate(parts) for parts in zip(*dataset, strict=True)]


def assert_all_equal(found, expected):
    for array, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array, other)


@pytest.fixture(scope="module")
def mnist_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mnist")
    return folder, write_mnist(folder)


@pytest.fixture(scope="module")
def cifar_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cifar") / "images.npz"
    drawn = draw((32, 32, 3), 24, 10)
    write_npz(path, drawn)
    return path, drawn


def test_files(mnist_folder, cifar_file, tmp_path):
    path, drawn = cifar_file
    for name, place, arrays in (
        ("mnist", *mnist_folder),
        ("mnist", tmp_path, write_mnist(tmp_path, 5, 3, zipped=False)),
        ("cifar10", path, drawn),
        ("cifar10", path.parent, drawn),
    ):
        assert_all_equal(read_images(name, place), arrays)


@pytest.mark.parametrize(
    ("name", "shape", "column"), [("mnist", (28, 28), -1), ("cifar10", (32, 32, 3), 1)]
)
def test_without_a_folder_keras_downloads(monkeypatch, name, shape, column):
    drawn = draw(shape, 6, 2)
    # Keras has the labels of CIFAR-10 as a column.
    x, y, x_test, y_test = (
        a.reshape(-1, 1) if a.ndim == column else a for a in map(np.copy, drawn)
    )
    module = getattr(keras.datasets, name)
    monkeypatch.setattr(module, "load_data", lambda: ((x, y), (x_test, y_test)))
    assert_all_equal(read_images(name), drawn)

    def fail():
        raise Exception("URL fetch failure")

    monkeypatch.setattr(module, "load_data", fail)
    message = f"`data_dir` must .*{name}.* Received: data_dir=None.* URL fetch failure"
    with pytest.raises(FileNotFoundError, match=message):
        read_images(name)


def test_the_originals(data_dir):
    images = read_images("mnist", data_dir / "mnist")
    assert images.train.shape == (60_000, 28, 28)
    assert images.test.shape == (10_000, 28, 28)
    # How many of each digit, as published with the data.
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(images.test_labels).tolist() == counts


def by_pixels(x, y):
    """Sequences and classes in an order that depends on the pixels alone."""
    order = np.lexsort(x.reshape(len(x), -1).T)
    return x[order], y[order]


@pytest.mark.parametrize(("steps", "permuted"), [(784, True), (28, False), (1, True)])
def test_mnist(mnist_folder, steps, permuted):
    folder, (images, labels, test_images, test_labels) = mnist_folder
    sizes = {"batch_size": 8, "valid_size": 11, "train_size": 27, "test_size": 7}
    task = mnist(folder, steps=steps, permuted=permuted, **sizes)
    assert task.num_classes == 10
    order = np.random.RandomState(92916).permutation(784)
    assert order[:5].tolist() == [319, 576, 323, 107, 355]

    def sequences(images):
        pixels = images.reshape(len(images), 784) / 255
        pixels = np.stack([row[order] for row in pixels]) if permuted else pixels
        return pixels.reshape(len(images), steps, 784 // steps)

    assert [len(y) for _, y in task.train] == [8, 8, 8, 3]
    for dataset, expected, classes in (
        (task.valid, images[:11], labels[:11]),
        (task.test, test_images[:7], test_labels[:7]),
        (task.train, images[11:38], labels[11:38]),
    ):
        (x, y), expected = arrays(dataset), sequences(expected)
        assert (x.dtype, y.dtype) == ("float32", "int32")
        if dataset is task.train:
            assert not np.array_equal(y, classes)
            x, y = by_pixels(x, y)
            expected, classes = by_pixels(expected, classes)
        np.testing.assert_allclose(x, expected, RTOL)
        np.testing.assert_array_equal(y, classes)


def padded(path, length=100, **options):
    options = {"batch_size": 4, "valid_size": 5, **options}
    return cifar10(path, form="noise-padded", length=length, **options)


def test_cifar10(cifar_file):
    path, (images, _, test_images, labels) = cifar_file
    for form, shape in (("pixels", (1024, 3)), ("flat", (3072,))):
        x, y = arrays(cifar10(path, form=form, valid_size=5).test)
        np.testing.assert_allclose(x, test_images.reshape(10, *shape) / 255, RTOL)
        np.testing.assert_array_equal(y, labels)
    task = padded(path)
    noises = []
    for dataset, expected in ((task.valid, images[:5]), (task.test, test_images)):
        x, _ = arrays(dataset)
        rows = expected.reshape(len(expected), 32, 96) / 255
        np.testing.assert_allclose(x[:, :32], rows, RTOL)
        noises.append(x[:, 32:])
    noise = np.concatenate([*noises, arrays(task.train)[0][:, 32:]]).astype("float64")
    assert noise.shape == (34, 68, 96)
    # Standard Gaussian, to five standard errors, and another for each image and step.
    assert noise.mean() == pytest.approx(0, abs=5 / noise.size**0.5)
    assert noise.var() == pytest.approx(1, abs=5 * (2 / noise.size) ** 0.5)
    products = np.corrcoef(noise.reshape(34 * 68, 96)) - np.eye(34 * 68)
    assert np.abs(products).max() < 7 / 96**0.5


def by_image(dataset):
    """The sequence of each image, whatever their order."""
    return {sequence[:32].tobytes(): sequence for sequence in arrays(dataset)[0]}


def same(one, other):
    """For each image of both, whether its noise is the same."""
    return [np.array_equal(one[image], other[image]) for image in one.keys() & other]


@pytest.mark.slow
def test_noise_depends_on_the_seed_the_pass_and_the_image(cifar_file):
    """So that a run may go on anywhere."""
    path, _ = cifar_file
    task, fixed = padded(path), padded(path, fixed_noise=True)
    first, second = (by_image(task.passes(number)) for number in (0, 1))
    assert not any(same(first, second))
    assert all(same(second, by_image(padded(path, batch_size=7).passes(1))))
    assert not any(same(first, by_image(padded(path, seed=1).passes(0))))
    for part in (task.valid, task.test, fixed.train):
        assert all(same(*(by_image(part) for _ in range(2))))
    kept = by_image(fixed.train)
    assert not any(same(first, kept))
    assert not any(same(kept, by_image(padded(path, fixed_noise=True, seed=1).train)))
    # The order of the images is the same, whatever is done about the noise.
    assert_all_equal(*([arrays(each.passes(0))[1]] for each in (task, fixed)))
    # An image's noise stays when it goes over to the others.
    assert same(by_image(padded(path, valid_size=8).valid), kept) == [True] * 3


def test_controls_tell_image_and_noise_apart(cifar_file):
    path, (_, labels, *_) = cifar_file
    task = padded(path, fixed_noise=True)
    trained_on = by_image(task.train)
    other = by_image(task.controls["training images with different noise"])
    assert same(trained_on, other) == [False] * 19
    x, y = arrays(task.controls["their noise alone"])
    assert not x[:, :32].any()
    np.testing.assert_array_equal(y, labels[5:])
    alone = {sequence[32:].tobytes() for sequence in x}
    assert {sequence[32:].tobytes() for sequence in trained_on.values()} == alone
    assert padded(path, length=32).controls == {}
