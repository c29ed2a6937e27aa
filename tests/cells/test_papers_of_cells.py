"""What the layers share with the papers' networks: how they start, and their sizes."""

import keras
import numpy as np
import pytest
from keras.initializers import Constant

import keras_ortho as ko
from keras_ortho.initializers import (
    HenaffSkew,
    UniformReflectors,
    UnitaryComposition,
)
from keras_ortho.parametrizations import GivensOrthogonal, orthogonality_error
from tests.cells.architectures import ARCHITECTURES
from tests.cells.building import built, weights_of

pytestmark = pytest.mark.backends

# What the papers, or their authors' code, have and the layers have not.
SMALL = {"kernel_initializer": "small_uniform"}
SMOOTHED = {"activation": "smoothed_modrelu"}
OTHERS = {
    "ScoRNN": SMALL,
    "ENRNN": SMALL,
    "GORU": {
        **SMALL,
        "parametrization": GivensOrthogonal(),
        "recurrent_initializer": "uniform_phases",
        "bias_initializer": Constant(0.01),
        "reset_bias_initializer": Constant(2.0),
        "update_bias_initializer": "glorot_uniform",
    },
    "EURNN": SMALL | SMOOTHED,
    "ScuRNN": SMOOTHED,
    "RestrictedURNN": SMOOTHED,
    "FullURNN": SMOOTHED,
}


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_from_paper(architecture):
    expected = OTHERS.get(architecture.layer.__name__, {})
    given = architecture.arguments | {"name": "same"}
    own = {"kernel_initializer": "he_normal", "activation": "tanh"}
    for cls in (architecture.layer, architecture.cell):
        usual, paper = (make(**given).get_config() for make in (cls, cls.from_paper))
        assert {name for name in usual if usual[name] != paper[name]} == set(expected)
        assert paper == cls(**given, **expected).get_config()
        # What is given comes first.
        given_all = given | expected | own
        usual, paper = (make(**given_all) for make in (cls, cls.from_paper))
        assert usual.get_config() == paper.get_config()


def within(limit):
    """Uniform up to a limit."""
    return lambda values: 0.8 * limit < np.abs(values).max() <= limit * (1 + 1e-6)


def normal(deviation):
    # Five standard errors of the deviation of about 5 000 draws.
    return lambda values: abs(values.std() / deviation - 1) < 5 / np.sqrt(10_000)


def equals(expected):
    return lambda values: np.allclose(values, expected)


def nonzeros(count):
    return lambda values: np.count_nonzero(values) == count


def unit_reflectors(packed):
    reflectors = np.split(packed, np.cumsum(range(128, 113, -1)))
    return np.allclose([np.linalg.norm(u) for u in reflectors], 1)


signs = np.repeat([1, -1], 85)
zero, small, circle = equals(0), within(0.01), within(np.pi)
of_state = {"bias": small, "initial_state": within(np.sqrt(3 / 256))}
# For each a layer, its number of inputs, and how its weights start.
STARTS = {
    "scornn": (
        lambda: ko.ScoRNN.from_paper(170),
        2,
        {"kernel": small, "bias": zero, "recurrent_skew": nonzeros(85)}
        | {"recurrent_signs": equals(signs)},
    ),
    "scurnn": (
        lambda: ko.ScuRNN(116),
        1,
        {"kernel": within(np.sqrt(6 / 233)), "bias": small, "initial_state": small}
        | {"recurrent_phases": within(2 * np.pi), "recurrent_skew_imag": zero}
        | {"recurrent_skew_real": nonzeros(58)},
    ),
    "enrnn": (
        lambda: ko.ENRNN.from_paper(96, 64, negative_ones=29),
        2,
        {"kernel": small, "bias": zero, "recurrent_skew": nonzeros(48)}
        | {"recurrent_signs": equals([1] * 67 + [-1] * 29), "normalize": zero}
        | {"short_term_matrix": nonzeros(128)}
        | {"coupling_kernel": within(np.sqrt(6 / 160))},
    ),
    "antisymmetric": (
        lambda: ko.AntisymmetricRNN(100, gated=True),
        50,
        dict.fromkeys(["kernel", "gate_kernel"], normal(50**-0.5))
        | {"bias": zero, "gate_bias": zero, "recurrent_skew": normal(0.1)},
    ),
    "svdrnn": (lambda: ko.SVDRNN(128, 16), 2, {"singular_logits": zero, "bias": zero}),
    "ornn": (
        lambda: ko.ORNN(128, 16),
        2,
        {"kernel": within(np.sqrt(6 / 130)), "reflectors": unit_reflectors}
        | of_state
        | {"bias": zero},
    ),
    "urnn": (
        lambda: ko.RestrictedURNN(128),
        10,
        {"kernel": within(np.sqrt(6 / 266)), "recurrent_phases": circle}
        | {"recurrent_reflectors": within(np.sqrt(6 / 258))}
        | {"permutation": lambda found: set(found) == set(range(128))}
        | of_state,
    ),
    "full urnn": (
        lambda: ko.FullURNN(128),
        10,
        {"kernel": within(np.sqrt(6 / 266))} | of_state,
    ),
    "eurnn": (
        lambda: ko.EURNN.from_paper(512, 4),
        10,
        {"kernel": small, "bias": zero, "output_phases": circle}
        | {"recurrent_angles": circle, "recurrent_phases": circle},
    ),
    "goru": (
        lambda: ko.GORU.from_paper(128),
        10,
        dict.fromkeys(["kernel", "gate_kernel", "gate_recurrent_kernel"], small)
        | {"bias": equals(0.01), "reset_bias": equals(2), "recurrent_angles": circle}
        | {"update_bias": within(np.sqrt(3 / 128))},
    ),
    "nnrnn": (
        lambda: ko.NNRNN(64),
        3,
        {"schur_upper": zero, "schur_radii": equals(1), "schur_angles": circle}
        | {"recurrent_skew": nonzeros(32), "bias": small},
    ),
    "factorized": (
        lambda: ko.FactorizedRNN(64),
        3,
        {"singular_logits": zero, "left_skew": nonzeros(32), "right_skew": zero},
    ),
}


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("name", STARTS)
def test_starts_with_the_papers_settings(name):
    keras.utils.set_random_seed(0)
    make, features, expected = STARTS[name]
    layer = make()
    layer.build((None, None, features))
    weights = weights_of(layer)
    for weight, holds in expected.items():
        assert holds(weights[weight]), weight
    # No weight is a copy of another.
    drawn = [w.ravel()[:100] for w in weights.values() if len(np.unique(w)) > 3]
    for i, first in enumerate(drawn):
        for second in drawn[:i]:
            size = min(len(first), len(second))
            assert not np.array_equal(first[:size], second[:size])
    if not isinstance(layer, ko.AntisymmetricRNN | ko.ENRNN):
        matrix = layer.recurrent_matrix()
        assert orthogonality_error(matrix) <= 10 * len(matrix) * np.finfo("float32").eps


