"""States through time: their gradients, derivatives and trajectories."""

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_ortho.backend import gradients, scan, stack
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.cells import RecurrentCell
from keras_ortho.checks import check
from keras_ortho.diagnostics.matrices import of_finite
from keras_ortho.diagnostics.probe import Probe, Steps, entries, exact, probe_of
from keras_ortho.keras_internals import get_keras_mask, get_loss
from keras_ortho.parametrizations.arithmetic import divide


def gradient_norms(
    model: keras.layers.Layer,
    x: Any,
    y: Any,
    *,
    layer: str | keras.layers.RNN | None = None,
    state: int | None = 0,
    units: slice | None = None,
    loss: Any = None,
) -> np.ndarray:
    """Computes `||dL/dh_t||_2` for each time step `t`, averaged over a batch.

    As in [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
    figure 5. `L` is the loss of one sequence, a mean over its outputs. The gradient is
    the total derivative, through later steps and the output at `t`; other states at `t`
    are held fixed. Masked steps, dropout, regularizers and sample weights do not count.

    Args:
        model: A built model with one output and a recurrent layer, of this package or
            of Keras, or such a layer. It does not change.
        x: Inputs of the model: an array of shape `(batch, ...)`, or nested arrays.
        y: Targets, an array of shape `(batch, ...)`.
        layer: Recurrent layer or its name. Default: `None`, the only recurrent layer.
        state: Index of the state, as 1 for `c` of an LSTM, or `None`, all. Default: 0.
        units: Slice that selects units of the state. Default: `None`, all units.
        loss: Keras loss, its name, or a function of `y` and the output. A scalar is
            taken as the mean over the batch. Default: `None`, the compiled loss.

    Returns:
        Array of shape `(time,)`, float64, in the order in which the layer reads.

    Raises:
        ValueError: If the model is not built, or has several outputs, losses or layers.

    Example:
    >>> x, y = np.ones((8, 3, 2)), np.zeros((8, 4))
    >>> gradient_norms(model, x, y, loss="mse").shape
    (3,)
    """
    received = getattr(model, "loss", None) if loss is None else loss
    losses = [each for each in tree.flatten(received) if each is not None]
    wanted = "be a single loss: the model is not compiled with exactly one"
    check(len(losses) == 1, "loss", wanted, f"loss={received!r}")
    probe = probe_of(model, layer, _gradients, state, units, losses[0])
    found, mask = probe(x, y)
    # In float32, the squares of small gradients would underflow.
    norms = np.linalg.norm(found.astype("float64"), axis=-1)
    return (norms * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1)


def input_sensitivity(
    model: keras.layers.Layer,
    x: Any,
    *,
    layer: str | keras.layers.RNN | None = None,
    state: int | None = 0,
    units: slice | None = None,
) -> np.ndarray:
    """Computes `||dh_tau/dx_t||_2` for all `tau` and `t`, averaged over a batch.

    As in [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964). The norm is the
    largest singular value; `x_t` is the input of the recurrent layer. Dropout is off.

    Args:
        model: As in `gradient_norms`, with any outputs.
        x: Inputs of the model, of shape `(batch, ...)`; a few sequences are enough.
        layer: Recurrent layer or its name. Default: `None`, the only recurrent layer.
        state: As in `gradient_norms`. Default: 0.
        units: As in `gradient_norms`. Default: `None`, all units.

    Returns:
        Array of shape `(time, time)`, float64, with a row for each `tau`.

    Raises:
        ValueError: If the model is not built, or has no such layer or state.

    Example:
    >>> input_sensitivity(model, np.ones((2, 3, 2))).shape
    (3, 3)
    """
    probe = probe_of(model, layer, _answer, _sensitivity, state, units)
    return probe(x).astype("float64").mean(axis=1)


def end_to_end_jacobians(
    model: keras.layers.Layer,
    x: Any,
    *,
    layer: str | keras.layers.RNN | None = None,
    state: int | None = 0,
    units: slice | None = None,
) -> np.ndarray:
    """Computes `dh_T/dh_0`, the Jacobian with respect to the initial state.

    The arguments are those of `input_sensitivity`. Other initial states are held fixed.

    Returns:
        Array of shape `(batch, n, n)`, float64, with a row for each entry of `h_T`.

    Example:
    >>> end_to_end_jacobians(model, np.ones((2, 3, 2))).shape
    (2, 4, 4)
    """
    probe = probe_of(model, layer, _answer, _product, state, units)
    return probe(x).astype("float64")


