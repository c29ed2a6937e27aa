"""The arguments of layers, of classes of one's own, and what is refused."""

from functools import partial

import keras
import numpy as np
import pytest
from keras import ops

import keras_ortho as ko
from keras_ortho.activations import LeakyReLU
from keras_ortho.initializers import ScaledRotations, UnitaryComposition
from keras_ortho.parametrizations import (
    FreeVariable,
    GivensOrthogonal,
    Householder,
    Parametrization,
    ScaledCayley,
    ScaledCayleyUnitary,
)
from keras_ortho.regularizers import UnitRadii
from tests.cells.building import built, refused, weights_of

pytestmark = pytest.mark.backends

BATCH, STEPS, FEATURES = 2, 5, 4
SEQUENCES = np.zeros((BATCH, STEPS, FEATURES), "float32")
CELLS = {
    "dense": lambda: ko.ScoRNNCell(8),
    "heads": lambda: ko.ScoRNNCell(8, heads=2),
    "heads of their own inputs": lambda: ko.ScuRNNCell(4, heads=2, mix_inputs=False),
}


class LoudCell(ko.ORNNCell):
    def __init__(self, units, volume=1.0, **kwargs):
        kwargs.setdefault("dropout", 0.125)
        super().__init__(units, **kwargs)
        self.volume = volume


class Loud(ko.RecurrentLayer):
    cell_class = LoudCell


class FixedCell(ko.RecurrentCell):
    """Gives the class above by itself what that needs."""

    def __init__(self, units, **kwargs):
        super().__init__(units, ScaledCayley(0), use_bias=True, **kwargs)

    @classmethod
    def argument_names(cls):
        return [name for name in super().argument_names() if name != "use_bias"]


class Fixed(ko.RecurrentLayer):
    cell_class = FixedCell


@pytest.mark.parametrize("cls", [LoudCell, Loud])
def test_defaults_of_the_class_and_of_those_above_it(cls):
    made = cls(4)
    assert isinstance(made.activation, LeakyReLU)
    defaults = {"dropout": 0.125, "volume": 1.0, "reflections": None, "use_bias": True}
    assert defaults.items() <= made.get_config().items()
    expected = {"volume": 2.0, "dropout": 0.75, "reflections": 3}
    config = cls(4, **expected).get_config()
    assert expected.items() <= config.items()
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
        ko.ENRNNCell(4, 3, units=7)
    assert ko.ENRNN(4, 3).units == 7


class Wrong(Parametrization):
    """One that takes arguments, and keeps one of them by another name."""

    def __init__(self, scale=1.0, name="entries", made=None):
        self.factor, self.name, self.made = scale, name, made

    def variables(self, size, initializer=None):
        return [FreeVariable(self.name, (size, size), "zeros")]

    def matrix(self, entries):
        return entries if self.made is None else self.made


