"""The recurrences as loops in NumPy, from their equations, in float64.

Beside the states a loop gives what bounds an error: how much a step can lengthen one,
how near a pre-activation is to where a function bends or jumps, and on which side.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_ortho.activations import PAPER_LEAKY_RELU
from tests import reference

Array = np.ndarray


@dataclasses.dataclass(frozen=True)
class Activation:
    """An activation of real numbers.

    Attributes:
        value: What to give the cell.
        function: The same in NumPy.
        lipschitz: A bound of its slope.
        bends: Where it has no derivative.
        jumps: Whether it is not continuous there.
    """

    value: object
    function: Callable[[Array], Array]
    lipschitz: float = 1.0
    bends: tuple[float, ...] = ()
    jumps: bool = False


def _bump(z: Any) -> Any:
    """Of no library: what a user may write."""
    return z / (1 + z * z)


def _sigmoid(z: Array) -> Array:
    return 0.5 * (1 + np.tanh(z / 2))


def _softplus(z: Array) -> Array:
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


def _elu(z: Array) -> Array:
    return np.where(z > 0, z, np.expm1(np.minimum(z, 0)))


def _selu(z: Array) -> Array:
    negative = 1.6732632423543772 * np.expm1(np.minimum(z, 0))
    return 1.0507009873554805 * np.where(z > 0, z, negative)


def _softmax(z: Array) -> Array:
    powers = np.exp(z - z.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _log_softmax(z: Array) -> Array:
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


_erf = np.vectorize(math.erf, otypes=["float64"])

# All of Keras's but `glu`, which halves the units; `threshold`, which takes more than
# a tensor; and `sparsemax`, which Keras 3.15 computes with a sum of sums: its values do
# not add up to 1, and jump.
ACTIVATIONS = {
    # These have a bias: see `_activate`.
    "modrelu": Activation("modrelu", np.abs),
    "smoothed_modrelu": Activation("smoothed_modrelu", np.abs),
    "celu": Activation("celu", _elu, bends=(0,)),
    "elu": Activation("elu", _elu, bends=(0,)),
    "exponential": Activation("exponential", np.exp, math.nan),  # Its value.
    "gelu": Activation("gelu", lambda z: z * (1 + _erf(z / math.sqrt(2))) / 2, 1.13),
    "hard_shrink": Activation(
        "hard_shrink",
        lambda z: np.where(np.abs(z) > 0.5, z, 0),
        bends=(-0.5, 0.5),
        jumps=True,
    ),
    "hard_sigmoid": Activation(
        "hard_sigmoid", lambda z: np.clip(z / 6 + 0.5, 0, 1), bends=(-3, 3)
    ),
    "hard_silu": Activation(
        "hard_silu", lambda z: z * np.clip(z / 6 + 0.5, 0, 1), 1.5, bends=(-3, 3)
    ),
    "hard_tanh": Activation("hard_tanh", lambda z: np.clip(z, -1, 1), bends=(-1, 1)),
    "leaky_relu": Activation(
        "leaky_relu", lambda z: np.where(z > 0, z, 0.2 * z), bends=(0,)
    ),
    "linear": Activation("linear", lambda z: z),
    "log_sigmoid": Activation("log_sigmoid", lambda z: -_softplus(-z)),
    # The Jacobian is I - 1 p^T: at most 1 + sqrt(8) for 8 reals.
    "log_softmax": Activation("log_softmax", _log_softmax, 4.0),
    "mish": Activation("mish", lambda z: z * np.tanh(_softplus(z)), 1.09),
    "of the user": Activation(_bump, _bump),
    "oplu": Activation("oplu", reference.oplu),  # Bends where a pair is equal.
    "paper_leaky_relu": Activation(
        PAPER_LEAKY_RELU, lambda z: np.where(z > 0, z, 0.1 * z), bends=(0,)
    ),
    "relu": Activation("relu", lambda z: np.maximum(z, 0), bends=(0,)),
    "relu6": Activation("relu6", lambda z: np.clip(z, 0, 6), bends=(0, 6)),
    "selu": Activation("selu", _selu, 1.76, bends=(0,)),
    "sigmoid": Activation("sigmoid", _sigmoid),
    "silu": Activation("silu", lambda z: z * _sigmoid(z), 1.1),
    "soft_shrink": Activation(
        "soft_shrink",
        lambda z: np.sign(z) * np.maximum(np.abs(z) - 0.5, 0),
        bends=(-0.5, 0.5),
    ),
    "softmax": Activation("softmax", _softmax),
    "softplus": Activation("softplus", _softplus),
    "softsign": Activation("softsign", lambda z: z / (1 + np.abs(z))),
    "sparse_plus": Activation(
        "sparse_plus",
        lambda z: np.where(z >= 1, z, np.maximum(z + 1, 0) ** 2 / 4),
        bends=(-1, 1),
    ),
    "sparse_sigmoid": Activation(
        "sparse_sigmoid", lambda z: np.clip((z + 1) / 2, 0, 1), bends=(-1, 1)
    ),
    "squareplus": Activation("squareplus", lambda z: (z + np.sqrt(z * z + 4)) / 2),
    "tanh": Activation("tanh", np.tanh),
    "tanh_shrink": Activation("tanh_shrink", lambda z: z - np.tanh(z)),
}


@dataclasses.dataclass(frozen=True)
class Cell:
    """What a loop needs to know of a cell, beside its weights.

    Attributes:
        activation: Key of `ACTIVATIONS`.
        complex_state: Whether the units are complex.
        step_size: That of an AntisymmetricRNN, or `None`.
        gated: Whether there are gates: those of the GORU, without `step_size`.
    """

    activation: str
    complex_state: bool = False
    step_size: float | None = None
    gated: bool = False


@dataclasses.dataclass
class Loop:
    """What came out.

    Attributes:
        states: Of all steps, `(batch, time, n)`.
        condition: How much the steps lengthen a small error, at most, about.
        size: The largest number that was met on the way.
        margin: The smallest distance from a bend of the activation.
        sides: On which sides of the bends the numbers are.
    """

    states: Array
    condition: float
    size: float
    margin: float
    sides: list[Array]


class _Watch:
    """Collects what bounds the errors."""

    def __init__(self) -> None:
        self.slope, self.size, self.margin = 0.0, 1.0, math.inf
        self.sides: list[Array] = []

    def meets(self, numbers: Array) -> None:
        self.size = max(self.size, np.abs(numbers).max(initial=0))

    def passes(self, distances: Array, terms: Array) -> None:
        """Notes signed distances from a bend: exact where all terms are zero."""
        self.sides.append(np.sign(distances))
        inexact = np.abs(distances)[np.broadcast_to(terms > 0, distances.shape)]
        self.margin = min(self.margin, inexact.min(initial=math.inf))


def is_modrelu(activation: str) -> bool:
    """Whether the bias is inside, a number for each unit."""
    return activation in ("modrelu", "smoothed_modrelu")


def _complex_modrelu(
    cell: Cell, z: Array, bias: Array, terms: Array, watch: _Watch
) -> Array:
    """`z relu(|z| + b) / |z|`, 0 at 0, or as the uRNN's authors guard it there."""
    real, imaginary = np.split(z, 2, axis=-1)
    modulus = np.hypot(real, imaginary)
    divisor = np.where(modulus > 0, modulus, 1)
    if cell.activation == "smoothed_modrelu":
        modulus = np.sqrt(modulus**2 + 1e-5)
        divisor = modulus + 1e-5
    scale = np.maximum(modulus + bias, 0) / divisor
    terms = np.maximum(*np.split(terms, 2, axis=-1))
    watch.passes(modulus, terms)  # Beyond 0 lies the other direction.
    watch.sides.append(np.sign(z))
    watch.passes(modulus + bias, terms)
    # Along z the slope is 1, across it the scale.
    watch.slope = max(watch.slope, 1.0, scale.max(initial=0))
    return np.concatenate([scale, scale], axis=-1) * z


