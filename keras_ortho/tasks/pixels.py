"""Images read pixel by pixel or row by row: MNIST and CIFAR-10."""

import os
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from keras_ortho.checks import check_choice, check_seed
from keras_ortho.extras import require
from keras_ortho.tasks.images import CLASSES, read_images
from keras_ortho.tasks.pipeline import (
    Finish,
    Task,
    batches,
    check_sizes,
    constant_error,
    shuffled_batches,
)

MNIST_PIXELS = 784
PERMUTATION_SEED = 92916
FORMS: dict[str, tuple[int, ...]] = {
    "pixels": (1024, 3),
    "noise-padded": (32, 96),
    "flat": (3072,),
}


def mnist(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    steps: int = MNIST_PIXELS,
    permuted: bool = False,
    batch_size: int = 50,
    valid_size: int = 5_000,
    train_size: int | None = None,
    test_size: int | None = None,
    seed: int = 0,
) -> Task:
    """Makes pixel-by-pixel MNIST: classify the digit.

    As in the authors' code, the first 5 000 training images are set aside, here for
    validation, and the other 55 000 are trained on, in a new order each epoch.

    Args:
        data_dir: Folder of MNIST's four files, or Keras's file `mnist.npz`, as in
            `keras_ortho.tasks.images.read_images`. Default: `None`,
            `keras.datasets.mnist`, which downloads it once.
        steps: Number of steps into which the 784 pixels, row by row, are divided: a
            divisor of 784, such as 784, 112 or 28. Default: 784, one pixel per step.
        permuted: Whether to permute the pixels of every image, by the permutation of
            the papers, `numpy.random.RandomState(92916).permutation(784)`.
            Default: `False`.
        batch_size: Images in a batch. Default: 50.
        valid_size: Number of validation images, to choose an epoch on. Default:
            5 000.
        train_size: Number of images to train on, the first after the validation
            images. Default: `None`, all.
        test_size: Number of test images, the first ones. Default: `None`, all.
        seed: Seed of the order of the training images. Default: 0.

    Returns:
        A `Task`: its data sets yield float32 `(batch, steps, 784 / steps)`, pixels
        from 0 to 1, and int32 `(batch,)`, digits.

    Raises:
        FileNotFoundError: If the files are missing.
        ValueError: If an argument is invalid, or a file is damaged.
        ImportError: If TensorFlow is not installed.

    Example:
    ```python
    task = mnist("mnist", permuted=True)
    model.fit(task.train, validation_data=task.valid, epochs=70)
    ```

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 5.3, split and permutation as in the authors' released code
    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html), for 28
      and 112 steps
    """
    check_sizes(steps=steps)
    if MNIST_PIXELS % steps:
        raise ValueError(f"`steps` must divide {MNIST_PIXELS}. Received: steps={steps}")
    pixels: Any = slice(None)
    if permuted:
        random = np.random.RandomState(PERMUTATION_SEED)
        pixels = random.permutation(MNIST_PIXELS)

    def arrange(images: np.ndarray) -> np.ndarray:
        flat = images.reshape(len(images), MNIST_PIXELS)
        return flat[:, pixels].reshape(len(images), steps, -1)

    return _make_task(
        "mnist",
        data_dir,
        arrange,
        batch_size=batch_size,
        valid_size=valid_size,
        train_size=train_size,
        test_size=test_size,
        seed=seed,
    )


def cifar10(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    form: Literal["pixels", "noise-padded", "flat"] = "pixels",
    length: int = 1_000,
    batch_size: int = 128,
    valid_size: int = 5_000,
    train_size: int | None = None,
    test_size: int | None = None,
    fixed_noise: bool = False,
    seed: int = 0,
) -> Task:
    """Makes CIFAR-10, as a sequence or a vector: classify the image.

    The first `valid_size` training images are set aside for validation; the papers
    train on all 50 000. They do not say how they scale the values: here to 0 .. 1.

    The noise is drawn batch by batch, from the seed, the number of the image in its
    files and, for a training image, the number of the pass. It thus differs in each
    epoch, and a resumed run has the noise of an uninterrupted one. A network that sees
    an image with the same noise again learns to recognize images by their noise. The
    paper specifies independent standard Gaussian noise, but not whether it is drawn
    anew.

    Args:
        data_dir: A file of `numpy.savez` with `x_train`, `y_train`, `x_test` and
            `y_test`, or its folder. Default: `None`, `keras.datasets.cifar10`, which
            downloads it once.
        form: `"pixels"`: 1 024 steps of red, green and blue; `"noise-padded"`: 32
            steps of a row of 32 pixels each, followed by noise; `"flat"`: a vector,
            not a sequence. Default: `"pixels"`.
        length: Number of steps of `"noise-padded"`, including noise, at least 32.
            Default: 1 000.
        batch_size: Images in a batch. Default: 128.
        valid_size: Number of validation images, to choose an epoch on. Default:
            5 000.
        train_size: Number of images to train on, the first after the validation
            images. Default: `None`, all.
        test_size: Number of test images, the first ones. Default: `None`, all.
        fixed_noise: Whether a training image has the same noise in each epoch, as
            validation and test images always do. Default: `False`.
        seed: Seed of the order of the training images and of the noise. Default: 0.

    Returns:
        A `Task`: its data sets yield float32 `(batch, 1024, 3)`,
        `(batch, length, 96)` or `(batch, 3072)`, and int32 `(batch,)`, classes. With
        `"noise-padded"` and any noise, it has `controls`, which show what a network
        has learned from: the training images with noise that no epoch has, and blank
        images with the noise that the training images have with `fixed_noise`.

    Raises:
        FileNotFoundError: If the files are missing.
        ValueError: If an argument is invalid, or a file is damaged.
        ImportError: If TensorFlow is not installed.

    Example:
    >>> x, y = np.zeros((9, 32, 32, 3), "uint8"), np.arange(9)
    >>> np.savez("cifar10.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    >>> task = cifar10("cifar10.npz", form="noise-padded", valid_size=4)

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), section 5 and
      appendix C
    """
    check_sizes(length=length)
    check_choice("form", form, FORMS)
    noise = 0
    if form == "noise-padded":
        noise = length - FORMS[form][0]
        if noise < 0:
            raise ValueError(
                "`length` must be at least 32, the rows of an image. "
                f"Received: length={length}"
            )
    return _make_task(
        "cifar10",
        data_dir,
        lambda images: images.reshape(len(images), *FORMS[form]),
        batch_size=batch_size,
        valid_size=valid_size,
        train_size=train_size,
        test_size=test_size,
        seed=seed,
        noise=noise,
        fixed_noise=fixed_noise,
    )


