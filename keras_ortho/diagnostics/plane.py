"""Trajectories of two-dimensional states under zero inputs."""

import math
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.cells import RecurrentCell
from keras_ortho.checks import check_count
from keras_ortho.diagnostics.probe import Probe, Steps, compiled


def trajectories(
    model: keras.layers.Layer,
    starts: Any,
    num_steps: int,
    *,
    layer: str | keras.layers.RNN | None = None,
) -> np.ndarray:
    """Computes trajectories of a recurrent layer's state under zero inputs.

    The bias still applies. Each call compiles the steps of the layer's cell and runs
    them. The model is not changed.

    Args:
        model: A built model with a recurrent layer, of this package or of Keras, or
            such a layer. The layer must have two units, or one complex unit, and no
            other state. An LSTM does not qualify.
        starts: Initial states, an array of shape `(starts, 2)`.
        num_steps: Number of steps, a positive integer.
        layer: Recurrent layer or its name. Default: `None`, the only recurrent layer.

    Returns:
        Array of shape `(starts, num_steps + 1, 2)`, float64, including the initial
        states.

    Raises:
        ValueError: If the model is not built or has no recurrent layer, or several and
            `layer` is `None`; if the cell has no `kernel` or its state is not a single
            one of two numbers; if `starts` has the wrong shape, or `num_steps` is not
            positive.
        RuntimeError: If the backend is not TensorFlow, JAX or PyTorch.

    Example:

    >>> layer = keras.layers.SimpleRNN(2)
    >>> layer.build((None, None, 1))
    >>> trajectories(layer, [[0.5, 0.5], [-1.0, 0.0]], 10).shape
    (2, 11, 2)

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), figure 1
    """
    num_steps = check_count("num_steps", num_steps)
    return compiled(_compile, model, layer, num_steps)(starts)


def _compile(
    model: keras.layers.Layer,
    layer: str | keras.layers.RNN | None,
    num_steps: int,
) -> Callable[[Any], np.ndarray]:
    def measure(probe: Probe, starts: Tensor) -> Tensor:
        return _run(probe.layer, starts, num_steps)

    def run(starts: Any) -> np.ndarray:
        starts = _points("starts", starts)
        after = np.swapaxes(probe(starts).astype("float64"), 0, 1)
        return np.concatenate([starts[:, None], after], axis=1)

    probe = Probe(model, layer, measure)
    cell = probe.layer.cell
    if cell.state_size not in (2, [2], (2,)) or not hasattr(cell, "kernel"):
        raise ValueError(
            "`layer` must have a cell with a `kernel` and one state of two numbers. "
            f"Received: {probe.layer.name} with state_size={cell.state_size}"
        )
    return run


def vector_field(
    model: keras.layers.Layer,
    points: Any,
    *,
    layer: str | keras.layers.RNN | None = None,
) -> np.ndarray:
    """Computes the change `h' - h` of the state in one step with zero inputs.

    Each call compiles one step of the layer's cell and runs it. The model is not
    changed.

    Args:
        model: As in `trajectories`.
        points: The states `h`, an array of shape `(points, 2)`.
        layer: Recurrent layer or its name. Default: `None`, the only recurrent layer.

    Returns:
        Array of shape `(points, 2)`, float64.

    Raises:
        ValueError: As in `trajectories`.
        RuntimeError: As in `trajectories`.

    Example:

    >>> layer = keras.layers.SimpleRNN(2)
    >>> layer.build((None, None, 1))
    >>> vector_field(layer, [[0.0, 0.0]])
    array([[0., 0.]])
    """
    points = _points("points", points)
    return trajectories(model, points, 1, layer=layer)[:, 1] - points


def _points(name: str, values: Any) -> np.ndarray:
    """Returns points of the plane as float64 `(points, 2)`."""
    points = np.asarray(values, "float64")
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise ValueError(
            f"`{name}` must have the shape (number, 2). "
            f"Received: {name}.shape={points.shape}"
        )
    return points


def _run(layer: keras.layers.RNN, starts: Tensor, num_steps: int) -> Tensor:
    """Returns the state after each step, of shape `(num_steps, starts, 2)`."""
    cell = layer.cell
    state = ops.cast(starts, cell.compute_dtype)
    shape = (num_steps, int(state.shape[0]), math.prod(cell.kernel.shape[:-1]))
    inputs = ops.zeros(shape, state.dtype)
    if not isinstance(cell, RecurrentCell):
        return Steps(cell, [state]).run(inputs, state, None)[1]
    with cell.reading(inputs[0]):
        return Steps(cell, [state]).run(inputs, state, None)[1]
