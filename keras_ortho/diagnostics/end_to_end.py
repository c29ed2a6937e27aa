"""`dh_T/dh_0`: how the last state depends on the first."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend import scan
from keras_ortho.backend.types import Tensor
from keras_ortho.diagnostics.probe import Probe
from keras_ortho.diagnostics.spectra import eigenvalues
from keras_ortho.diagnostics.states import entries
from keras_ortho.diagnostics.steps import Steps, exact


def end_to_end_jacobians(
    model: keras.layers.Layer,
    x: Any,
    *,
    layer: str | keras.layers.RNN | None = None,
    state: int | None = 0,
    units: slice | None = None,
) -> np.ndarray:
    """Computes `dh_T/dh_0`, from the state before the first step to the last.

    Each step is differentiated once, in a batch of `s` copies of each sequence, `s` the
    number of entries of all states (of an LSTM 2 n), and the derivatives are
    multiplied: `O(T B s^3)` operations, and memory for `B s^2` numbers, whatever `T`
    is. The model is not changed.

    Args:
        model: A built model with a recurrent layer, of this package or of Keras, or
            such a layer.
        x: Its inputs, as it takes them: an array of shape `(batch, ...)`, or several,
            nested. A few sequences are enough.
        layer: The recurrent layer, or its name. Default: `None`, the only one.
        state: Which state of the layer, at the beginning and at the end. Default: 0,
            `h` of an LSTM, other states before the first step held as they are;
            `None` is all of them.
        units: Which units of the state, a slice. Default: `None`, all.

    Returns:
        Array of shape `(batch, n, n)`, float64: the row is an entry of `h_T`, the
        column one of `h_0`.

    Raises:
        ValueError: If the model is not built, has no recurrent layer, or several and
            none is named; if arguments are of the wrong shapes.
        RuntimeError: If the backend is neither TensorFlow nor JAX.

    Example:

    >>> end_to_end_jacobians(model, np.ones((2, 3, 2))).shape
    (2, 4, 4)
    """
    return probe_end_to_end_jacobians(model, layer, state, units)(x)


def jacobian_eigenvalues(
    model: keras.layers.Layer,
    x: Any,
    *,
    layer: str | keras.layers.RNN | None = None,
    state: int | None = 0,
    units: slice | None = None,
) -> np.ndarray:
    """Computes the eigenvalues of `dh_T/dh_0`, the end-to-end Jacobian.

    Moduli about 1 say that gradients neither explode nor vanish. It costs what
    `end_to_end_jacobians` costs, and `O(B n^3)` for the eigenvalues.

    Args:
        model: As of `end_to_end_jacobians`, as all arguments.
        x: The inputs of the model.
        layer: The recurrent layer, or its name.
        state: Which state of the layer.
        units: Which units of the state.

    Returns:
        Array of shape `(batch, n)`, complex128; NaN of a Jacobian that is not finite.

    Raises:
        ValueError: As `end_to_end_jacobians`.
        RuntimeError: As `end_to_end_jacobians`.

    Example:

    >>> jacobian_eigenvalues(model, np.ones((2, 3, 2))).shape
    (2, 4)

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), figure 2
    """
    jacobians = end_to_end_jacobians(model, x, layer=layer, state=state, units=units)
    return eigenvalues(jacobians)


def probe_end_to_end_jacobians(
    model: keras.layers.Layer,
    layer: str | keras.layers.RNN | None,
    state: int | None,
    units: slice | None,
) -> Callable[[Any], np.ndarray]:
    """Compiles `end_to_end_jacobians` for many calls.

    Args:
        model: As of `end_to_end_jacobians`, as all arguments.
        layer: The recurrent layer.
        state: Which state.
        units: Which units.

    Returns:
        A function of `x`.

    Raises:
        ValueError: As `end_to_end_jacobians`.
    """

    def product(
        steps: Steps, inputs: Tensor, before: Tensor, mask: Tensor | None
    ) -> Tensor:
        time, batch, size = ops.shape(before)

        def step(carry: tuple, index: Tensor, given: tuple) -> tuple:
            return (ops.matmul(steps.jacobians(*given)[0], carry[0]),), ()

        one = ops.eye(size, dtype=exact(before).dtype)
        (found,), _ = scan(
            step,
            (ops.tile(one[None], (batch, 1, 1)),),
            tuple(x for x in (inputs, before, mask) if x is not None),
            length=time,
        )
        return found

    probe = Probe(model, layer, lambda probe, x: probe.observe(x, product)[1])
    chosen = entries(probe.layer, state, units)
    return lambda x: probe(x).astype("float64")[:, chosen, chosen]