def _activate(
    cell: Cell, z: Array, bias: Array | float, terms: Array, watch: _Watch
) -> Array:
    """Bias and activation, of the steps that count."""
    activation = ACTIVATIONS[cell.activation]
    if is_modrelu(cell.activation) and cell.complex_state:
        return _complex_modrelu(cell, z, bias, terms, watch)
    if cell.activation == "modrelu":
        watch.passes(z, terms)
        watch.passes(np.abs(z) + bias, terms)
        watch.slope = max(watch.slope, 1.0)
        return reference.modrelu(z, bias)
    z = z + bias
    value = activation.function(z)
    for bend in activation.bends:
        watch.passes(z - bend, terms)
    if cell.activation == "oplu":
        half = z.shape[-1] // 2
        first, second = slice(half), slice(half, 2 * half)
        of_pairs = np.maximum(terms[..., first], terms[..., second])
        watch.passes(z[..., first] - z[..., second], of_pairs)
    slope = activation.lipschitz
    watch.slope = max(watch.slope, np.abs(value).max() if math.isnan(slope) else slope)
    return value


def loop(
    cell: Cell,
    weights: dict[str, Array],
    matrix: Array,
    x: Array,
    start: Array,
    mask: Array | None = None,
) -> Loop:
    """One step after the other.

    Args:
        cell: What kind of cell.
        weights: Its weights, by name.
        matrix: `W`, for row vectors.
        x: Inputs, `(batch, time, m)`.
        start: The state before, `(batch, n)`.
        mask: Booleans, `(batch, time)`, `False` for steps that change nothing.
    """
    watch = _Watch()
    watch.meets(start)
    state, states, condition = start, [], 1.0
    for t in range(x.shape[1]):
        counts = slice(None) if mask is None else mask[:, t]
        state, watch.slope = np.array(state), 0.0
        if np.any(counts):
            state[counts] = _step(
                cell, weights, matrix, x[counts, t], state[counts], watch
            )
            watch.meets(state[counts])
            condition *= max(1.0, _growth(cell, weights, matrix, watch))
        states.append(state)
    return Loop(
        np.stack(states, axis=1), condition, watch.size, watch.margin, watch.sides
    )