# Of each argument what it may not be.
VALUES = {
    ko.ScoRNN: {"negative_ones": [-1, 8, 1.1, "half"], "recompute": [0, 2.5, None]},
    ko.AntisymmetricRNN: {"step_size": [0, np.nan, "0.1"], "diffusion": [-0.1, None]},
    ko.ORNN: {"reflections": [0, 8, 2.0, "all", True]},
    ko.SVDRNN: {
        "reflections": [8, (1, 0), (1, 2, 3)],
        "spectral_margin": [-0.1, np.inf],
    },
    ko.FactorizedRNN: {"spectral_margin": ["wide"], "spectral_center": [0.0, -1]},
    ko.NNRNN: {"map": ["log"]},
}
few, eye = "`style` must be.*Received: style=", np.eye(4)
cannot = "cannot have: `RestrictedUnitary` cannot be set .*Received"
# Matrices that a layer of such arguments does not take.
MATRICES = [
    (ko.ScoRNN, (4,), 2 * eye, "must be orthogonal"),
    (ko.ScoRNN, (4,), np.eye(5), "Received: .*shape"),
    (ko.ScuRNN, (4,), 2j * eye, "must be unitary"),
    (ko.ScuRNN, (4,), np.diag([1.0] * 7 + [-1.0]), "the real form of a complex"),
    (ko.RestrictedURNN, (4,), eye, r"matrix of shape \(4, 4\)"),
    (ko.EURNN, (4, 2), eye, few),
    (ko.EURNN, (4, 2, "fft"), eye, few),
    (ko.ORNN, (4, 3), eye, r"must be 4 .*reflections=\(3,"),
    (ko.SVDRNN, (4,), np.diag([1, 1, 1, 1.02]), "between 0.99 and 1.01. Received: b"),
    (ko.FactorizedRNN, (4,), np.diag([1, 1, 1, 1.2]), "between 0.9 and 1.1. Recei"),
    (ko.AntisymmetricRNN, (4,), eye, "skew-symmetric.*Received: a matrix with"),
    (ko.ENRNN, (2, 2), np.diag([1, 1, 0.5, 1.5]), "at most 1. Received: 1.5"),
    (ko.ENRNN, (2, 2, 1, False), np.tril(np.ones((4, 4))), "form .*coupling=False"),
]
# Initializers with which a layer can be made, but not built.
start = "recurrent_initializer"
BUILDS = [
    (ko.ScoRNN, (4,), start, "ones", f"`{start}` returned a matrix .*distance"),
    (ko.ScoRNN, (4,), start, np.eye(4)[:2], "Received: .*shape"),
    (ko.ScuRNN, (4,), start, 2j * eye, "Received: .*distance"),
    (ko.SVDRNN, (4,), start, "glorot_uniform", "must have singular values between"),
    (ko.AntisymmetricRNN, (4,), start, "orthogonal", "skew-symmetric"),
    (ko.RestrictedURNN, (4,), start, "orthogonal", cannot),
    (ko.RestrictedURNN, (4,), start, eye, cannot),
]
BUILDS += [
    (cls, args, name, array, f"`{name}` must have the shape .*Received: {name}.shape")
    for cls, args, name, array in [
        (ko.ScoRNN, (4,), "kernel_initializer", np.ones((1, 4))),
        (ko.AntisymmetricRNN, (4, 0.1, 0.01, True), "bias_initializer", np.ones(3)),
        (ko.ENRNN, (4, 3), start, np.eye(7)),
        (ko.ENRNN, (4, 3), "short_term_initializer", np.ones((1, 3))),
        (ko.ENRNN, (4, 3), "coupling_initializer", np.ones((4, 3))),
    ]
]
# Calls, and what the errors say.
REFUSED = [
    (partial(cls, 7, **{name: value}), f"`{name}` must .*Received")
    for cls, arguments in VALUES.items()
    for name, values in arguments.items()
    for value in values
]
REFUSED += [
    (partial(built, cls, *args, **{name: value}), message)
    for cls, args, name, value, message in BUILDS
]
REFUSED += [
    (lambda made=made: ko.OrthoRNN(4, Wrong(made=made))(SEQUENCES), message)
    for made, message in [
        ([[1.0]], "`Wrong.matrix` must return a real tensor"),
        (1j * eye, "`Wrong.matrix` must return a real tensor"),
        (np.ones((2, 4)), r"`Wrong.matrix`.*\(4, 4\).*Received.*\(2, 4"),
    ]
]
layer = ko.ScoRNN(8)
STATES = np.zeros((BATCH, 8), "float32")
wrong = Wrong(name="kernel")
REFUSED += [
    (lambda: built(ko.OrthoRNN, 4, wrong), "`Wrong.variables` .*Received: kernel$"),
    (lambda: built(ko.OrthoRNN, 4, Householder(5)), "`reflections` .*Received"),
    (lambda: ko.ScoRNN(4, dropout=1), "`dropout` must be a fraction.*Received: "),
    (
        lambda: ko.ScoRNN(4, use_bias=False),
        "Received: activation='modrelu', use_bias=F",
    ),
    (lambda: ko.ScoRNN(4).recurrent_matrix(), "Received: .* with built=False"),
    (lambda: layer(SEQUENCES[:, 0]), "expected ndim=3"),
    (lambda: layer(1j * SEQUENCES), "`sequences` must be real: .*Received: "),
    (
        lambda: built(ko.ScoRNNCell, 8)(SEQUENCES[:, 0, :3], [1j * STATES]),
        "`states` must be real: .*Received: ",
    ),
    (
        lambda: layer(SEQUENCES, initial_state=[STATES, STATES]),
        "must be a tensor, or a list with one tensor.*Received: 2 init",
    ),
    (lambda: layer(SEQUENCES, np.zeros((3, 8))), "`initial_state` must have the shape"),
    (lambda: layer(SEQUENCES, mask=np.ones((2, 4))), "`mask` must have the shape"),
    (lambda: Wrong().get_config(), "`Wrong` must store .*Received: .* scale"),
    (lambda: ko.EURNN(5), "`units` must be even.*Received: units=5"),
    (lambda: ko.EURNN(6, style="fft"), "power of two.*Received: units=6"),
    (lambda: ko.EURNN(6, 3), "`capacity` must be.*Received: capacity=3"),
    (lambda: ko.EURNN(8, "many", "fft"), "`capacity` .* Received: capacity="),
    (lambda: ko.EURNN(6, style="dense"), "`style` must be.*Received: style='dense'"),
    (lambda: ko.GORU(5, GivensOrthogonal()), "power of two.*Received: units=5"),
    (lambda: ko.GORU(4, ScaledCayleyUnitary()), "real. Received: Scaled"),
    (lambda: ko.ENRNN(4, 0), "Received: short_term_units=0"),
    (lambda: ko.ENRNN(4, 3, 5), "Received: negative_ones=5"),
    (lambda: ko.ENRNN(4, 3, epsilon=-0.1), "Received: epsilon=-0.1"),
    (
        lambda: ko.ScoRNN(2, activation="smoothed_modrelu"),
        "activation='smoothed_modrelu'",
    ),
    (lambda: ko.OrthoRNNCell(4, "cayley"), "`parametrization` must be .* Received: "),
    (lambda: UnitRadii(-1.0), "`strength` must be .*Received: strength="),
    (lambda: ScaledRotations(4.0), "`max_angle` must.*Received: max_angle="),
    (lambda: ScaledRotations(max_radius=0), "`max_radius` must.*Received: max_rad"),
    (lambda: ScaledRotations()((2, 3)), r"Received: shape=\(2, 3\)"),
    (lambda: UnitaryComposition()((2, 3, 4), "float32"), "Received: shape=.*, dtype="),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("cls", "args", "matrix", "message"), MATRICES)