def jacobian_eigenvalues(
    model: keras.layers.Layer,
    x: Any,
    *,
    layer: str | keras.layers.RNN | None = None,
    state: int | None = 0,
    units: slice | None = None,
) -> np.ndarray:
    """Computes the eigenvalues of `dh_T/dh_0`, with the same arguments.

    Moduli near 1 indicate that gradients neither explode nor vanish. As in
    [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), figure 2.

    Returns:
        Array of shape `(batch, n)`, complex128. NaN for a Jacobian that is not finite.

    Example:
    >>> jacobian_eigenvalues(model, np.ones((2, 3, 2))).shape
    (2, 4)
    """
    jacobians = end_to_end_jacobians(model, x, layer=layer, state=state, units=units)
    return of_finite(jacobians, np.linalg.eigvals).astype("complex128")


def trajectories(
    model: keras.layers.Layer,
    starts: Any,
    num_steps: int,
    *,
    layer: str | keras.layers.RNN | None = None,
) -> np.ndarray:
    """Computes trajectories of a recurrent layer's state under zero inputs.

    As in [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), figure 1.

    Args:
        model: As in `gradient_norms`, with one state of two numbers.
        starts: Initial states, an array of shape `(starts, 2)`.
        num_steps: Number of steps, a positive integer.
        layer: As in `gradient_norms`.

    Returns:
        Array of shape `(starts, num_steps + 1, 2)`, float64, from `starts` on.

    Raises:
        ValueError: If the model is not built, or has no such layer.

    Example:
    >>> layer = keras.layers.SimpleRNN(2)
    >>> layer.build((None, None, 1))
    >>> trajectories(layer, [[0.5, 0.5], [-1.0, 0.0]], 10).shape
    (2, 11, 2)
    """
    starts = np.asarray(starts, "float64").reshape(-1, 2)
    after = probe_of(model, layer, _states, num_steps)(starts).astype("float64")
    return np.concatenate([starts[:, None], np.swapaxes(after, 0, 1)], axis=1)


def vector_field(
    model: keras.layers.Layer,
    points: Any,
    *,
    layer: str | keras.layers.RNN | None = None,
) -> np.ndarray:
    """Computes the change `h' - h` of the state in one step with zero inputs.

    Args:
        model: As in `trajectories`.
        points: The states `h`, an array of shape `(points, 2)`.
        layer: As in `trajectories`. Default: `None`, the only recurrent layer.

    Returns:
        Array of shape `(points, 2)`, float64.

    Example:
    >>> layer = keras.layers.SimpleRNN(2)
    >>> layer.build((None, None, 1))
    >>> vector_field(layer, [[0.0, 0.0]])
    array([[0., 0.]])
    """
    return np.diff(trajectories(model, points, 1, layer=layer), axis=1)[:, 0]


def _gradients(
    state: Any, units: Any, loss: Any, probe: Probe, x: Any, y: Any
) -> tuple[Tensor, Tensor]:
    # Only for the shapes and the mask: the compiler leaves the rest out.
    _, (before, mask) = probe.observe(x, lambda _, x, states, mask: (states, mask))

    def total(shift: Tensor) -> Tensor:
        flat = tree.flatten((y, probe.observe(x, lambda *_: None, shift)[0]))
        wanted, count = "have one output, and `y` its targets", len(flat)
        check(count == 2, "model", wanted, f"{count} outputs and targets")
        return ops.sum(_losses(loss, *flat))

    (found,) = gradients(total, [ops.zeros_like(before)])
    chosen = entries(probe.layer, state, units)
    return ops.take(exact(found), chosen, axis=-1), mask


