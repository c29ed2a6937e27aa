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
from tests.cells.loops import ACTIVATIONS, Cell, is_modrelu

ON_JAX = keras.backend.backend() == "jax"
POLICIES = ("float64", "float32", "mixed_bfloat16", "mixed_float16")
MASKS = ("random", "whole rows", "left", "right", "none", "all")
# What an input may be that is not of the layer's own dtype.
OTHER_INPUTS = ("bool", "uint8", "int32", "int64", "float16", "float64")


@dataclasses.dataclass(frozen=True)
class Structure:
    """A layer, the shape of what it gets, and how it is called."""

    name: str
    arguments: dict[str, Any]
    activation: str
    use_bias: bool
    policy: str
    features: int
    batch: int
    time: int
    inputs: str | None
    masked: bool
    start: str
    trained_start: bool | None
    stateful: bool
    go_backwards: bool
    return_sequences: bool
    return_state: bool
    zero_output_for_mask: bool
    recompute: bool | int
    unroll: bool
    dropout: float
    training: bool
    mode: str
    unknown: tuple[bool, bool]

    @property
    def fault(self) -> str | None:
        """The argument that the message about it names, where one is not allowed."""
        units, style = self.arguments.get("units", 0), self.arguments.get("style")
        if is_modrelu(self.activation) and not self.use_bias:
            return "use_bias"
        if style == "fft" and (units < 2 or units & (units - 1)):
            return "units"
        if style == "tunable" and units % 2:
            return "units"
        if style == "tunable" and (self.arguments["capacity"] or 2) % 2:
            return "capacity"
        if (self.arguments.get("reflections") or 0) > units:
            return "reflections"
        return None

    @property
    def dtype(self) -> str:
        """What it computes in."""
        return self.policy.removeprefix("mixed_")

    @property
    def input_dtype(self) -> str:
        """What its inputs are of."""
        return self.inputs or ("float64" if self.policy == "float64" else "float32")

    @property
    def cell(self) -> Cell:
        """What the loop needs to know."""
        return Cell(
            activation=self.activation,
            complex_state=LAYERS[self.name].cell_class.complex_state,
            step_size=self.arguments.get("step_size"),
            gated=self.name == "GORU" or self.arguments.get("gated", False),
        )

    def make(self) -> RecurrentLayer:
        """Builds the layer."""
        arguments = dict(self.arguments)
        if self.trained_start is not None:
            arguments["trainable_initial_state"] = self.trained_start
        layer = LAYERS[self.name](
            **arguments,
            **self.shared,
            activation=ACTIVATIONS[self.activation].value,
            use_bias=self.use_bias,
            recompute=self.recompute,
            unroll=self.unroll,
            dropout=self.dropout,
            recurrent_dropout=self.dropout,
            dtype=self.policy,
            # They get their values from `draw_weights`, and random ones cost more.
            kernel_initializer="zeros",
            bias_initializer="zeros",
            initial_state_initializer="zeros",
        )
        layer.build((self.batch, self.time, self.features))
        return layer

    def make_stock(self, layer: RecurrentLayer) -> keras.layers.RNN:
        """Builds Keras's layer around the same cell."""
        stock = keras.layers.RNN(
            layer.cell,
            **self.shared,
            # Its other loop holds the state for the output before, on JAX.
            unroll=ON_JAX
            and self.masked
            and layer.cell.output_size != layer.cell.state_size,
            dtype=self.policy,
        )
        stock.build((self.batch, self.time, self.features))
        return stock

    @property
    def shared(self) -> dict[str, bool]:
        """The arguments that Keras's layer has, too."""
        names = (
            "go_backwards",
            "return_sequences",
            "return_state",
            "stateful",
            "zero_output_for_mask",
        )
        return {name: getattr(self, name) for name in names}


@dataclasses.dataclass(frozen=True)
class Data:
    """Weights and inputs, drawn from a seed."""

    seed: int
    scale: float
    mask: str
    zero_bias: bool
    zero_inputs: bool
    zero_start: bool


_few = st.integers(1, 6)
_angles = {
    "units": _few,
    "capacity": st.sampled_from([2, 4, 3]),
    "style": st.sampled_from(["tunable", "fft"]),
}
_fraction = st.sampled_from([0, 1, 0.5, 1.0])
_singular = {
    "spectral_margin": st.sampled_from([0.01, 0.0, 0.25]),
    "spectral_center": st.sampled_from([1.0, 0.75]),
}
_reflections = st.none() | _few
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
    "EURNN": {**_angles, "units": st.integers(1, 4), "real_output": st.booleans()},
    "GORU": {**_angles, "capacity": st.none() | st.sampled_from([2, 4, 3])},
    "NNRNN": {"units": _few, "map": st.sampled_from(["exponential", "cayley"])},
    "ORNN": {"units": _few, "reflections": _reflections},
    "SVDRNN": {"units": _few, "reflections": _reflections, **_singular},
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


# The names of the default activations. The paper's leaky ReLU is an object, and configs
# of complex units call modReLU by another name.
DEFAULTS = {
    str(a): activation.removeprefix("exact_")
    if isinstance(activation := a.defaults["activation"], str)
    else "paper_leaky_relu"
    for a in ARCHITECTURES
}


