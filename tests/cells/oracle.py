"""Layers and data to draw, and their recurrences as loops in NumPy, in float64.

A structure is what has to be built and traced anew, data what can then be put through.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from hypothesis import strategies as st

from keras_ortho import RecurrentCell, RecurrentLayer
from keras_ortho.activations import PAPER_LEAKY_RELU
from keras_ortho.parametrizations import GivensOrthogonal
from tests import reference
from tests.cells.architectures import ARCHITECTURES

Array = np.ndarray

ON_JAX = keras.backend.backend() == "jax"


def _bump(z: Any) -> Any:
    """Of no library: what a user may write."""
    return z / (1 + z * z)


def sigmoid(z: Array) -> Array:
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
    "sigmoid": ("sigmoid", sigmoid),
    "silu": ("silu", lambda z: z * sigmoid(z)),
    "softmax": ("softmax", _softmax),
    "tanh": ("tanh", np.tanh),
}


def is_modrelu(activation: str) -> bool:
    """Whether the bias is inside, a number for each unit."""
    return activation in ("modrelu", "smoothed_modrelu")


def with_bias(activation: str, is_complex: bool) -> Callable[[Array, Array], Array]:
    """An activation in NumPy as a function of what precedes it and of a bias."""
    _, function = ACTIVATIONS[activation]
    if not is_modrelu(activation):
        return lambda z, b: function(z + b)
    if not is_complex:
        return function
    exact = activation == "modrelu"
    return reference.complex_reals(reference.complex_modrelu if exact else function)


def loop(
    cell: RecurrentCell,
    activation: str,
    weights: dict[str, Array],
    matrix: Array,
    x: Array,
    start: Array,
    mask: Array | None = None,
) -> Array:
    """Computes the states of all steps, `(batch, time, n)`, one after the other.

    The cell is asked for nothing but what its step is. `activation` is a key of
    `ACTIVATIONS`, and `matrix` is `W`, for row vectors; steps that the mask does not
    count change nothing.
    """
    function = with_bias(activation, cell.complex_state)
    step_size = getattr(cell, "step_size", None)

    def activate(z: Array) -> Array:
        return function(z, weights.get("bias", 0.0))

    def gate(z: Array, bias: str) -> Array:
        return sigmoid(z + weights.get(bias, 0.0))

    def step(x: Array, h: Array) -> Array:
        z, recurrent = x @ weights["kernel"], h @ matrix
        if "gate_recurrent_kernel" in weights:
            gates = x @ weights["gate_kernel"] + h @ weights["gate_recurrent_kernel"]
            reset, update = np.split(gates, 2, axis=-1)
            candidate = activate(z + gate(reset, "reset_bias") * recurrent)
            update = gate(update, "update_bias")
            return update * h + (1 - update) * candidate
        value = activate(z + recurrent)
        if step_size is None:
            return value
        if "gate_kernel" in weights:
            value = gate(x @ weights["gate_kernel"] + recurrent, "gate_bias") * value
        return h + step_size * value

    state, states = start, []
    for t in range(x.shape[1]):
        new = step(x[:, t], state)
        state = new if mask is None else np.where(mask[:, t, None], new, state)
        states.append(state)
    return np.stack(states, axis=1)


def outputs_of(
    layer: RecurrentLayer, matrix: Callable[..., Array], activation: str = "modrelu"
) -> Callable[[Array, dict[str, Array]], Array]:
    """All outputs as a function of inputs and weights, given one from these to `W`."""

    def outputs(x: Array, weights: dict[str, Array]) -> Array:
        w = matrix(weights)
        w = reference.complex_block(w) if np.iscomplexobj(w) else w
        start = weights.get("initial_state", np.zeros(len(w)))
        start = np.broadcast_to(start, (len(x), len(w)))
        states = loop(layer.cell, activation, weights, w, x, start)
        return states[..., : layer.cell.output_size]

    return outputs


@dataclasses.dataclass(frozen=True)
class Structure:
    """A layer, the shape of what it gets, and how it is called."""

    name: str
    # Those that Keras's layer takes, too, and the others.
    arguments: dict[str, bool]
    own: dict[str, Any]
    activation: str  # Key of `ACTIVATIONS`.
    shape: tuple[int, int, int]  # Of the inputs.
    unknown: bool  # Whether a program knows neither batch nor time.
    masked: bool
    start: str  # The state: "given", "given to all", a single row, or its "own".
    training: bool
    mode: str  # "eager", "graph" or "xla".

    def make(self) -> tuple[RecurrentLayer, keras.layers.RNN]:
        """Builds the layer, and Keras's layer around the same cell."""
        options = {"activation": ACTIVATIONS[self.activation][0], "dtype": "float64"}
        layer = LAYERS[self.name](**self.own, **self.arguments, **options)
        layer.build(self.shape)
        # Keras's other loop holds the state for the output before, on JAX.
        differ = layer.cell.output_size != layer.cell.state_size
        unroll = ON_JAX and self.masked and differ
        stock = keras.layers.RNN(
            layer.cell, **self.arguments, unroll=unroll, dtype="float64"
        )
        stock.build(self.shape)
        return layer, stock


