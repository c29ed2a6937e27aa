"""Candidates that the recurrence benchmark compares.

A candidate takes a shape and returns two functions without arguments: a training step
(forward pass, gradient, Adam) and an inference step. Both use data in host memory and
return when the computation is complete. The model reads one number per time step and
ends in a dense layer with ten outputs, as for the papers' pixel-by-pixel images.
"""

import functools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops
from shapes import FEATURES, OUTPUTS, Shape, Steps, data
from torch_candidates import torch_steps

from keras_ortho import ScoRNN, ScoRNNCell
from keras_ortho.backend import scan, stack
from keras_ortho.baselines import matched_units
from keras_ortho.parametrizations.cayley import diagonal_signs, scaled_cayley
from keras_ortho.parametrizations.skew import num_entries


def network(layer: keras.layers.Layer, shape: Shape) -> keras.Model:
    """Makes the model in which every layer is measured."""
    return keras.Sequential(
        [
            keras.Input((shape.steps, shape.features)),
            layer,
            keras.layers.Dense(OUTPUTS),
        ]
    )


def keras_steps(make: Callable[[int], keras.layers.Layer], shape: Shape) -> Steps:
    """Makes the steps of a Keras model with one recurrent layer."""
    model = network(make(shape.units), shape)
    # Without a GPU, Keras compiles with XLA only on request.
    jit_compile = shape.jit_compile or keras.backend.backend() == "jax"
    model.compile("adam", "mse", jit_compile=jit_compile)
    x, y = data(shape)
    return (
        functools.partial(model.train_on_batch, x, y),
        functools.partial(model.predict_on_batch, x),
    )


def matched(kind: str, n: int) -> int:
    """Finds the number of units that matches the parameter count of a scoRNN."""
    parameters = num_entries(n) + FEATURES * n + n
    kind = {"SimpleRNN": "simple_rnn"}.get(kind, kind.lower())
    return matched_units(kind, parameters, FEATURES)


def _compiled(function: Callable[[], Any], jit_compile: bool) -> Callable[[], Any]:
    """Compiles a function; the result waits until its outputs are computed."""
    if keras.backend.backend() == "jax":
        import jax

        compiled = jax.jit(function)
        return lambda: jax.block_until_ready(compiled())
    import tensorflow as tf

    traced = tf.function(function, jit_compile=jit_compile or None)
    return lambda: [x.numpy() for x in traced()]


def floor_steps(shape: Shape, heads: int = 1, dtype: str = "float32") -> Steps:
    """Makes steps of the matrix products alone, the minimum for a plain recurrence.

    They are a product of state and matrix at each time step, forward and backward, and
    one product over all time steps for the gradient of the matrix.
    """
    order = shape.units // heads
    random = np.random.default_rng(0)
    rows = (order,) if heads == 1 else (heads, order)
    state = ops.convert_to_tensor(random.normal(size=(shape.batch, *rows)), dtype)
    matrix = np.linalg.qr(random.normal(size=(*rows, order)))[0]
    kernel = ops.convert_to_tensor(matrix, dtype)
    product, outer = "bi,ij->bj", "bi,bj->ij"
    if heads > 1:
        product, outer = "bhi,hij->bhj", "bhi,bhj->hij"

    def states() -> tuple[Any, Any]:
        def step(carry: tuple, index: Any, entries: tuple) -> tuple:
            (state,) = carry
            state = ops.einsum(product, state, kernel)
            return (state,), (state,)

        (last,), (states,) = scan(
            step,
            (state,),
            length=shape.steps,
            collect=(((shape.batch, *rows), dtype),),
        )
        return last, ops.reshape(stack(states), (-1, *rows))

    def train() -> tuple[Any, ...]:
        _, befores = states()
        last, others = states()
        return last, ops.einsum(outer, befores, others)

    return (
        _compiled(train, shape.jit_compile),
        _compiled(lambda: states()[:1], shape.jit_compile),
    )


def cayley_steps(shape: Shape) -> Steps:
    """Makes steps of the scaled Cayley transform, which every scoRNN step contains."""
    n = shape.units
    random = np.random.default_rng(0)
    entries = ops.convert_to_tensor(0.1 * random.normal(size=num_entries(n)), "float32")
    signs = ops.convert_to_tensor(diagonal_signs(n, 0.5), "float32")
    upstream = ops.convert_to_tensor(random.normal(size=(n, n)), "float32")

    def loss(entries: Any) -> Any:
        return ops.sum(scaled_cayley(entries, signs) * upstream)

    def train() -> tuple[Any, ...]:
        if keras.backend.backend() == "jax":
            import jax

            return (jax.grad(loss)(entries),)
        import tensorflow as tf

        with tf.GradientTape() as tape:
            tape.watch(entries)
            value = loss(entries)
        return (tape.gradient(value, entries),)

    return (
        _compiled(train, shape.jit_compile),
        _compiled(lambda: (scaled_cayley(entries, signs),), shape.jit_compile),
    )


def _layer(make: Callable[[int], keras.layers.Layer]) -> Callable[[Shape], Steps]:
    return functools.partial(keras_steps, make)


def _of_equal_size(kind: str) -> Callable[[Shape], Steps]:
    def steps(shape: Shape) -> Steps:
        units = matched(kind, shape.units)
        layer = getattr(keras.layers, kind)
        return keras_steps(lambda _: layer(units), shape)

    return steps


# The keys are the names in tables and plots.
CANDIDATES: dict[str, Callable[[Shape], Steps]] = {
    "SimpleRNN": _layer(keras.layers.SimpleRNN),
    "ScoRNN": _layer(ScoRNN),
    "RNN(ScoRNNCell)": _layer(lambda n: keras.layers.RNN(ScoRNNCell(n))),
    "ScoRNN, recompute": _layer(lambda n: ScoRNN(n, recompute=True)),
    "LSTM": _layer(keras.layers.LSTM),
    "GRU": _layer(keras.layers.GRU),
    "LSTM, equal parameters": _of_equal_size("LSTM"),
    "GRU, equal parameters": _of_equal_size("GRU"),
    "torch RNN, orthogonal": torch_steps,
    "matrix products": floor_steps,
    "Cayley transform": cayley_steps,
}
