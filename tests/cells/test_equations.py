"""Each layer against the equations of its paper in NumPy, and its gradient."""

import keras
import numpy as np
import pytest

from keras_ortho import (
    EURNN,
    GORU,
    NNRNN,
    ORNN,
    SVDRNN,
    AntisymmetricRNN,
    FactorizedRNN,
    FullURNN,
    RestrictedURNN,
    ScoRNN,
    ScuRNN,
)
from tests import reference
from tests.cells.building import assert_gradients, lively, weights_of

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


def of(function, *names, **kwargs):
    """The matrix `W` of weights with these names."""
    return lambda w: function(*(w[name] for name in names), **kwargs)


def leaky(z, b):
    return np.where(z + b > 0, z + b, 0.1 * (z + b))


def plain(matrix, activation=reference.modrelu, real_output=False):
    """All outputs of `h' = f(x U + h W, b)`."""

    def outputs(x, weights):
        w = matrix(weights)
        numbers = reference.as_complex if np.iscomplexobj(w) else np.asarray
        kernel = numbers(weights["kernel"])
        h = numbers(weights.get("initial_state", np.zeros(weights["kernel"].shape[1])))
        found = []
        for t in range(x.shape[1]):
            h = activation(x[:, t] @ kernel + h @ w, weights["bias"])
            found.append(reference.as_reals(h) if np.iscomplexobj(h) else h)
        found = np.stack(found, axis=1)
        return found[..., : len(w)] if real_output else found

    return outputs


def antisymmetric(x, weights):
    n = weights["kernel"].shape[1]
    m = weights.get("recurrent_kernel")
    if m is None:
        m = reference.skew(weights["recurrent_skew"], n)
    w, h, states = m - 0.2 * np.eye(n), np.zeros((len(x), n)), []
    for t in range(x.shape[1]):
        change = np.tanh(h @ w + x[:, t] @ weights["kernel"] + weights["bias"])
        if "gate_kernel" in weights:
            gate = h @ w + x[:, t] @ weights["gate_kernel"] + weights["gate_bias"]
            change = sigmoid(gate) * change
        h = h + 0.3 * change
        states.append(h)
    return np.stack(states, axis=1)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def bounded(logits):
    return 0.75 + 2 * 0.3 * (sigmoid(logits) - 0.5)


def svd(left, right, logits):
    """Equations 4, 7 and 8 of the paper, whose `U` is the right factor here."""
    n = len(logits)
    return reference.svd(left, right, bounded(logits), n, n)


def factorized(left, left_signs, right, right_signs, logits):
    left = reference.scaled_cayley(left, left_signs)
    right = reference.scaled_cayley(right, right_signs)
    return left @ np.diag(bounded(logits)) @ right.T


def rotations(weights, style):
    names = "recurrent_angles", "recurrent_phases", "output_phases"
    return reference.rotations(style, *(weights[name] for name in names))


def goru(x, weights, style):
    """All states, gate by gate."""
    angles, bias = weights["recurrent_angles"], weights["bias"]
    q = reference.rotations(style, angles, 0 * angles, np.zeros(len(bias))).real
    q = q * weights.get("recurrent_signs", 1.0)
    u_r, u_g = np.split(weights["gate_kernel"], 2, axis=1)
    w_r, w_g = np.split(weights["gate_recurrent_kernel"], 2, axis=1)
    h, states = np.zeros((len(x), len(bias))), []
    for t in range(x.shape[1]):
        r = sigmoid(x[:, t] @ u_r + h @ w_r + weights["reset_bias"])
        g = sigmoid(x[:, t] @ u_g + h @ w_g + weights["update_bias"])
        c = reference.modrelu(x[:, t] @ weights["kernel"] + r * (h @ q), bias)
        h = g * h + (1 - g) * c
        states.append(h)
    return np.stack(states, axis=1)


cayley = of(reference.scaled_cayley, "recurrent_skew", "recurrent_signs")
unitary_cayley = of(
    reference.unitary_cayley,
    "recurrent_skew_real",
    "recurrent_skew_imag",
    "recurrent_phases",
)
restricted = of(
    reference.restricted_unitary,
    "recurrent_phases",
    "recurrent_reflectors",
    "permutation",
)
full = of(lambda parts: parts[0] + 1j * parts[1], "recurrent_unitary")
schur = "recurrent_skew", "schur_upper", "schur_radii", "schur_angles"
spectrum = {"spectral_margin": 0.3, "spectral_center": 0.75}
steps = {"step_size": 0.3, "diffusion": 0.2}
factors = "left_skew", "left_signs", "right_skew", "right_signs", "singular_logits"
complex_modrelu = reference.complex_modrelu