_few = st.integers(1, 6)
_even = st.sampled_from([2, 4])
_angles = {"units": _even, "style": st.sampled_from(["tunable", "fft"])}
_fraction = st.sampled_from([0, 1, 0.5, 1.0])
_singular = {
    "spectral_margin": st.sampled_from([0.01, 0.0, 0.25]),
    "spectral_center": st.sampled_from([1.0, 0.75]),
}
_reflections = {"units": st.integers(3, 6), "reflections": st.none() | st.just(3)}
# Where there are others than the units.
ARGUMENTS = {
    "ScoRNN": {"units": _few, "negative_ones": _fraction},
    "AntisymmetricRNN": {
        "units": _few,
        "step_size": st.sampled_from([0.1, 0.5]),
        "diffusion": st.sampled_from([0.25, 0.0]),
        "gated": st.booleans(),
        "antisymmetric": st.booleans(),
    },
    "EURNN": {**_angles, "capacity": _even, "real_output": st.booleans()},
    "GORU": {
        "units": _even,
        "parametrization": st.sampled_from(
            [None, GivensOrthogonal(), GivensOrthogonal(2, "tunable")]
        ),
    },
    "NNRNN": {"units": _few, "map": st.sampled_from(["exponential", "cayley"])},
    "ORNN": _reflections,
    "SVDRNN": {**_reflections, **_singular},
    "FactorizedRNN": {"units": _few, **_singular},
    "ENRNN": {
        "long_term_units": st.integers(1, 4),
        "short_term_units": st.integers(1, 3),
        "negative_ones": _fraction,
        "coupling": st.booleans(),
        "epsilon": st.sampled_from([0.0, 0.5]),
    },
}
# Of another step than these the loop knows nothing. `OrthoRNN` is these with another
# class around the same parametrizations.
LAYERS = {
    str(a): a.layer
    for a in ARCHITECTURES
    if str(a) in ARGUMENTS
    or (a.cell.step_weights is RecurrentCell.step_weights and str(a) != "OrthoRNN")
}
SHARED = ("go_backwards", "return_sequences", "return_state", "stateful")
SHARED += ("zero_output_for_mask",)


