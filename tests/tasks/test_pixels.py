import itertools

import numpy as np
import pytest

from keras_ortho.tasks.pixels import cifar10, mnist
from tests.tasks.image_data import draw, write_mnist

# What dividing by 255, directly or by its reciprocal, may be off by.
RTOL = 3 * np.finfo("float32").eps


def arrays(dataset):
    return [np.concatenate(parts) for parts in zip(*dataset, strict=True)]


@pytest.fixture(scope="module")
def mnist_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mnist")
    return folder, write_mnist(folder, 40, 10)


@pytest.fixture(scope="module")
def cifar_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cifar") / "images.npz"
    (x, y), (x_test, y_test) = draw(24, 0), draw(10, 1)
    np.savez(path, x_train=x, y_train=y, x_test=x_test, y_test=y_test)
    return path, (x, y, x_test, y_test)


@pytest.mark.parametrize("steps", [784, 112, 28, 16, 1])
@pytest.mark.parametrize("permuted", [False, True])
def test_mnist(mnist_folder, steps, permuted):
    folder, (images, labels, test_images, test_labels) = mnist_folder
    task = mnist(folder, steps=steps, permuted=permuted, batch_size=8, valid_size=11)
    assert task.num_classes == 10
    order = np.random.RandomState(92916).permutation(784)

    def sequences(images):
        pixels = images.reshape(len(images), 784) / 255
        pixels = np.stack([row[order] for row in pixels]) if permuted else pixels
        return pixels.reshape(len(images), steps, 784 // steps)

    for dataset, expected, classes in (
        (task.valid, images[:11], labels[:11]),
        (task.test, test_images, test_labels),
    ):
        x, y = arrays(dataset)
        assert x.dtype == "float32"
        assert y.dtype == "int32"
        np.testing.assert_allclose(x, sequences(expected), RTOL)
        np.testing.assert_array_equal(y, classes)
    x, y = arrays(task.train)
    assert [len(y) for _, y in task.train] == [8, 8, 8, 5]
    assert len(task.train) == 4
    # In another order, which sorting by the pixels makes that of the files again.
    expected = sequences(images[11:])
    found, order_there = (np.lexsort(a.reshape(29, -1).T) for a in (x, expected))
    np.testing.assert_allclose(x[found], expected[order_there], RTOL)
    np.testing.assert_array_equal(y[found], labels[11:][order_there])
    assert not np.array_equal(y, labels[11:])


def test_permutation_is_that_of_the_papers(mnist_folder):
    folder, (images, *_) = mnist_folder
    x, _ = next(iter(mnist(folder, permuted=True, valid_size=1).valid))
    first = [319, 576, 323, 107, 355, 716, 197, 20, 625, 60]
    np.testing.assert_allclose(x[0, :10, 0], images[0].ravel()[first] / 255, RTOL)


def test_sizes_take_the_first(mnist_folder):
    folder, (_, labels, _, test_labels) = mnist_folder
    task = mnist(folder, valid_size=11, train_size=7, test_size=3)
    np.testing.assert_array_equal(sorted(arrays(task.train)[1]), sorted(labels[11:18]))
    np.testing.assert_array_equal(arrays(task.valid)[1], labels[:11])
    np.testing.assert_array_equal(arrays(task.test)[1], test_labels[:3])
    whole = mnist(folder, valid_size=11, train_size=29, test_size=10)
    assert len(arrays(whole.train)[1]) == 29
    assert len(arrays(whole.test)[1]) == 10


def test_cifar10_pixels(cifar_file):
    path, (_, _, images, labels) = cifar_file
    task = cifar10(path, batch_size=4, valid_size=5)
    assert task.num_classes == 10
    x, y = arrays(task.test)
    expected = [
        [image[row, column] / 255 for row in range(32) for column in range(32)]
        for image in images
    ]
    assert x.shape == (10, 1024, 3)
    np.testing.assert_allclose(x, expected, RTOL)
    np.testing.assert_array_equal(y, labels)


def padded(path, length=100, **options):
    options = {"batch_size": 4, "valid_size": 5, **options}
    return cifar10(path, form="noise-padded", length=length, **options)


def test_cifar10_noise_padded(cifar_file):
    path, (images, _, test_images, _) = cifar_file
    task = padded(path)
    noises = []
    for dataset, expected in ((task.valid, images[:5]), (task.test, test_images)):
        x, _ = arrays(dataset)
        assert x.shape == (len(expected), 100, 96)
        assert x.dtype == "float32"
        for step in range(32):
            rows = [image[step].ravel() / 255 for image in expected]
            np.testing.assert_allclose(x[:, step], rows, RTOL)
        noises.append(x[:, 32:])
    x, _ = arrays(task.train)
    noise = np.concatenate([*noises, x[:, 32:]]).astype("float64")
    # Standard Gaussian: mean, variance and fourth moment to five standard errors.
    assert noise.mean() == pytest.approx(0, abs=5 / noise.size**0.5)
    assert noise.var() == pytest.approx(1, abs=5 * (2 / noise.size) ** 0.5)
    assert np.mean(noise**4) == pytest.approx(3, abs=5 * (96 / noise.size) ** 0.5)
    # Independent: no two images, steps or channels have the same.
    assert np.unique(noise).size > 0.98 * noise.size
    for one, other in itertools.combinations(noise, 2):
        correlation = np.mean(one * other)
        assert abs(correlation) < 6 / one.size**0.5
    assert abs(np.mean(noise[:, 1:] * noise[:, :-1])) < 5 / noise.size**0.5
    assert abs(np.mean(noise[..., 1:] * noise[..., :-1])) < 5 / noise.size**0.5


def by_image(dataset):
    """The sequence of each image, whatever their order."""
    x, _ = arrays(dataset)
    return {sequence[:32].tobytes(): sequence for sequence in x}


def same(one, other):
    assert one.keys() == other.keys()
    return [np.array_equal(one[image], other[image]) for image in one]


@pytest.mark.slow
def test_noise_is_another_in_each_pass(cifar_file):
    """And a function of the seed, the pass and the image: a run may go on anywhere."""
    path, _ = cifar_file
    task = padded(path)
    first, second = (by_image(task.passes(number)) for number in (0, 1))
    assert not any(same(first, second))
    assert not any(same(first, by_image(padded(path, fixed_noise=True).train)))
    assert all(same(second, by_image(padded(path, batch_size=7).passes(1))))
    assert not any(same(first, by_image(padded(path, seed=1).passes(0))))
    assert not any(same(*(by_image(task.train) for _ in range(2))))
    assert all(same(*(by_image(task.valid) for _ in range(2))))
    assert all(same(*(by_image(task.test) for _ in range(2))))
    noise = np.stack([s[32:] for each in (first, second) for s in each.values()])
    for one, other in itertools.combinations(noise.astype("float64"), 2):
        assert abs(np.mean(one * other)) < 6 / one.size**0.5
    # The order of the images is that of before, whatever is done about the noise.
    kept = arrays(padded(path, fixed_noise=True).passes(0))
    np.testing.assert_array_equal(arrays(task.passes(0))[1], kept[1])


def test_controls_tell_image_and_noise_apart(cifar_file):
    path, (_, labels, *_) = cifar_file
    task = padded(path, fixed_noise=True)
    trained_on = by_image(task.train)
    other = by_image(task.controls["training images with different noise"])
    assert not any(same(trained_on, other))
    x, y = arrays(task.controls["their noise alone"])
    assert not x[:, :32].any()
    np.testing.assert_array_equal(y, labels[5:])
    images = [sequence[:32].tobytes() for sequence in arrays(task.train)[0]]
    alone = {sequence[32:].tobytes() for sequence in x}
    assert {trained_on[image][32:].tobytes() for image in images} == alone
    assert padded(path, length=32).controls == {}


@pytest.mark.slow
def test_noise_may_be_fixed_by_the_seed_and_the_image(cifar_file):
    path, _ = cifar_file
    task = padded(path, fixed_noise=True)
    expected = by_image(task.train)
    assert len(expected) == 19
    shorter = {"train_size": 6, "batch_size": 5}
    for other, count in (
        (task, 19),  # the next epoch, in another order
        (padded(path, fixed_noise=True), 19),
        (padded(path, fixed_noise=True, **shorter), 6),
    ):
        found = by_image(other.train)
        assert len(found) == count
        for image, sequence in found.items():
            np.testing.assert_array_equal(sequence, expected[image])
    # An image's noise stays when it goes over to the others.
    moved = by_image(padded(path, valid_size=8).valid)
    assert sum(image in expected for image in moved) == 3
    for image in moved.keys() & expected.keys():
        np.testing.assert_array_equal(moved[image], expected[image])
    # Of another seed, the images are the same and the noise is not.
    other = by_image(padded(path, fixed_noise=True, seed=1).train)
    assert other.keys() == expected.keys()
    for image, sequence in other.items():
        assert not np.isin(sequence[32:], expected[image][32:]).all(axis=-1).any()