def _make_task(
    name: Literal["mnist", "cifar10"],
    data_dir: str | os.PathLike[str] | None,
    arrange: Callable[[np.ndarray], np.ndarray],
    *,
    batch_size: int,
    valid_size: int,
    train_size: int | None,
    test_size: int | None,
    seed: int,
    noise: int = 0,
    fixed_noise: bool = False,
) -> Task:
    """Makes a task of images, of values from 0 to 1 and classes.

    `arrange` reshapes images, still as bytes, as the network reads them: to
    `(images, steps, width)` or `(images, width)`. The first `valid_size` training
    images are for validation; `train_size` and `test_size` of `None` are all others.
    `noise` steps follow those of an image; with `fixed_noise`, a training image keeps
    its noise, as validation and test images do. Noise comes with `controls`.
    """
    sizes = {"train_size": train_size, "test_size": test_size}
    given = {key: size for key, size in sizes.items() if size is not None}
    check_sizes(batch_size=batch_size, valid_size=valid_size, **given)
    check_seed("seed", seed)
    images = read_images(name, data_dir)
    total = len(images.train)
    if valid_size >= total:
        raise ValueError(
            f"`valid_size` must be less than the number of training images, {total}. "
            f"Received: valid_size={valid_size}"
        )
    room = {"train_size": total - valid_size, "test_size": len(images.test)}
    for key, size in given.items():
        if size > room[key]:
            raise ValueError(
                f"`{key}` must be at most {room[key]}, the number of such images. "
                f"Received: {key}={size}"
            )
    order, noise_seed = (int(n) for n in np.random.SeedSequence(seed).generate_state(2))

    finish = _finisher(noise, noise_seed)

    def with_noise_of(number: int | None, brightness: int = 1) -> Finish:
        def convert(x: Any, y: Any, _: Any) -> tuple[Any, Any]:
            return finish(brightness * x, y, number)

        return convert

    def part(
        pixels: np.ndarray, labels: np.ndarray, chosen: slice, first: int = 0
    ) -> dict[str, Any]:
        numbers = first + np.arange(len(labels))
        return {
            "inputs": arrange(pixels[chosen]),
            "targets": np.stack([labels, numbers], axis=1).astype("int32")[chosen],
            "batch_size": batch_size,
            "finish": with_noise_of(None) if fixed_noise else finish,
        }

    chosen = slice(valid_size, None if train_size is None else valid_size + train_size)
    trained_on = part(images.train, images.train_labels, chosen)
    train, passes = shuffled_batches(**trained_on, seed=order)
    controls = {
        # Passes count from 0 on.
        "training images with different noise": with_noise_of(-1),
        "their noise alone": with_noise_of(None, brightness=0),
    }
    return Task(
        train,
        batches(**part(images.train, images.train_labels, slice(valid_size))),
        # All images have different numbers, and so different noise.
        batches(**part(images.test, images.test_labels, slice(test_size), first=total)),
        passes,
        constant_error(images.train_labels[chosen], images.test_labels[:test_size]),
        num_classes=CLASSES,
        controls={
            key: batches(**trained_on | {"finish": convert})
            for key, convert in controls.items()
            if noise
        },
    )


def _finisher(noise: int, seed: int) -> Finish:
    """Returns a function from bytes, and labels with numbers, to a network's batches.

    Bytes take a quarter of the memory, and all the noise would take 20 GB. The noise
    depends on the seed, the number of the image and, if there is one, the number of the
    pass, so that a resumed run has the noise of an uninterrupted one.
    """
    tf = require("tensorflow")
    # Without a named algorithm, each kind of device draws different numbers.
    philox = tf.random.Algorithm.PHILOX

    def draw(image: Any, number: Any, width: int) -> Any:
        seeds = tf.stack([tf.constant(seed, tf.int64), image])
        if number is not None:
            number = tf.cast(number, tf.int64)
            seeds = tf.random.experimental.stateless_fold_in(seeds, number, alg=philox)
        return tf.random.stateless_normal((noise, width), seeds, alg=philox)

    def finish(x: Any, y: Any, number: Any) -> tuple[Any, Any]:
        x = tf.cast(x, tf.float32) / 255.0
        if noise:
            padding = tf.map_fn(
                lambda image: draw(image, number, x.shape[-1]),
                tf.cast(y[:, 1], tf.int64),
                fn_output_signature=tf.float32,
            )
            x = tf.concat([x, padding], axis=1)
        return x, y[:, 0]

    return finish
