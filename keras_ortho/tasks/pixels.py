"""Images read pixel by pixel or row by row: MNIST and CIFAR-10."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from keras_ortho.checks import check, check_choice
from keras_ortho.extras import require
from keras_ortho.files import FilePath
from keras_ortho.tasks import pipeline
from keras_ortho.tasks.images import Images, read_images

FORMS: dict[str, tuple[int, ...]] = {
    "pixels": (1024, 3),
    "noise-padded": (32, 96),
    "flat": (3072,),
}


def mnist(
    data_dir: FilePath | None = None,
    *,
    steps: int = 784,
    permuted: bool = False,
    batch_size: int = 50,
    valid_size: int = 5_000,
    train_size: int | None = None,
    test_size: int | None = None,
    seed: int = 0,
) -> pipeline.Task:
    """Makes pixel-by-pixel MNIST: classify the digit.

    As in the authors' code, the first training images are set aside, here for
    validation; the others have a new order in each epoch.

    Args:
        data_dir: As for `keras_ortho.tasks.images.read_images`. Default: `None`.
        steps: Number of steps into which the 784 pixels are divided. Default: 784.
        permuted: Whether to permute the pixels as the papers do, by
            `numpy.random.RandomState(92916).permutation(784)`. Default: `False`.
        batch_size: Images in a batch. Default: 50.
        valid_size: Number of validation images. Default: 5 000.
        train_size: Number of training images after these. Default: `None`, all.
        test_size: Number of test images, the first ones. Default: `None`, all.
        seed: Seed of the order of the training images. Default: 0.

    Returns:
        A `Task` of float32 inputs `(batch, steps, 784 / steps)`, from 0 to 1, and int32
        targets `(batch,)`, the digits.

    Raises:
        ValueError: If an argument is out of range, or a file is damaged.

    Example:
    ```python
    task = mnist("mnist", permuted=True)
    ```

    Reference:
    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 5.3, split and permutation as in the authors' released code
    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html), for 28
      and 112 steps
    """

    def arrange(images: np.ndarray) -> np.ndarray:
        flat = images.reshape(len(images), 784)
        if permuted:
            flat = flat[:, np.random.RandomState(92916).permutation(784)]
        return flat.reshape(len(images), steps, -1)

    sizes = valid_size, train_size, test_size
    return _make_task(read_images("mnist", data_dir), arrange, batch_size, sizes, seed)


def cifar10(
    data_dir: FilePath | None = None,
    *,
    form: Literal["pixels", "noise-padded", "flat"] = "pixels",
    length: int = 1_000,
    batch_size: int = 128,
    valid_size: int = 5_000,
    train_size: int | None = None,
    test_size: int | None = None,
    fixed_noise: bool = False,
    seed: int = 0,
) -> pipeline.Task:
    """Makes CIFAR-10, as a sequence or a vector: classify the image.

    The first training images are set aside for validation; the papers train on all
    50 000. Values are scaled to 0 .. 1.
    The noise is standard Gaussian, and another one in each epoch.

    Args:
        data_dir: As for `keras_ortho.tasks.images.read_images`. Default: `None`.
        form: `"pixels"`: 1 024 steps of red, green and blue; `"noise-padded"`: 32
            steps of a row of 32 pixels each, followed by noise; `"flat"`: a vector.
            Default: `"pixels"`.
        length: Number of steps of `"noise-padded"`, at least 32. Default: 1 000.
        batch_size: Images in a batch. Default: 128.
        valid_size: As for `mnist`. Default: 5 000.
        train_size: As for `mnist`. Default: `None`.
        test_size: As for `mnist`. Default: `None`.
        fixed_noise: Whether the noise is the same in each epoch. Default: `False`.
        seed: Seed of the order of the training images and of the noise. Default: 0.

    Returns:
        A `Task` of float32 inputs `(batch, 1024, 3)`, `(batch, length, 96)` or
        `(batch, 3072)`, and int32 targets `(batch,)`, the classes. With noise, it has
        `controls`: the training images with noise that no epoch has, and blank images
        with their `fixed_noise`.

    Raises:
        ValueError: If an argument is out of range, or a file is damaged.

    Example:
    >>> x, y = np.zeros((9, 32, 32, 3), "uint8"), np.arange(9)
    >>> np.savez("cifar10.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    >>> task = cifar10("cifar10.npz", form="noise-padded", valid_size=4)

    Reference:
    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), section 5 and
      appendix C
    """
    check_choice("form", form, FORMS)
    noise = length - 32 if form == "noise-padded" else 0
    check(noise >= 0, "length", "be at least 32", f"length={length}")

    def arrange(images: np.ndarray) -> np.ndarray:
        return images.reshape(len(images), *FORMS[form])

    images = read_images("cifar10", data_dir)
    sizes = valid_size, train_size, test_size
    return _make_task(images, arrange, batch_size, sizes, seed, noise, fixed_noise)


def _make_task(
    images: Images,
    arrange: Callable[[np.ndarray], np.ndarray],
    batch_size: int,
    sizes: tuple[int, int | None, int | None],
    seed: int,
    noise: int = 0,
    fixed_noise: bool = False,
) -> pipeline.Task:
    """Makes a task of images, which `arrange` reshapes, and steps of noise."""
    total, tested = len(images.train), len(images.test)
    valid_size, train_size, test_size = sizes
    valid_size, train_size, test_size = pipeline.check_sizes(
        valid_size=valid_size,
        train_size=total - valid_size if train_size is None else train_size,
        test_size=tested if test_size is None else test_size,
    )
    fits = valid_size + train_size <= total and test_size <= tested
    wanted = f"leave enough of the {total} images for training, {tested} for the test"
    check(fits, "valid_size", wanted, f"{valid_size=}, {train_size=}, {test_size=}")
    order = np.random.SeedSequence(seed)
    noise_seed = int(order.generate_state(2)[1])
    # All images have different numbers, and so different noise.
    labels = np.concatenate([images.train_labels, images.test_labels])
    y = np.column_stack([labels, np.arange(len(labels))]).astype("int32")
    x, end = arrange(images.train), valid_size + train_size
    train = x[valid_size:end], y[valid_size:end]
    test = arrange(images.test[:test_size]), y[total : total + test_size]

    def finish(x: Any, y: Any, number: Any) -> tuple[Any, Any]:
        tf = require("tensorflow")
        x = tf.cast(x, tf.float32) / 255.0
        if noise:
            padding = _noise(y[:, 1], (noise, x.shape[-1]), noise_seed, number)
            x = tf.concat([x, padding], axis=1)
        return x, y[:, 0]

    task = pipeline.make_task(
        train,
        (x[:valid_size], y[:valid_size]),
        test,
        pipeline.constant_error(train[1][:, 0], test[1][:, 0]),
        10,
        order=order,
        batch_size=batch_size,
        finish=lambda x, y, number: finish(x, y, None if fixed_noise else number),
    )
    if not noise:
        return task
    controls = {
        # Passes count from 0 on.
        "training images with different noise": lambda x, y, _: finish(x, y, -1),
        "their noise alone": lambda x, y, _: finish(0 * x, y, None),
    }
    form = {"batch_size": batch_size}
    shown = {k: pipeline.batches(*train, finish=f, **form) for k, f in controls.items()}
    return dataclasses.replace(task, controls=shown)


def _noise(images: Any, shape: tuple[int, int], seed: int, number: Any) -> Any:
    """Draws the noise of numbered images in a pass; all of it would take 20 GB."""
    tf = require("tensorflow")
    # Without a named algorithm, each kind of device draws different numbers.
    philox = tf.random.Algorithm.PHILOX

    def draw(image: Any) -> Any:
        seeds = tf.stack([tf.constant(seed, tf.int64), tf.cast(image, tf.int64)])
        if number is not None:
            seeds = tf.random.experimental.stateless_fold_in(
                seeds, tf.cast(number, tf.int64), alg=philox
            )
        return tf.random.stateless_normal(shape, seeds, alg=philox)

    return tf.map_fn(draw, images, fn_output_signature=tf.TensorSpec(shape, tf.float32))
