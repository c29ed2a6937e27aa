"""Each layer against the equations of its paper in NumPy, and its gradient."""

import numpy as np
import pytest

import keras_ortho as ko
from keras_ortho.parametrizations import GivensOrthogonal
from tests import reference
from tests.cells.building import assert_gradients, lively, weights_of
from tests.cells.oracle import outputs_of
from tests.parametrizations import definitions
from tests.parametrizations.definitions import (
    butterflies,
    diffused,
    householder,
    rotated,
    skew,
    turns,
)

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


def of(function, *names, **kwargs):
    """The matrix `W` of weights with these names."""
    return lambda w: function(*(w[name] for name in names), **kwargs)


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
reflected = of(
    definitions.bounded, "left_reflectors", "right_reflectors", "singular_logits"
)
factors = "left_skew", "left_signs", "right_skew", "right_signs", "singular_logits"
schur = "recurrent_skew", "schur_upper", "schur_radii", "schur_angles"
angles = "recurrent_angles", "recurrent_phases", "output_phases"
antisymmetric = of(lambda a: diffused(skew(a)), "recurrent_skew")
# As the definitions have them.
spectrum = {"spectral_margin": 0.25, "spectral_center": 0.75}
euler = {"step_size": 0.3, "diffusion": 0.25}
ablation = {**euler, "antisymmetric": False}
leaky, smoothed = "paper_leaky_relu", "smoothed_modrelu"


# A layer, what makes `W` of its weights, and its activation, modReLU if none is named.
EQUATIONS = {
    "scornn": (ko.ScoRNN(5, 2), cayley),
    "scornn, one": (ko.ScoRNN(1, 1), cayley),
    "scornn, tanh": (ko.ScoRNN(5, activation="tanh"), cayley, "tanh"),
    "scurnn": (ko.ScuRNN(3), unitary_cayley),
    "scurnn, smoothed": (ko.ScuRNN(3, activation=smoothed), unitary_cayley, smoothed),
    "antisymmetric": (ko.AntisymmetricRNN(4, **euler), antisymmetric, "tanh"),
    "gated": (ko.AntisymmetricRNN(4, gated=True, **euler), antisymmetric, "tanh"),
    "ablation": (
        ko.AntisymmetricRNN(4, gated=True, **ablation),
        of(diffused, "recurrent_kernel"),
        "tanh",
    ),
    "svdrnn": (ko.SVDRNN(5, (3, 2), **spectrum), reflected, leaky),
    "ornn": (ko.ORNN(5), of(householder, "reflectors"), leaky),
    "ornn, two": (ko.ORNN(5, 2), of(householder, "reflectors", m=2), leaky),
    "urnn": (ko.RestrictedURNN(3), restricted),
    "full urnn": (ko.FullURNN(3), of(definitions.full, "recurrent_unitary")),
    "eurnn": (ko.EURNN(4, 4, real_output=True), of(turns, *angles)),
    "eurnn, fft": (ko.EURNN(4, style="fft"), of(butterflies, *angles)),
    "goru": (ko.GORU(5), cayley),
    "goru, fft": (
        ko.GORU(4, GivensOrthogonal()),
        of(rotated, "recurrent_angles", style="fft"),
    ),
    "goru, tunable": (
        ko.GORU(4, GivensOrthogonal(2, "tunable")),
        of(rotated, "recurrent_angles", "recurrent_signs"),
    ),
    "nnrnn": (ko.NNRNN(5), of(reference.real_schur, *schur, map="exponential")),
    "nnrnn, cayley": (
        ko.NNRNN(5, "cayley"),
        of(reference.real_schur, *schur, map="cayley"),
    ),
    "factorized": (
        ko.FactorizedRNN(5, **spectrum),
        of(definitions.factorized, *factors),
        leaky,
    ),
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