def test_matrices_that_do_not_fit(cls, args, matrix, message):
    layer = built(cls, *args)
    with refused(layer, message):
        layer.set_recurrent_matrix(matrix)


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
    ("make", "name"),
    [
        (partial(ko.ScoRNN, 4, rebase_every=1), "recurrent_passes"),
        # Its matrix is divided from then on.
        (partial(ko.ENRNN, 2, 2, short_term_initializer=np.diag([3, 2])), "normalize"),
    ],
)
def test_a_layer_that_is_not_trained_stays_as_it_is(make, name):
    layer = make()
    model = keras.Sequential([keras.Input((STEPS, FEATURES)), layer])
    model.add(keras.layers.Dense(1))
    x = np.random.default_rng(0).normal(size=(4, STEPS, FEATURES)).astype("float32")
    before = weights_of(layer)
    for trainable in (False, True):
        layer.trainable = trainable
        model.compile("sgd", "mse")
        model.fit(x, x[:, 0, :1], batch_size=2, verbose=0)
        found = weights_of(layer)
        changed = {key for key in found if not np.array_equal(found[key], before[key])}
        assert name in changed if trainable else not changed


def test_regularizers_of_nnrnn():
    """One for each kind of variable; that of the radii is the paper's."""
    l1 = keras.regularizers.L1
    cell = ko.NNRNNCell(4, recurrent_regularizer=l1(0.1), upper_regularizer=l1(0.2))
    cell.build((None, 3))
    found = {v.name: float(v.regularizer.l1) for v in cell.variables if v.regularizer}
    others = ["recurrent_skew", "schur_radii", "schur_angles"]
    assert found == pytest.approx({**dict.fromkeys(others, 0.1), "schur_upper": 0.2})
    layer = built(ko.NNRNN, 5, radii_regularizer=UnitRadii(0.1))
    layer.cell.schur_radii.assign([1.0, 3.0, -1.0])
    assert [float(loss) for loss in layer.losses] == [pytest.approx(0.1 * 8)]
    again = ko.NNRNN.from_config(layer.get_config())
    assert again.cell.radii_regularizer.strength == 0.1


def test_gates_are_regularized_and_constrained_like_the_rest():
    options = {"kernel_regularizer": "l2", "bias_regularizer": "l1"}
    options |= {"kernel_constraint": "max_norm", "bias_constraint": "non_neg"}
    options |= {"bias_initializer": "ones", "gated": True}
    layer = built(ko.AntisymmetricRNN, 7, **options)
    assert len(layer.losses) == 4
    for name in ("kernel", "bias"):
        gate = getattr(layer.cell, f"gate_{name}")
        assert gate.constraint is getattr(layer.cell, name).constraint is not None
    np.testing.assert_array_equal(layer.cell.gate_bias, 1)