def _losses(loss: Any, y: Tensor, output: Tensor) -> Tensor:
    """Computes the loss of each sequence, a mean over time steps not masked."""
    mask = get_keras_mask(output)
    # Keras would cast both to float32; this keeps the precision of the output.
    dtype = wide_dtype(output.dtype)
    y, output = ops.cast(y, dtype), ops.cast(output, dtype)
    values = ops.convert_to_tensor(get_loss(loss, y, output).call(y, output))
    size = ops.shape(output)[0]
    if len(values.shape) == 0:  # The mean over the batch.
        return values * size
    if mask is None or len(values.shape) < 2:
        return ops.mean(ops.reshape(values, (size, -1)), axis=1)
    weights = ops.cast(mask, dtype)
    values = ops.mean(ops.reshape(values, (*ops.shape(mask), -1)), axis=2)
    counts = ops.maximum(ops.sum(weights, axis=1), 1)
    return ops.sum(values * weights, axis=1) / counts


def _answer(
    question: Callable[..., Tensor], state: Any, units: Any, probe: Probe, x: Any
) -> Tensor:
    chosen = entries(probe.layer, state, units)
    return probe.observe(x, partial(question, chosen))[1]


def _sensitivity(
    chosen: np.ndarray, steps: Steps, inputs: Tensor, before: Tensor, mask: Tensor
) -> Tensor:
    """Returns the norms of the chosen rows, of shape `(time, batch, time)`."""
    (time, batch, size), width = ops.shape(before), ops.shape(inputs)[-1]
    when = ops.repeat(ops.arange(time, dtype="int32"), width)

    def step(carry: tuple, index: Tensor, given: tuple) -> tuple:
        by_state, by_inputs = steps.jacobians(*given)
        # The columns of a time step are zero before it.
        now = ops.where(when == index, ops.tile(by_inputs, (1, 1, time)), 0)
        after = ops.matmul(by_state, carry[0]) + now
        rows = ops.take(after, chosen, axis=1)
        blocks = ops.reshape(rows, (batch, len(chosen), time, width))
        return (after,), (_spectral_norms(ops.transpose(blocks, (0, 2, 1, 3))),)

    start = exact(ops.zeros((batch, size, time * width), before.dtype))
    collect = (((batch, time), start.dtype),)
    given = (inputs, before, mask)
    return stack(scan(step, (start,), given, length=time, collect=collect)[1][0])


def _product(
    chosen: np.ndarray, steps: Steps, inputs: Tensor, before: Tensor, mask: Tensor
) -> Tensor:
    """Returns the chosen rows and columns of the product of the Jacobians."""
    time, batch, size = ops.shape(before)

    def step(carry: tuple, index: Tensor, given: tuple) -> tuple:
        return (ops.matmul(steps.jacobians(*given)[0], carry[0]),), ()

    start = ops.tile(ops.eye(size, dtype=exact(before).dtype)[None], (batch, 1, 1))
    (found,), _ = scan(step, (start,), (inputs, before, mask), length=time)
    return ops.take(ops.take(found, chosen, axis=1), chosen, axis=2)


def _spectral_norms(matrices: Tensor) -> Tensor:
    """Computes largest singular values, from the smaller of the two Gram matrices."""
    # The squares of small entries would underflow.
    scale = ops.max(ops.abs(matrices), axis=(-2, -1), keepdims=True)
    scaled = divide(matrices, scale)
    if matrices.shape[-1] > matrices.shape[-2]:
        scaled = ops.swapaxes(scaled, -2, -1)
    gram = ops.matmul(ops.swapaxes(scaled, -2, -1), scaled)
    # TensorFlow's `eigh` would raise an error for NaN.
    finite = ops.all(ops.isfinite(gram), axis=(-2, -1), keepdims=True)
    largest = ops.eigh(ops.where(finite, gram, 0))[0][..., -1]
    norms = scale[..., 0, 0] * ops.sqrt(largest)
    return ops.where(finite[..., 0, 0], norms, np.nan)


def _states(num_steps: int, probe: Probe, starts: Tensor) -> Tensor:
    cell = probe.layer.cell
    size = cell.state_size
    wanted = "have one state of two numbers"
    check(size in (2, [2], (2,)), "layer", wanted, f"state_size={size}")
    state = ops.cast(starts, cell.compute_dtype)
    shape = (num_steps, starts.shape[0], math.prod(cell.kernel.shape[:-1]))
    inputs, mask = ops.zeros(shape, state.dtype), ops.ones(shape[:2], "bool")
    own = isinstance(cell, RecurrentCell)
    with cell.reading(inputs[0]) if own else contextlib.nullcontext():
        return Steps(cell, [state]).run(inputs, state, mask)[1]
