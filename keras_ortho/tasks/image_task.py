"""Makes tasks from images in files."""

from collections.abc import Callable
from typing import Any

import numpy as np

from keras_ortho.extras import require
from keras_ortho.tasks.images import Images
from keras_ortho.tasks.pipeline import (
    Finish,
    Task,
    batches,
    check_sizes,
    constant_error,
    shuffled_batches,
)


def check_given(**sizes: int | None) -> None:
    """Checks arguments that count, except those that are `None`."""
    check_sizes(**{name: size for name, size in sizes.items() if size is not None})


def make_image_task(
    images: Images,
    arrange: Callable[[np.ndarray], np.ndarray],
    num_classes: int,
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
    total = len(images.train)
    if valid_size >= total:
        raise ValueError(
            f"`valid_size` must be less than the number of training images, {total}. "
            f"Received: valid_size={valid_size}"
        )
    room = {"train_size": total - valid_size, "test_size": len(images.test)}
    for name, size in {"train_size": train_size, "test_size": test_size}.items():
        if size is not None and size > room[name]:
            raise ValueError(
                f"`{name}` must be at most {room[name]}, the number of such images. "
                f"Received: {name}={size}"
            )
    order, noise_seed = (int(n) for n in np.random.SeedSequence(seed).generate_state(2))

    finish = _finisher(noise, noise_seed)

    def kept(x: Any, y: Any, number: Any) -> tuple[Any, Any]:
        return finish(x, y, None)

    def part(
        pixels: np.ndarray, labels: np.ndarray, chosen: slice, first: int = 0
    ) -> dict[str, Any]:
        numbers = first + np.arange(len(labels))
        return {
            "inputs": arrange(pixels[chosen]),
            "targets": np.stack([labels, numbers], axis=1).astype("int32")[chosen],
            "batch_size": batch_size,
            "finish": kept if fixed_noise else finish,
        }

    chosen = slice(valid_size, None if train_size is None else valid_size + train_size)
    trained_on = part(images.train, images.train_labels, chosen)
    train, passes = shuffled_batches(**trained_on, seed=order)
    controls = {}
    if noise:

        def other(x: Any, y: Any, number: Any) -> tuple[Any, Any]:
            return finish(x, y, -1)  # Passes count from 0 on.

        def blank(x: Any, y: Any, number: Any) -> tuple[Any, Any]:
            return kept(0 * x, y, number)

        controls = {
            "training images with different noise": batches(
                **trained_on | {"finish": other}
            ),
            "their noise alone": batches(**trained_on | {"finish": blank}),
        }
    return Task(
        train,
        batches(**part(images.train, images.train_labels, slice(valid_size))),
        # All images have different numbers, and so different noise.
        batches(**part(images.test, images.test_labels, slice(test_size), first=total)),
        passes,
        constant_error(images.train_labels[chosen], images.test_labels[:test_size]),
        num_classes=num_classes,
        controls=controls,
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