@pytest.mark.parametrize(
    ("cls", "make", "names"),
    [
        (ko.ScuRNN, HenaffSkew, ["recurrent_skew_real", "recurrent_phases"]),
        (ko.SVDRNN, UniformReflectors, ["left_reflectors", "right_reflectors"]),
        (ko.FullURNN, UnitaryComposition, ["recurrent_unitary"]),
        (ko.RestrictedURNN, UnitaryComposition, ["recurrent_phases", "permutation"]),
    ],
)
def test_a_seed_fixes_all_that_is_drawn(cls, make, names):
    first, again, other = (
        weights_of(built(cls, 12, recurrent_initializer=make(seed=seed)))
        for seed in (3, 3, 4)
    )
    for name in names:
        np.testing.assert_array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name])


# Published with networks for copying, adding, MNIST, CIFAR-10 and TIMIT.
COUNTS = [
    (ko.ScoRNN(190), 10, 9, 21_764),
    (ko.ScoRNN(170), 2, 1, 15_046),
    (ko.ScoRNN(170), 1, 10, 16_415),
    (ko.ScoRNN(425), 129, 129, 200_304),
    (ko.ScuRNN(130), 10, 9, 22_369),
    (ko.ScuRNN(250), 1, 10, 69_010),
    (ko.RestrictedURNN(470), 10, 9, 22_569),
    (ko.RestrictedURNN(378), 129, 129, 198_957),
    (ko.ENRNN(172, 20), 10, 9, 22_395),
    (ko.ENRNN(374, 94, coupling=False), 129, 129, 199_928),
    (ko.AntisymmetricRNN(128), 1, 10, 9_674),
    (ko.AntisymmetricRNN(256, gated=True), 3, 10, 37_258),
    (ko.AntisymmetricRNN(196, gated=True, antisymmetric=False), 3, 10, 41_954),
    (ko.ORNN(256, 32), 1, 10, 11_034),
    # By the paper's own formula, with the initial state and the bias of the output.
    (ko.SVDRNN(256, 16, trainable_initial_state=True), 1, 10, 11_546),
    # Without the embedding of 50 symbols in 200 numbers.
    (ko.NNRNN(1024), 200, 50, 1_315_650 - 50 * 200),
    # About 9k in the scoRNN paper, with a read-out of the real part.
    (ko.EURNN(512, capacity=2, real_output=True), 1, 10, 8_200),
    # With the degrees of freedom of the factors, n (n - 1) / 2 each.
    (ko.FactorizedRNN(128), 1, 10, 128 * 127 + 3 * 128 + 10 * 129),
    # The paper counts n^2; a free complex matrix holds twice as many reals.
    (ko.FullURNN(116), 1, 10, 2 * 116**2 + 25 * 116 + 10),
    (ko.GORU.from_paper(128), 10, 9, 3 * 128 * 11 + 2 * 128**2 + 7 * 64 + 129 * 9),
]


@pytest.mark.slow_on_jax
@pytest.mark.parametrize(
    ("layer", "features", "outputs", "published"),
    COUNTS,
    ids=lambda value: value.name if isinstance(value, keras.Layer) else None,
)
def test_number_of_trained_parameters(layer, features, outputs, published):
    model = keras.Sequential([keras.Input((None, features)), layer])
    model.add(keras.layers.Dense(outputs))
    weights = model.trainable_weights
    assert sum(int(np.prod(weight.shape)) for weight in weights) == published
