"""Layers and cells to test, their weights, and the gradients of these."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import keras
import numpy as np
import pytest
from keras import ops

from tests import reference
from tests.gradients import weight_gradients

EPS64 = np.finfo("float64").eps


def weights_of(layer: keras.Layer) -> dict[str, np.ndarray]:
    """The values of all weights, by name."""
    return {w.name: ops.convert_to_numpy(w) for w in layer.weights}


def built(cls: type[keras.Layer], *args, features=3, **kwargs) -> keras.Layer:
    """Builds a layer, or a cell, for three features."""
    layer = cls(*args, **kwargs)
    is_layer = issubclass(cls, keras.layers.RNN)
    layer.build((None, None, features) if is_layer else (None, features))
    return layer


def lively(
    layer: keras.Layer,
    scale: float = 0.5,
    seed: int = 0,
    names: Iterable[str] | None = None,
) -> keras.Layer:
    """Gives a built layer normal weights, or those named, so that noise hides none."""
    random = np.random.default_rng(seed)
    for weight in layer.trainable_variables:
        if names is None or weight.name in names:
            weight.assign(scale * random.normal(size=weight.shape))
    return layer


@contextmanager
def refused(layer: keras.Layer, message: str) -> Iterator[None]:
    """Expects a `ValueError`, and that no weight has changed."""
    before = layer.get_weights()
    with pytest.raises(ValueError, match=message):
        yield
    for value, old in zip(layer.get_weights(), before, strict=True):
        np.testing.assert_array_equal(value, old)


def assert_gradients(
    layer: keras.Layer,
    outputs: Callable[[np.ndarray, dict[str, np.ndarray]], np.ndarray],
    shape: tuple[int, ...],
) -> None:
    """Holds the gradients of a layer in float64 against central differences.

    `outputs` is what the layer makes of inputs with weights, in NumPy.
    """
    x = np.random.default_rng(0).normal(size=shape)
    weights = weights_of(layer)
    upstream = np.random.default_rng(1).normal(size=outputs(x, weights).shape)
    _, found = weight_gradients(layer, lambda h: ops.sum(h * upstream), x)
    assert set(found) == {weight.name for weight in layer.trainable_weights}
    # Differences are exact to eps^(2/3), times third derivatives.
    step, atol = EPS64 ** (1 / 3), 1e4 * EPS64 ** (2 / 3)
    for name, gradient in found.items():

        def loss(value, name=name):
            return np.sum(outputs(x, {**weights, name: value}) * upstream)

        expected = reference.central_differences(loss, weights[name], step)
        np.testing.assert_allclose(gradient, expected, atol=atol, err_msg=name)