def householder(weights):
    return reference.householder(weights["reflectors"], len(weights["bias"])).T


EQUATIONS = {
    "scornn": (ScoRNN(5, 2), plain(cayley)),
    "scornn, one": (ScoRNN(1, 1), plain(cayley)),
    "scurnn": (ScuRNN(3), plain(unitary_cayley, complex_modrelu)),
    "scurnn, smoothed": (
        ScuRNN(3, activation="smoothed_modrelu"),
        plain(unitary_cayley, reference.smoothed_modrelu),
    ),
    "antisymmetric": (AntisymmetricRNN(4, **steps), antisymmetric),
    "gated": (AntisymmetricRNN(4, gated=True, **steps), antisymmetric),
    "ablation": (
        AntisymmetricRNN(4, gated=True, antisymmetric=False, **steps),
        antisymmetric,
    ),
    "svdrnn": (
        SVDRNN(5, (3, 2), **spectrum),
        plain(of(svd, "left_reflectors", "right_reflectors", "singular_logits"), leaky),
    ),
    "ornn": (ORNN(5), plain(householder, leaky)),
    "ornn, two": (ORNN(5, 2), plain(householder, leaky)),
    "urnn": (RestrictedURNN(3), plain(restricted, complex_modrelu)),
    "full urnn": (FullURNN(3), plain(full, complex_modrelu)),
    "eurnn": (
        EURNN(4, 4, real_output=True),
        plain(lambda w: rotations(w, "tunable"), complex_modrelu, real_output=True),
    ),
    "eurnn, fft": (
        EURNN(4, style="fft"),
        plain(lambda w: rotations(w, "fft"), complex_modrelu),
    ),
    "goru": (GORU(4), lambda x, weights: goru(x, weights, "fft")),
    "goru, tunable": (
        GORU(4, 2, style="tunable"),
        lambda x, weights: goru(x, weights, "tunable"),
    ),
    "nnrnn": (NNRNN(5), plain(of(reference.real_schur, *schur, map="exponential"))),
    "nnrnn, cayley": (
        NNRNN(5, "cayley"),
        plain(of(reference.real_schur, *schur, map="cayley")),
    ),
    "factorized": (
        FactorizedRNN(5, **spectrum),
        plain(of(factorized, *factors), leaky),
    ),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_values_and_gradients(name):
    layer, outputs = EQUATIONS[name]
    config = layer.get_config() | {"dtype": "float64", "return_sequences": True}
    layer = type(layer).from_config(config)
    layer.build((None, None, 3))
    lively(layer, 0.4, seed=7)
    x = np.random.default_rng(0).normal(size=(4, 9, 3))
    expected = outputs(x, weights_of(layer))
    # Errors of n eps a step add up; complex modReLU stretches them where |z| is small.
    atol = 9 * 5 * 1e3 * EPS * max(1, np.abs(expected).max())
    np.testing.assert_allclose(layer(x), expected, rtol=0, atol=atol)
    assert_gradients(layer, outputs, shape=(2, 4, 3))


def test_literal_values():
    """Two steps of one unit: with W = -0.5, h' = h + 0.5 (x - 0.5 h)."""
    layer = AntisymmetricRNN(
        1, 0.5, 0.5, activation="linear", kernel_initializer="ones"
    )
    x = np.array([[[1.0], [2.0]]], "float32")
    np.testing.assert_array_equal(layer(x), [[0.5 + 0.5 * (2 - 0.25)]])


@pytest.mark.parametrize("activation", ["relu", "tanh", None])
def test_other_activations(activation):
    layer = ScoRNN(5, activation=activation, return_sequences=True, dtype="float64")
    layer.build((None, None, 3))
    lively(layer)
    function = {
        "relu": lambda z, b: np.maximum(z + b, 0),
        "tanh": lambda z, b: np.tanh(z + b),
        None: lambda z, b: z + b,
    }[activation]
    x = np.random.default_rng(0).normal(size=(2, 6, 3))
    expected = plain(cayley, function)(x, weights_of(layer))
    # Keras's tanh gives float32 on JAX, whatever it gets.
    single = activation == "tanh" and keras.backend.backend() == "jax"
    atol = 1e-5 if single else 1000 * EPS
    np.testing.assert_allclose(layer(x), expected, atol=atol)
