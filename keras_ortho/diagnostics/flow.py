"""Gradients and derivatives of states through time.

Each time step is differentiated once, in a batch of `s` copies of each sequence, and
the Jacobians are multiplied. `s` is the total size of all states (`2n` for an LSTM).
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops, tree

from keras_ortho.backend import gradients, scan, stack
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.diagnostics.matrices import of_finite
from keras_ortho.diagnostics.probe import Probe, Steps, compiled, entries, exact
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


def input_sensitivity(
    model: keras.layers.Layer,
    x: Any,
    *,
    layer: str | keras.layers.RNN | None = None,
    state: int | None = 0,
    units: slice | None = None,
) -> np.ndarray:
    """Computes `||dh_tau/dx_t||_2` for all `tau` and `t`, averaged over a batch.

    The norm is the spectral norm, the largest singular value. `x_t` is the input of
    the recurrent layer, after all layers before it. Dropout is off.

    For `T` time steps, a batch of `B`, `m` inputs and states of total size `s`, it
    takes `O(T B s^3)` operations to differentiate the steps, `O(T^2 B s^2 m)` to
    multiply the Jacobians, and memory for `B s (s + T m)` numbers. The model is not
    changed.

    Args:
        model: A built model with a recurrent layer, of this package or of Keras, or
            such a layer.
        x: Inputs of the model: an array of shape `(batch, ...)`, or nested arrays. A
            few sequences are enough.
        layer: Recurrent layer or its name. Default: `None`, the only recurrent layer.
        state: Index of the state of the layer. `None` selects all states. Default: 0,
            which is `h` in an LSTM (1 is `c`).
        units: Slice that selects units of the state, such as `slice(0, 24)` for the
            long-term units of an ENRNN that has 24. Default: `None`, all units.

    Returns:
        Array of shape `(time, time)`, float64. Row `tau`, column `t`; zero for
        `t > tau`. The time steps are in the order in which the layer processes them.

    Raises:
        ValueError: If the model is not built or has no recurrent layer, or several and
            `layer` is `None`; if an argument has the wrong shape.
        RuntimeError: If the backend is not TensorFlow, JAX or PyTorch.

    Example:

    >>> input_sensitivity(model, np.ones((2, 3, 2))).shape
    (3, 3)

    Reference:

    - [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964), section on the
      gradients of long- and short-term states
    """
    return compiled(_sensitivity, model, layer, state, units)(x)


def end_to_end_jacobians(
    model: keras.layers.Layer,
    x: Any,
    *,
    layer: str | keras.layers.RNN | None = None,
    state: int | None = 0,
    units: slice | None = None,
) -> np.ndarray:
    """Computes `dh_T/dh_0`, the Jacobian with respect to the initial state.

    For `T` time steps, a batch of `B` and states of total size `s`, it takes
    `O(T B s^3)` operations, and memory for `B s^2` numbers, independent of `T`. The
    model is not changed.

    Args:
        model: As in `input_sensitivity`.
        x: Inputs of the model. A few sequences are enough.
        layer: Recurrent layer or its name. Default: `None`, the only recurrent layer.
        state: Index of the state, both initial and last. The other initial states are
            held fixed. `None` selects all states. Default: 0, which is `h` in an LSTM.
        units: Slice that selects units of the state. Default: `None`, all units.

    Returns:
        Array of shape `(batch, n, n)`, float64. Rows are entries of `h_T`, columns
        those of `h_0`.

    Raises:
        ValueError: As in `input_sensitivity`.
        RuntimeError: As in `input_sensitivity`.

    Example:

    >>> end_to_end_jacobians(model, np.ones((2, 3, 2))).shape
    (2, 4, 4)
    """
    return compiled(_product, model, layer, state, units)(x)


def jacobian_eigenvalues(
    model: keras.layers.Layer,
    x: Any,
    *,
    layer: str | keras.layers.RNN | None = None,
    state: int | None = 0,
    units: slice | None = None,
) -> np.ndarray:
    """Computes the eigenvalues of `dh_T/dh_0`, the end-to-end Jacobian.

    Moduli near 1 indicate that gradients neither explode nor vanish. The cost is that
    of `end_to_end_jacobians`, and `O(B n^3)` for the eigenvalues.

    Args:
        model: As in `end_to_end_jacobians`.
        x: Inputs of the model.
        layer: As in `end_to_end_jacobians`. Default: `None`.
        state: As in `end_to_end_jacobians`. Default: 0.
        units: As in `end_to_end_jacobians`. Default: `None`.

    Returns:
        Array of shape `(batch, n)`, complex128. NaN for a Jacobian that is not finite.

    Raises:
        ValueError: As in `end_to_end_jacobians`.
        RuntimeError: As in `end_to_end_jacobians`.

    Example:

    >>> jacobian_eigenvalues(model, np.ones((2, 3, 2))).shape
    (2, 4)

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), figure 2
    """
    jacobians = end_to_end_jacobians(model, x, layer=layer, state=state, units=units)
    return of_finite(jacobians, np.linalg.eigvals).astype("complex128")


def _sensitivity(
    model: keras.layers.Layer,
    layer: str | keras.layers.RNN | None,
    state: int | None,
    units: slice | None,
) -> Callable[[Any], np.ndarray]:
    def norms(
        steps: Steps, inputs: Tensor, before: Tensor, mask: Tensor | None
    ) -> Tensor:
        (time, batch, size), width = ops.shape(before), ops.shape(inputs)[-1]
        count = len(range(size)[chosen])
        when = ops.repeat(ops.arange(time, dtype="int32"), width)

        def step(carry: tuple, index: Tensor, given: tuple) -> tuple:
            by_state, by_inputs = steps.jacobians(*given)
            # The columns of a time step are zero before it.
            now = ops.where(when == index, ops.tile(by_inputs, (1, 1, time)), 0)
            after = ops.matmul(by_state, carry[0]) + now
            blocks = ops.reshape(after[:, chosen], (batch, count, time, width))
            return (after,), (_spectral_norms(ops.transpose(blocks, (0, 2, 1, 3))),)

        start = exact(ops.zeros((batch, size, time * width), before.dtype))
        _, (found,) = scan(
            step,
            (start,),
            tuple(x for x in (inputs, before, mask) if x is not None),
            length=time,
            collect=(((batch, time), start.dtype),),
        )
        return stack(found)

    probe = Probe(model, layer, lambda probe, x: probe.observe(x, norms)[1])
    chosen = entries(probe.layer, state, units)
    return lambda x: probe(x).astype("float64").mean(axis=1)


def _product(
    model: keras.layers.Layer,
    layer: str | keras.layers.RNN | None,
    state: int | None,
    units: slice | None,
) -> Callable[[Any], np.ndarray]:
    def product(
        steps: Steps, inputs: Tensor, before: Tensor, mask: Tensor | None
    ) -> Tensor:
        time, batch, size = ops.shape(before)

        def step(carry: tuple, index: Tensor, given: tuple) -> tuple:
            return (ops.matmul(steps.jacobians(*given)[0], carry[0]),), ()

        one = ops.eye(size, dtype=exact(before).dtype)
        start = ops.tile(one[None], (batch, 1, 1))
        given = tuple(x for x in (inputs, before, mask) if x is not None)
        (found,), _ = scan(step, (start,), given, length=time)
        return found

    probe = Probe(model, layer, lambda probe, x: probe.observe(x, product)[1])
    chosen = entries(probe.layer, state, units)
    return lambda x: probe(x).astype("float64")[:, chosen, chosen]


def _spectral_norms(matrices: Tensor) -> Tensor:
    """Computes largest singular values, from the smaller of the two Gram matrices.

    The matrices are scaled first, because the squares of small entries would underflow.
    The result is NaN for a matrix that is not finite, where TensorFlow's `eigh` would
    raise.
    """
    rows, columns = matrices.shape[-2:]
    scale = ops.max(ops.abs(matrices), axis=(-2, -1), keepdims=True)
    scaled = divide(matrices, scale)
    turned = ops.swapaxes(scaled, -2, -1)
    gram = ops.matmul(turned, scaled) if columns <= rows else ops.matmul(scaled, turned)
    finite = ops.all(ops.isfinite(gram), axis=(-2, -1))
    largest = gram[..., 0, 0]
    if min(rows, columns) > 1:
        gram = ops.where(finite[..., None, None], gram, ops.zeros_like(gram))
        largest = ops.eigh(gram)[0][..., -1]
    return scale[..., 0, 0] * ops.sqrt(ops.where(finite, largest, np.nan))