def _growth(
    cell: Cell, weights: dict[str, Array], matrix: Array, watch: _Watch
) -> float:
    """How much a step lengthens a small change of the state, at most."""
    growth = watch.slope * np.linalg.norm(matrix, 2)
    if cell.step_size is not None:
        return 1 + cell.step_size * growth * (1 + watch.size * cell.gated)
    if cell.gated:
        gates = np.linalg.norm(weights["gate_recurrent_kernel"], 2)
        return 1 + growth + gates * watch.size
    return growth


def _step(
    cell: Cell,
    weights: dict[str, Array],
    matrix: Array,
    x: Array,
    state: Array,
    watch: _Watch,
) -> Array:
    bias = weights.get("bias", 0.0)
    recurrent = state @ matrix
    z = x @ weights["kernel"]
    # Zero where nothing but zeros are added: such a sum is exact.
    terms = np.abs(x) @ np.abs(weights["kernel"]) + np.abs(state) @ np.abs(matrix)
    watch.meets(terms)
    if not is_modrelu(cell.activation):
        terms = terms + np.abs(bias)
    if cell.step_size is None and cell.gated:
        gates = x @ weights["gate_kernel"] + state @ weights["gate_recurrent_kernel"]
        reset, update = np.split(gates, 2, axis=-1)
        reset = _sigmoid(reset + weights.get("reset_bias", 0.0))
        update = _sigmoid(update + weights.get("update_bias", 0.0))
        candidate = _activate(cell, z + reset * recurrent, bias, terms, watch)
        return update * state + (1 - update) * candidate
    value = _activate(cell, z + recurrent, bias, terms, watch)
    if cell.step_size is None:
        return value
    if cell.gated:
        gate = x @ weights["gate_kernel"] + recurrent
        value = _sigmoid(gate + weights.get("gate_bias", 0.0)) * value
    return state + cell.step_size * value


def outputs(
    states: Array, mask: Array | None, *, size: int, zero_output_for_mask: bool
) -> Array:
    """What a layer shows of the states, `(batch, time, size)`.

    A step that is masked repeats the output of the step before, zero where there was
    none, or gives zero.
    """
    shown = states[..., :size]
    if mask is None:
        return shown
    counts = mask if zero_output_for_mask else np.cumsum(mask, axis=1) > 0
    return np.where(counts[:, :, None], shown, 0)


def same_sides(loops: Sequence[Loop]) -> bool:
    """Whether no bend lies between the points of some loops."""
    first, *others = loops
    return all(
        np.array_equal(a, b)
        for other in others
        for a, b in zip(first.sides, other.sides, strict=True)
    ) and all(np.all(sides) for sides in first.sides)