@st.composite
def structures(draw: st.DrawFn, name: str, modes: tuple[str, ...]) -> Structure:
    """Draws what to build, and how to call it."""

    def one_of(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    # Not the simplest of all, which would come first, and be half of a short form.
    draw(st.booleans().filter(bool))
    is_complex = LAYERS[name].cell_class.complex_state
    units = st.integers(1, 4) if is_complex else _few
    # The default of most, or any other.
    names = [n for n in ACTIVATIONS if is_complex or n != "smoothed_modrelu"]
    activation = one_of("modrelu", one_of(*names))
    training = draw(st.booleans())
    arguments = {each: draw(st.booleans()) for each in SHARED}
    arguments["stateful"] &= draw(st.booleans())
    own = draw(st.fixed_dictionaries(ARGUMENTS.get(name, {"units": units}))) | {
        "use_bias": draw(st.booleans()) or is_modrelu(activation),
        "recompute": one_of(False, True, 1, 2, 3, 100),
        "unroll": one_of(False, False, False, True),
    }
    # By default that of the paper.
    own |= one_of({}, *({"trainable_initial_state": b} for b in (True, False)))
    if not training:
        own |= dict.fromkeys(("dropout", "recurrent_dropout"), one_of(0.0, 0.3))
    # More than a segment: not where the condition grows from step to step.
    many = name not in ("NNRNN", "ENRNN", "SVDRNN") and not own["unroll"]
    time = one_of(*range(1, 10), *(9, 65) * many)
    mode = one_of(*modes)
    known = mode == "eager" or arguments["stateful"] or own["unroll"]
    return Structure(
        name=name,
        arguments=arguments,
        own=own,
        activation=activation,
        shape=(draw(st.integers(1, 5)), time, draw(st.integers(1, 3))),
        unknown=not known and draw(st.booleans()),
        masked=one_of(True, True, False),
        start=one_of("given", "own", "given to all"),
        training=training,
        mode=mode,
    )


@dataclasses.dataclass(frozen=True)
class Data:
    """Weights and inputs, drawn from a seed."""

    seed: int
    scale: float  # Of kernels and biases.
    mask: str
    zero: str  # What is zero.

    def random(self, use: int) -> np.random.Generator:
        """A generator of its own for each use."""
        return np.random.default_rng([self.seed, use])

    def weights(self, cell: RecurrentCell) -> dict[str, Array]:
        """Values of all weights of a cell, by name."""
        random, weights = self.random(0), {}
        for weight in cell.weights:
            name, shape = weight.name, tuple(weight.shape)
            value = random.normal(size=shape)
            if name.endswith("signs"):
                value = np.where(value < 0, -1.0, 1.0)
            elif name == "permutation":
                value = random.permutation(shape[0])
            elif name == "normalize":
                value = random.random() < 0.5
            elif name == "recurrent_unitary":
                square, _ = np.linalg.qr(value[0] + 1j * value[1])
                value = np.stack([square.real, square.imag])
            elif name in ("short_term_matrix", "recurrent_kernel"):
                value = value / np.sqrt(shape[0])
            elif name == "schur_radii":
                value = 1 + 0.1 * value
            elif name in ("schur_upper", "coupling_kernel"):
                value = 0.3 * value
            elif name == "initial_state":
                value = (self.zero != "state") * self.scale * value
            elif name.endswith("bias"):
                value = (self.zero != "bias") * self.scale * value
            elif "kernel" in name:
                value = self.scale * value
            weights[name] = value
        return weights

    def inputs(self, structure: Structure) -> Array:
        """Inputs, `(batch, time, m)`."""
        random = self.random(1)
        x = random.normal(size=structure.shape)
        if self.zero == "inputs":  # Of some steps.
            x[random.random(structure.shape[:2]) < 0.5] = 0
        return x

    def state(self, structure: Structure, size: int) -> Array:
        """A state, `(rows, n)`."""
        rows = 1 if structure.start == "given to all" else structure.shape[0]
        state = self.random(2).normal(size=(rows, size))
        return (self.zero != "state") * state

    def booleans(self, structure: Structure) -> Array | None:
        """A mask, `(batch, time)`."""
        if not structure.masked:
            return None
        random, shape = self.random(3), structure.shape[:2]
        step = np.arange(shape[1])
        length = random.integers(0, shape[1] + 1, size=(shape[0], 1))
        return {
            "random": random.random(shape) < 0.5,
            "whole rows": np.broadcast_to(random.random((shape[0], 1)) < 0.5, shape),
            "left": step >= shape[1] - length,
            "right": step < length,
            "none": np.zeros(shape, bool),
            "all": np.ones(shape, bool),
        }[self.mask]


data = st.builds(
    Data,
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([0.5, 1.0, 0.1]),
    mask=st.sampled_from(["random", "whole rows", "left", "right", "none", "all"]),
    zero=st.sampled_from(["nothing", "nothing", "bias", "inputs", "state"]),
)