@st.composite
def structures(draw: st.DrawFn, name: str, modes: tuple[str, ...]) -> Structure:
    """Draws what to build, and how to call it."""

    def one_of(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    # Not the simplest of all, which would come first, and be half of a short form.
    draw(st.booleans().filter(bool))
    # Rarely what is not allowed, and rarely more than a segment.
    odd = draw(st.integers(0, 19)) == 19
    units = st.integers(1, 4) if LAYERS[name].cell_class.complex_state else _few
    arguments = draw(st.fixed_dictionaries(ARGUMENTS.get(name, {"units": units})))
    own = DEFAULTS[name]
    names = set(ACTIVATIONS)
    if not LAYERS[name].cell_class.complex_state:
        names.remove("smoothed_modrelu")
    activation = draw(st.just(own) | st.sampled_from(sorted(names)))
    use_bias = draw(st.booleans()) or (is_modrelu(activation) and not odd)
    policy = draw(st.just("float64") | st.sampled_from(POLICIES))
    # What grows like a tower of powers, or by a factor a step, for few steps only.
    few = {"exponential": 2} | dict.fromkeys(("log_softmax", "selu"), 3)
    time = draw(st.integers(1, few.get(activation, 9)))
    mode = draw(st.sampled_from(modes))
    unroll = draw(st.booleans()) and draw(st.booleans())
    if (
        odd
        and not unroll
        and activation not in few
        and name not in ("NNRNN", "ENRNN", "SVDRNN")
    ):
        time = one_of(57, 65)
    stateful = draw(st.booleans()) and draw(st.booleans())
    in_graph = mode != "eager"
    unknown = (
        in_graph and not stateful and draw(st.booleans()),
        in_graph and not unroll and draw(st.booleans()),
    )
    training = draw(st.booleans())
    structure = Structure(
        name=name,
        arguments=arguments,
        activation=activation,
        use_bias=use_bias,
        policy=policy,
        features=draw(st.integers(1, 3)),
        batch=draw(st.integers(1, 5)),
        time=time,
        inputs=draw(st.none() | st.none() | st.sampled_from(OTHER_INPUTS)),
        masked=one_of(True, True, False),
        start=one_of("given", "own", "given to all"),
        trained_start=one_of(None, True, False),
        stateful=stateful,
        go_backwards=draw(st.booleans()),
        return_sequences=draw(st.booleans()),
        return_state=draw(st.booleans()),
        zero_output_for_mask=draw(st.booleans()),
        recompute=one_of(False, True, 1, 2, 3, 100),
        unroll=unroll,
        dropout=0.0 if training else one_of(0.0, 0.3),
        training=training,
        mode=mode,
        unknown=unknown,
    )
    if structure.fault and not odd:
        structure = dataclasses.replace(structure, arguments=_allowed(arguments))
    return structure


def _allowed(arguments: dict[str, Any]) -> dict[str, Any]:
    """The nearest arguments that are allowed."""
    arguments = dict(arguments)
    units = arguments["units"]
    if arguments.get("style") == "fft":
        arguments["units"] = 4 if units > 2 else 2
    elif arguments.get("style") == "tunable":
        arguments["units"] = units + units % 2
        if arguments["capacity"]:
            arguments["capacity"] -= arguments["capacity"] % 2
    elif "reflections" in arguments:
        arguments["reflections"] = units
    return arguments


data = st.builds(
    Data,
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([0.5, 1.0, 0.1]),
    mask=st.sampled_from(MASKS),
    zero_bias=st.sampled_from([False, False, False, True]),
    zero_inputs=st.sampled_from([False, False, False, True]),
    zero_start=st.sampled_from([False, False, False, True]),
)


def draw_weights(cell: RecurrentCell, data: Data) -> dict[str, np.ndarray]:
    """Values of all weights of a cell, by name."""
    random = np.random.default_rng(data.seed)
    weights = {}
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
            value = (not data.zero_start) * data.scale * value
        elif weight.name.endswith("bias"):
            value = (not data.zero_bias) * data.scale * value
        elif "kernel" in weight.name:
            value = data.scale * value
        weights[weight.name] = value
    return weights


def draw_inputs(structure: Structure, data: Data) -> np.ndarray:
    """Inputs, `(batch, time, m)`."""
    random = np.random.default_rng([data.seed, 1])
    shape = (structure.batch, structure.time, structure.features)
    x = random.normal(size=shape)
    if data.zero_inputs:  # Of some steps.
        x[random.random(shape[:2]) < 0.5] = 0
    if structure.input_dtype in ("bool", "uint8"):
        x = np.abs(x)
    if "int" in structure.input_dtype:
        x = np.round(2 * x)
    if structure.input_dtype == "bool":
        x = x > 0.7
    return x.astype(structure.input_dtype)


def draw_state(structure: Structure, data: Data, size: int, rows: int) -> np.ndarray:
    """A state, `(rows, n)`, in the dtype of the variables."""
    random = np.random.default_rng([data.seed, 2])
    state = (
        np.zeros((rows, size)) if data.zero_start else random.normal(size=(rows, size))
    )
    return state.astype("float64" if structure.policy == "float64" else "float32")


def draw_mask(structure: Structure, data: Data) -> np.ndarray | None:
    """A mask, `(batch, time)`."""
    if not structure.masked:
        return None
    random = np.random.default_rng([data.seed, 3])
    shape = (structure.batch, structure.time)
    step = np.arange(structure.time)
    length = random.integers(0, structure.time + 1, size=(structure.batch, 1))
    return {
        "random": random.random(shape) < 0.5,
        "whole rows": np.broadcast_to(random.random((shape[0], 1)) < 0.5, shape),
        "left": step >= structure.time - length,
        "right": step < length,
        "none": np.zeros(shape, bool),
        "all": np.ones(shape, bool),
    }[data.mask]


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """What is left of numbers in the precision of a layer, in float64."""
    dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    return np.asarray(values).astype(dtype).astype("float64")
