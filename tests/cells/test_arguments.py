"""The arguments of layers, of classes of one's own, and what is refused."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import (
    ENRNN,
    EURNN,
    GORU,
    NNRNN,
    ORNN,
    SVDRNN,
    AntisymmetricRNN,
    ENRNNCell,
    FactorizedRNN,
    NNRNNCell,
    ORNNCell,
    OrthoRNNCell,
    RecurrentCell,
    RecurrentLayer,
    ScoRNN,
    ScoRNNCell,
    ScuRNNCell,
)
from keras_ortho.activations import LeakyReLU
from keras_ortho.initializers import ScaledRotations
from keras_ortho.parametrizations import Householder, ScaledCayley
from keras_ortho.regularizers import UnitRadii

pytestmark = pytest.mark.backends

BATCH, STEPS, FEATURES = 2, 5, 4
SEQUENCES = np.zeros((BATCH, STEPS, FEATURES), "float32")
CELLS = {
    "dense": lambda: ScoRNNCell(8),
    "heads": lambda: ScoRNNCell(8, heads=2),
    "heads of their own inputs": lambda: ScuRNNCell(4, heads=2, mix_inputs=False),
}


class LoudCell(ORNNCell):
    def __init__(self, units, volume=1.0, **kwargs):
        kwargs.setdefault("dropout", 0.125)
        super().__init__(units, **kwargs)
        self.volume = volume


class Loud(RecurrentLayer):
    cell_class = LoudCell


class FixedCell(RecurrentCell):
    """Gives the class above by itself what that needs."""

    def __init__(self, units, **kwargs):
        super().__init__(units, ScaledCayley(0), use_bias=True, **kwargs)

    @classmethod
    def argument_names(cls):
        return [name for name in super().argument_names() if name != "use_bias"]


class Fixed(RecurrentLayer):
    cell_class = FixedCell


@pytest.mark.parametrize("cls", [LoudCell, Loud])
def test_defaults_of_the_class_and_of_those_above_it(cls):
    made = cls(4)
    assert isinstance(made.activation, LeakyReLU)
    defaults = {"dropout": 0.125, "volume": 1.0, "reflections": None, "use_bias": True}
    config = made.get_config()
    assert {name: config[name] for name in defaults} == defaults
    expected = {"volume": 2.0, "dropout": 0.75, "reflections": 3}
    config = cls(4, **expected).get_config()
    assert {name: config[name] for name in expected} == expected
    assert cls.from_config(config).get_config() == config


@pytest.mark.parametrize("cls", [FixedCell, Fixed])
def test_an_argument_that_the_class_gives_itself(cls):
    config = cls(4).get_config()
    assert "use_bias" not in config
    assert cls.from_config(config).get_config() == config


def test_a_layer_says_what_it_needs():
    with pytest.raises(TypeError, match="FixedCell.* missing .*'units'"):
        Fixed()
    with pytest.raises(ValueError, match="passed to Loud: .*noise"):
        Loud(4, noise=1)
    with pytest.raises(TypeError, match="units"):
        ENRNNCell(4, 3, units=7)
    assert ENRNN(4, 3).units == 7


VALUES = {
    ScoRNN: {"negative_ones": [-1, 8, 1.1, "half"], "recompute": [0, 2.5, None]},
    AntisymmetricRNN: {"step_size": [0, np.nan, "0.1"], "diffusion": [-0.1, None]},
    ORNN: {"reflections": [0, 8, 2.0, "all", True]},
    SVDRNN: {"reflections": [8, (1, 0), (1, 2, 3)], "spectral_margin": [-0.1, np.inf]},
    FactorizedRNN: {"spectral_margin": ["wide"], "spectral_center": [0.0, -1]},
    NNRNN: {"map": ["log"]},
}
REFUSED = [
    (
        lambda cls=cls, kwargs={name: value}: cls(7, **kwargs),
        f"`{name}` must .*Received",
    )
    for cls, arguments in VALUES.items()
    for name, values in arguments.items()
    for value in values
]
ARRAYS = {
    "recurrent_initializer": np.eye(7),
    "short_term_initializer": np.ones((1, 3)),
    "coupling_initializer": np.ones((4, 3)),
}
REFUSED += [
    (
        lambda given={name: array}: ENRNN(4, 3, **given).build((2, 5, 4)),
        f"`{name}` must have .*Received: {name}.shape",
    )
    for name, array in ARRAYS.items()
]
REFUSED += [
    (lambda: EURNN(5), "`units` must be even.*Received: units=5"),
    (lambda: EURNN(6, style="fft"), "power of two.*Received: units=6"),
    (lambda: EURNN(6, 3), "`capacity` must be.*Received: capacity=3"),
    (lambda: EURNN(8, "many", "fft"), "`capacity` .* Received: capacity="),
    (lambda: EURNN(6, style="dense"), "`style` must be.*Received: style='dense'"),
    (lambda: GORU(5, style="tunable"), "even.*Received: units=5"),
    (lambda: GORU(8, 4), "`capacity` .* Received: capacity="),
    (lambda: ENRNN(4, 0), "Received: short_term_units=0"),
    (lambda: ENRNN(4, 3, 5), "Received: negative_ones=5"),
    (lambda: ENRNN(4, 3, epsilon=-0.1), "Received: epsilon=-0.1"),
    (lambda: ScoRNN(2, activation="smoothed_modrelu"), "activation='smoothed_modrelu'"),
    (lambda: OrthoRNNCell(4, "cayley"), "`parametrization` must be .* Received: "),
    (lambda: OrthoRNNCell(4, Householder), "`parametrization` must be .* Received: "),
    (lambda: UnitRadii(-1.0), "`strength` must be .*Received: strength="),
    (lambda: ScaledRotations(4.0), "`max_angle` must.*Received: max_angle="),
    (lambda: ScaledRotations(max_radius=0), "`max_radius` must.*Received: max_rad"),
    (lambda: ScaledRotations()((2, 3)), r"Received: shape=\(2, 3\)"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=range(len(REFUSED)))
def test_arguments_out_of_range(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("kind", CELLS)
def test_shapes_that_do_not_fit_the_cell(kind):
    """The blocks of heads would take some of them for another batch."""
    cell = CELLS[kind]()
    cell.build((None, FEATURES))
    inputs, state = SEQUENCES[:, 0], np.ones((BATCH, 8), "float32")
    for shape in ((BATCH, 4), (BATCH, 16), (BATCH, 2, 4), ()):
        with pytest.raises(ValueError, match=r"`states` must .*, 8\).* Received:"):
            cell(inputs, [np.ones(shape, "float32")])
    for shape in ((BATCH, 6), (BATCH, STEPS, FEATURES)):
        with pytest.raises(ValueError, match=r"`inputs` must .*, 4\).* Received:"):
            cell(np.zeros(shape, "float32"), state)
    output, _ = cell(inputs, [state[:1]])  # One for all sequences.
    expected, _ = cell(inputs, [state])
    np.testing.assert_allclose(output + ops.zeros((BATCH, 8)), expected, atol=1e-6)
    with pytest.raises(ValueError, match="unpack"):
        cell(inputs, [state, state])


@pytest.mark.parametrize(
    "make",
    [
        lambda: ScoRNN(4, rebase_every=1),
        # Its matrix is divided from then on.
        lambda: ENRNN(2, 2, short_term_initializer=np.diag([3.0, 2.0])),
    ],
)
def test_a_layer_that_is_not_trained_stays_as_it_is(make):
    layer = make()
    model = keras.Sequential([keras.Input((STEPS, FEATURES)), layer])
    model.add(keras.layers.Dense(1))
    layer.trainable = False
    model.compile("sgd", "mse")
    before = layer.get_weights()
    x = np.random.default_rng(0).normal(size=(4, STEPS, FEATURES)).astype("float32")
    model.fit(x, x[:, 0, :1], batch_size=2, verbose=0)
    for value, expected in zip(layer.get_weights(), before, strict=True):
        np.testing.assert_array_equal(value, expected)
    layer.trainable = True
    model.compile("sgd", "mse")
    model.fit(x, x[:, 0, :1], batch_size=2, verbose=0)
    names = [weight.name for weight in layer.weights]
    name = "normalize" if "normalize" in names else "recurrent_passes"
    index = names.index(name)
    assert layer.get_weights()[index] != before[index]


@pytest.mark.parametrize(
    ("name", "value"),
    [("rebase_every", 3), ("heads", 2), ("trainable_initial_state", True)],
)
def test_weights_saved_with_another_argument(name, value, tmp_path):
    """The error says with which, in either direction."""
    models = []
    for given in ({}, {name: value}):
        model = keras.Sequential([keras.Input((3, 4)), ScoRNN(4, **given)])
        model.save_weights(tmp_path / f"{len(models)}.weights.h5")
        models.append(model)
    for model, file in zip(models, "10", strict=True):
        with pytest.raises(ValueError, match=f"saved with `{name}=.*Received: {name}="):
            model.load_weights(tmp_path / f"{file}.weights.h5")


def test_a_regularizer_for_each_kind_of_variable():
    l1 = keras.regularizers.L1
    cell = NNRNNCell(4, recurrent_regularizer=l1(0.1), upper_regularizer=l1(0.2))
    cell.build((None, 3))
    found = {v.name: float(v.regularizer.l1) for v in cell.variables if v.regularizer}
    others = ["recurrent_skew", "schur_radii", "schur_angles"]
    assert found == pytest.approx({**dict.fromkeys(others, 0.1), "schur_upper": 0.2})


def test_penalty_of_the_radii():
    layer = NNRNN(5, radii_regularizer=UnitRadii(0.1))
    layer.build((None, None, 3))
    layer.cell.schur_radii.assign([1.0, 3.0, -1.0])
    layer(np.zeros((1, 2, 3)))
    assert [float(loss) for loss in layer.losses] == [pytest.approx(0.1 * 8)]
    again = NNRNN.from_config(layer.get_config())
    assert again.cell.radii_regularizer.strength == 0.1


def test_gates_are_regularized_and_constrained_like_the_rest():
    layer = AntisymmetricRNN(
        7,
        gated=True,
        kernel_regularizer="l2",
        bias_regularizer="l1",
        kernel_constraint="max_norm",
        bias_constraint="non_neg",
        bias_initializer="ones",
    )
    layer.build((None, None, 3))
    assert len(layer.losses) == 4
    for name in ("kernel", "bias"):
        gate = getattr(layer.cell, f"gate_{name}")
        assert gate.constraint is getattr(layer.cell, name).constraint is not None
    np.testing.assert_array_equal(layer.cell.gate_bias, 1)
