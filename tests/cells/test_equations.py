"""Each layer against the equations of its paper in NumPy, and its gradient."""

import numpy as np
import pytest

import keras_ortho as ko
from keras_ortho.parametrizations import GivensOrthogonal
from tests import reference
from tests.cells.building import assert_gradients, lively, weights_of
from tests.cells.oracle import outputs_of

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


def of(function, *names, **kwargs):
    """The matrix `W` of weights with these names."""
    return lambda w: function(*(w[name] for name in names), **kwargs)


def antisymmetric(weights):
    m, n = weights.get("recurrent_kernel"), len(weights["bias"])
    return (reference.skew(weights["recurrent_skew"], n) if m is None else m) - (
        0.2 * np.eye(n)
    )


def bounded(logits):
    return 0.75 + 2 * 0.3 * (1 / (1 + np.exp(-logits)) - 0.5)


def svd(left, right, logits):
    """Equations 4, 7 and 8 of the paper, whose `U` is the right factor here."""
    n = len(logits)
    return reference.svd(left, right, bounded(logits), n, n)


def factorized(left, left_signs, right, right_signs, logits):
    left = reference.scaled_cayley(left, left_signs)
    right = reference.scaled_cayley(right, right_signs)
    return left @ np.diag(bounded(logits)) @ right.T


def rotations(style):
    names = "recurrent_angles", "recurrent_phases", "output_phases"
    return of(lambda *parts: reference.rotations(style, *parts), *names)


def turned(style):
    """The real rotations of GORU."""

    def matrix(weights):
        angles, n = weights["recurrent_angles"], len(weights["bias"])
        q = reference.rotations(style, angles, 0 * angles, np.zeros(n)).real
        return q * weights.get("recurrent_signs", 1.0)

    return matrix


def normalized(epsilon):
    """`W` of ENRNN, whose short-term block is divided if that has begun, or is due."""

    def matrix(weights):
        long, short = cayley(weights), weights["short_term_matrix"]
        radius = np.abs(np.linalg.eigvals(short)).max()
        if weights["normalize"] or radius > 1:
            short = short / (radius + epsilon)
        couple = weights.get("coupling_kernel", np.zeros((len(short), len(long))))
        return np.block([[long, np.zeros_like(couple.T)], [couple, short]])

    return matrix


cayley = of(reference.scaled_cayley, "recurrent_skew", "recurrent_signs")
unitary_cayley = of(
    reference.unitary_cayley,
    *("recurrent_skew_real", "recurrent_skew_imag", "recurrent_phases"),
)
restricted = of(
    reference.restricted_unitary,
    *("recurrent_phases", "recurrent_reflectors", "permutation"),
)
full = of(lambda parts: parts[0] + 1j * parts[1], "recurrent_unitary")
reflected = of(svd, "left_reflectors", "right_reflectors", "singular_logits")
factors = "left_skew", "left_signs", "right_skew", "right_signs", "singular_logits"
schur = "recurrent_skew", "schur_upper", "schur_radii", "schur_angles"
spectrum = {"spectral_margin": 0.3, "spectral_center": 0.75}
euler = {"step_size": 0.3, "diffusion": 0.2}
ablation = {**euler, "antisymmetric": False}
leaky, smoothed = "paper_leaky_relu", "smoothed_modrelu"


def householder(weights):
    return reference.householder(weights["reflectors"], len(weights["bias"])).T


# A layer, what makes `W` of its weights, and its activation, modReLU if none is named.
EQUATIONS = {
    "scornn": (ko.ScoRNN(5, 2), cayley),
    "scornn, one": (ko.ScoRNN(1, 1), cayley),
    "scornn, tanh": (ko.ScoRNN(5, activation="tanh"), cayley, "tanh"),
    "scurnn": (ko.ScuRNN(3), unitary_cayley),
    "scurnn, smoothed": (ko.ScuRNN(3, activation=smoothed), unitary_cayley, smoothed),
    "antisymmetric": (ko.AntisymmetricRNN(4, **euler), antisymmetric, "tanh"),
    "gated": (ko.AntisymmetricRNN(4, gated=True, **euler), antisymmetric, "tanh"),
    "ablation": (ko.AntisymmetricRNN(4, gated=True, **ablation), antisymmetric, "tanh"),
    "svdrnn": (ko.SVDRNN(5, (3, 2), **spectrum), reflected, leaky),
    "ornn": (ko.ORNN(5), householder, leaky),
    "ornn, two": (ko.ORNN(5, 2), householder, leaky),
    "urnn": (ko.RestrictedURNN(3), restricted),
    "full urnn": (ko.FullURNN(3), full),
    "eurnn": (ko.EURNN(4, 4, real_output=True), rotations("tunable")),
    "eurnn, fft": (ko.EURNN(4, style="fft"), rotations("fft")),
    "goru": (ko.GORU(5), cayley),
    "goru, fft": (ko.GORU(4, GivensOrthogonal()), turned("fft")),
    "goru, tunable": (ko.GORU(4, GivensOrthogonal(2, "tunable")), turned("tunable")),
    "nnrnn": (ko.NNRNN(5), of(reference.real_schur, *schur, map="exponential")),
    "nnrnn, cayley": (
        ko.NNRNN(5, "cayley"),
        of(reference.real_schur, *schur, map="cayley"),
    ),
    "factorized": (ko.FactorizedRNN(5, **spectrum), of(factorized, *factors), leaky),
    "enrnn": (ko.ENRNN(4, 3, 1), normalized(0.0)),
    "enrnn, epsilon": (ko.ENRNN(4, 3, 1, epsilon=0.2), normalized(0.2)),
    "enrnn, no coupling": (ko.ENRNN(4, 3, 1, coupling=False), normalized(0.0)),
}


# Of the short-term block of ENRNN, which is divided from the radius 1 on.
RADII = [(0.8, False), (0.8, True), (1.3, False)]
CASES = [
    (name, *state)
    for name, (layer, *_) in EQUATIONS.items()
    for state in (RADII if isinstance(layer, ko.ENRNN) else [()])
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_gradients(case):
    name, *state = case
    layer, *description = EQUATIONS[name]
    config = layer.get_config() | {"dtype": "float64", "return_sequences": True}
    layer = type(layer).from_config(config)
    layer.build((None, None, 3))
    outputs = outputs_of(layer, *description)
    lively(layer, 0.4, seed=7)
    if state:
        radius, on = state
        matrix = np.array(layer.cell.short_term_matrix)
        largest = np.abs(np.linalg.eigvals(matrix)).max()
        layer.cell.short_term_matrix.assign(matrix * radius / largest)
        layer.cell.normalize.assign(on)
    x = np.random.default_rng(0).normal(size=(4, 9, 3))
    expected = outputs(x, weights_of(layer))
    # Errors of n eps a step add up; complex modReLU stretches them where |z| is small.
    atol = 9 * 5 * 1e3 * EPS * max(1, np.abs(expected).max())
    np.testing.assert_allclose(layer(x), expected, rtol=0, atol=atol)
    assert_gradients(layer, outputs, shape=(2, 4, 3))
