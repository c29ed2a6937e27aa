"""Layers and data to draw: every architecture, every argument that all layers share.

A structure is what has to be built and traced anew, data what can then be put through.
"""

import dataclasses
from typing import Any

import keras
import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from keras_ortho import RecurrentCell, RecurrentLayer
from tests.cells.architectures import ARCHITECTURES
from tests.cells.loops import ACTIVATIONS, is_modrelu

ON_JAX = keras.backend.backend() == "jax"
POLICIES = ("float64", "float32", "mixed_bfloat16", "mixed_float16")
# What an input may be that is not of the layer's own dtype.
OTHER_INPUTS = ("bool", "uint8", "int32", "int64", "float16", "float64")


@dataclasses.dataclass(frozen=True)
class Structure:
    """A layer, the shape of what it gets, and how it is called."""

    name: str
    # Those that Keras's layer takes, too, and the others.
    arguments: dict[str, bool]
    own: dict[str, Any]
    activation: str  # Key of `ACTIVATIONS`.
    policy: str
    shape: tuple[int, int, int]  # Of the inputs.
    unknown: bool  # Whether a program knows neither batch nor time.
    inputs: str | None  # Their dtype, or `None`, the layer's own.
    masked: bool
    start: str  # The state: "given", "given to all", a single row, or its "own".
    training: bool
    mode: str  # "eager", "graph" or "xla".

    @property
    def dtype(self) -> str:
        """What it computes in."""
        return self.policy.removeprefix("mixed_")

    @property
    def wide(self) -> str:
        """What its variables are of."""
        return "float64" if self.policy == "float64" else "float32"

    # What the loops need to know.

    @property
    def is_complex(self) -> bool:
        """Whether the units are complex."""
        return LAYERS[self.name].cell_class.complex_state

    @property
    def step_size(self) -> float | None:
        """That of an AntisymmetricRNN."""
        return self.own.get("step_size")

    @property
    def gated(self) -> bool:
        """Whether there are gates."""
        return self.name == "GORU" or self.own.get("gated", False)

    def make(self) -> RecurrentLayer:
        """Builds the layer."""
        layer = LAYERS[self.name](
            **self.own,
            **self.arguments,
            activation=ACTIVATIONS[self.activation][0],
            dtype=self.policy,
        )
        layer.build(self.shape)
        return layer

    def make_stock(self, layer: RecurrentLayer) -> keras.layers.RNN:
        """Builds Keras's layer around the same cell."""
        # Its other loop holds the state for the output before, on JAX.
        differ = layer.cell.output_size != layer.cell.state_size
        unroll = ON_JAX and self.masked and differ
        stock = keras.layers.RNN(
            layer.cell, **self.arguments, unroll=unroll, dtype=self.policy
        )
        stock.build(self.shape)
        return stock


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
    "GORU": {**_angles, "capacity": st.none() | _even},
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


def _has_the_base_step(cell: type[RecurrentCell]) -> bool:
    names = "step", "step_weights"
    return all(getattr(cell, name) is getattr(RecurrentCell, name) for name in names)


# Of another step than these the loops know nothing. `OrthoRNN` is these with another
# class around the same parametrizations.
LAYERS = {
    str(a): a.layer
    for a in ARCHITECTURES
    if str(a) in ARGUMENTS or (_has_the_base_step(a.cell) and str(a) != "OrthoRNN")
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
        policy=one_of("float64", *POLICIES),
        shape=(draw(st.integers(1, 5)), time, draw(st.integers(1, 3))),
        unknown=not known and draw(st.booleans()),
        inputs=one_of(None, None, one_of(*OTHER_INPUTS)),
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


data = st.builds(
    Data,
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([0.5, 1.0, 0.1]),
    mask=st.sampled_from(["random", "whole rows", "left", "right", "none", "all"]),
    zero=st.sampled_from(["nothing", "nothing", "bias", "inputs", "state"]),
)


def draw_weights(cell: RecurrentCell, data: Data) -> dict[str, np.ndarray]:
    """Values of all weights of a cell, by name."""
    random, weights = data.random(0), {}
    for weight in cell.weights:
        shape = tuple(weight.shape)
        value = random.normal(size=shape)
        if weight.name.endswith("signs"):
            value = np.where(value < 0, -1.0, 1.0)
        elif weight.name == "permutation":
            value = random.permutation(shape[0])
        elif weight.name == "normalize":
            value = random.random() < 0.5
        elif weight.name == "recurrent_unitary":
            square, _ = np.linalg.qr(value[0] + 1j * value[1])
            value = np.stack([square.real, square.imag])
        elif weight.name in ("short_term_matrix", "recurrent_kernel"):
            value = value / np.sqrt(shape[0])
        elif weight.name == "schur_radii":
            value = 1 + 0.1 * value
        elif weight.name in ("schur_upper", "coupling_kernel"):
            value = 0.3 * value
        elif weight.name == "initial_state":
            value = (data.zero != "state") * data.scale * value
        elif weight.name.endswith("bias"):
            value = (data.zero != "bias") * data.scale * value
        elif "kernel" in weight.name:
            value = data.scale * value
        weights[weight.name] = value
    return weights


def draw_inputs(structure: Structure, data: Data) -> np.ndarray:
    """Inputs, `(batch, time, m)`."""
    random = data.random(1)
    x = random.normal(size=structure.shape)
    if data.zero == "inputs":  # Of some steps.
        x[random.random(structure.shape[:2]) < 0.5] = 0
    dtype = structure.inputs or structure.wide
    if "float" not in dtype:
        x = np.abs(x) > 0.7 if dtype == "bool" else np.round(2 * np.abs(x))
    return x.astype(dtype)


def draw_state(structure: Structure, data: Data, size: int) -> np.ndarray:
    """A state, `(rows, n)`, in the dtype of the variables."""
    rows = 1 if structure.start == "given to all" else structure.shape[0]
    state = data.random(2).normal(size=(rows, size))
    return ((data.zero != "state") * state).astype(structure.wide)


def draw_mask(structure: Structure, data: Data) -> np.ndarray | None:
    """A mask, `(batch, time)`."""
    if not structure.masked:
        return None
    random, shape = data.random(3), structure.shape[:2]
    step = np.arange(shape[1])
    length = random.integers(0, shape[1] + 1, size=(shape[0], 1))
    return {
        "random": random.random(shape) < 0.5,
        "whole rows": np.broadcast_to(random.random((shape[0], 1)) < 0.5, shape),
        "left": step >= shape[1] - length,
        "right": step < length,
        "none": np.zeros(shape, bool),
        "all": np.ones(shape, bool),
    }[data.mask]


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """What is left of numbers in the precision of a layer, in float64."""
    dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    return np.asarray(values).astype(dtype).astype("float64")
