"""The recurrences as loops in NumPy, from their equations, in float64."""

from typing import Any

import numpy as np

from keras_ortho.activations import PAPER_LEAKY_RELU
from tests import reference

Array = np.ndarray


def _bump(z: Any) -> Any:
    """Of no library: what a user may write."""
    return z / (1 + z * z)


def _sigmoid(z: Array) -> Array:
    return 0.5 * (1 + np.tanh(z / 2))


def _softmax(z: Array) -> Array:
    powers = np.exp(z - z.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


# What to give the cell, and the same in NumPy: those whose derivative the recurrence
# knows, and some of which it does not.
ACTIVATIONS: dict[str, tuple[Any, Any]] = {
    "modrelu": ("modrelu", reference.modrelu),
    "smoothed_modrelu": ("smoothed_modrelu", reference.smoothed_modrelu),
    "hard_tanh": ("hard_tanh", lambda z: np.clip(z, -1, 1)),
    "leaky_relu": ("leaky_relu", lambda z: np.where(z > 0, z, 0.2 * z)),
    "linear": ("linear", lambda z: z),
    "of the user": (_bump, _bump),
    "oplu": ("oplu", reference.oplu),
    "paper_leaky_relu": (PAPER_LEAKY_RELU, lambda z: np.where(z > 0, z, 0.1 * z)),
    "relu": ("relu", lambda z: np.maximum(z, 0)),
    "sigmoid": ("sigmoid", _sigmoid),
    "silu": ("silu", lambda z: z * _sigmoid(z)),
    "softmax": ("softmax", _softmax),
    "tanh": ("tanh", np.tanh),
}


def is_modrelu(activation: str) -> bool:
    """Whether the bias is inside, a number for each unit."""
    return activation in ("modrelu", "smoothed_modrelu")


def loop(
    cell: Any,
    weights: dict[str, Array],
    matrix: Array,
    x: Array,
    start: Array,
    mask: Array | None = None,
) -> Array:
    """Computes the states of all steps, `(batch, time, n)`, one after the other.

    Args:
        cell: What tells `activation`, `is_complex`, `step_size` and `gated` of a cell.
        weights: Its weights, by name.
        matrix: `W`, for row vectors.
        x: Inputs, `(batch, time, m)`.
        start: The state before, `(batch, n)`.
        mask: Booleans, `(batch, time)`, `False` for steps that change nothing.
    """
    state, states = start, []
    for t in range(x.shape[1]):
        new = _step(cell, weights, matrix, x[:, t], state)
        state = new if mask is None else np.where(mask[:, t, None], new, state)
        states.append(state)
    return np.stack(states, axis=1)


def _step(
    cell: Any, weights: dict[str, Array], matrix: Array, x: Array, state: Array
) -> Array:
    recurrent, z = state @ matrix, x @ weights["kernel"]

    def activate(z: Array) -> Array:
        bias, (_, function) = weights.get("bias", 0.0), ACTIVATIONS[cell.activation]
        if not is_modrelu(cell.activation):
            return function(z + bias)
        if cell.is_complex:
            if cell.activation == "modrelu":
                function = reference.complex_modrelu
            function = reference.complex_reals(function)
        return function(z, bias)

    if cell.step_size is None and cell.gated:
        gates = x @ weights["gate_kernel"] + state @ weights["gate_recurrent_kernel"]
        reset, update = np.split(gates, 2, axis=-1)
        reset = _sigmoid(reset + weights.get("reset_bias", 0.0))
        update = _sigmoid(update + weights.get("update_bias", 0.0))
        return update * state + (1 - update) * activate(z + reset * recurrent)
    value = activate(z + recurrent)
    if cell.step_size is None:
        return value
    if cell.gated:
        gate = x @ weights["gate_kernel"] + recurrent
        value = _sigmoid(gate + weights.get("gate_bias", 0.0)) * value
    return state + cell.step_size * value
