"""`||dL/dh_t||`: norms of the gradients of the loss at each hidden state."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_ortho.backend.differentiation import gradients
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.diagnostics.finding import entries
from keras_ortho.diagnostics.probe import Probe, compiled
from keras_ortho.diagnostics.steps import exact
from keras_ortho.keras_internals import get_keras_mask, get_loss


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

    `L` is the loss of one sequence, averaged over the time steps if each has an output.
    The gradient is the total derivative: through all later steps, through the output at
    `t` itself, and through the layers above. Dropout is off. Regularizers and sample
    weights are ignored. Masked steps do not count.

    If there are several states, as in an LSTM, the others at `t` are held fixed: the
    gradient with respect to `h_t` keeps `c_t` constant.

    Each call takes about the time and memory of a training step with Keras's loop over
    time, plus compilation. The model is not changed.

    Args:
        model: A built model with one output and a recurrent layer, of this package or
            of Keras, or such a layer.
        x: Inputs of the model: an array of shape `(batch, ...)`, or nested arrays.
        y: Targets, an array of shape `(batch, ...)`.
        layer: Recurrent layer or its name. Default: `None`, the only recurrent layer.
        state: Index of the state of the layer. `None` selects all states. Default: 0,
            which is `h` in an LSTM (1 is `c`).
        units: Slice that selects units of the state. Default: `None`, all units.
        loss: Keras loss, its name, or a function of `y` and the output, as in
            `compile`. Its values are averaged over all axes but the first; a scalar is
            taken as the mean over the batch. Default: `None`, the loss that the model
            was compiled with.

    Returns:
        Array of shape `(time,)`, float64, in the order in which the layer processes
        the sequence. With `go_backwards`, that is from the end.

    Raises:
        ValueError: If the model is not built or has no recurrent layer, or several and
            `layer` is `None`; if there is no loss, or more than one; if the model has
            several outputs; if an argument has the wrong shape.
        RuntimeError: If the backend is not TensorFlow, JAX or PyTorch.

    Example:

    >>> x, y = np.ones((8, 3, 2)), np.zeros((8, 4))
    >>> gradient_norms(model, x, y, loss="mse").shape
    (3,)

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      figure 5. It shows one norm per time step and does not say whether the norm is
      that of a sequence or of the batch.
    """
    return compiled(_compile, model, layer, state, units, loss)(x, y)


def _compile(
    model: keras.layers.Layer,
    layer: str | keras.layers.RNN | None,
    state: int | None,
    units: slice | None,
    loss: Any,
) -> Callable[[Any, Any], np.ndarray]:
    def measure(probe: Probe, x: Any, y: Any) -> tuple[Tensor, Tensor]:
        # Only for the shapes and the mask. Values that are not used are not computed.
        _, (before, mask) = probe.observe(x, lambda _, x, states, mask: (states, mask))

        def total(shift: Tensor) -> Tensor:
            outputs, _ = probe.observe(x, lambda *_: None, shift)
            output = _single("The output of `model`", outputs)
            values = values_of(_single("`y`", y), output)
            return ops.sum(_of_each_sequence(values, output))

        (found,) = gradients(total, [ops.zeros_like(before)])
        counts = ops.ones(ops.shape(before)[:2], "bool") if mask is None else mask
        return exact(found)[..., chosen], counts

    probe = Probe(model, layer, measure)
    chosen = entries(probe.layer, state, units)
    values_of = _loss(model, loss)

    def run(x: Any, y: Any) -> np.ndarray:
        found, counts = probe(x, y)
        # In float32, the squares of small gradients would underflow.
        norms = np.linalg.norm(found.astype("float64"), axis=-1)
        return (norms * counts).sum(axis=1) / np.maximum(counts.sum(axis=1), 1)

    return run


def _of_each_sequence(values: Tensor, output: Tensor) -> Tensor:
    """Averages the losses of each sequence over the time steps that are not masked."""
    values = ops.convert_to_tensor(values)
    size = ops.shape(output)[0]
    mask = get_keras_mask(output)
    if len(values.shape) == 0:  # The mean over the batch.
        return values * size
    if mask is None or len(values.shape) < 2:
        return ops.mean(ops.reshape(values, (size, -1)), axis=1)
    weights = ops.reshape(ops.cast(mask, values.dtype), (size, -1, 1))
    values = ops.reshape(values, (size, ops.shape(weights)[1], -1))
    counts = ops.maximum(ops.sum(weights, axis=(1, 2)), 1)
    means = ops.mean(values, axis=2, keepdims=True)
    return ops.sum(means * weights, axis=(1, 2)) / counts


def _loss(model: keras.layers.Layer, loss: Any) -> Callable[[Any, Any], Any]:
    """Returns the loss as in `compile`, but without its reduction."""
    received = getattr(model, "loss", None) if loss is None else loss
    losses = [each for each in tree.flatten(received) if each is not None]
    if len(losses) != 1:
        raise ValueError(
            "`loss` must be a single loss: the model is not compiled with exactly one. "
            f"Received: loss={received!r}"
        )

    def values_of(y: Tensor, output: Tensor) -> Any:
        # Keras would cast both to float32; this keeps the precision of the output.
        dtype = wide_dtype(output.dtype)
        y, output = ops.cast(y, dtype), ops.cast(output, dtype)
        return get_loss(losses[0], y, output).call(y, output)

    return values_of


def _single(name: str, tensors: Any) -> Tensor:
    flat = tree.flatten(tensors)
    if len(flat) != 1:
        raise ValueError(
            f"{name} must be one tensor. Received: {len(flat)} tensors of shapes "
            f"{[tuple(x.shape) for x in flat]}"
        )
    return flat[0]
