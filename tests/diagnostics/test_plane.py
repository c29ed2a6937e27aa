"""The motion of states of two numbers, against the cells' equations in NumPy."""

import keras
import numpy as np
import pytest
from keras import layers

from keras_ortho import AntisymmetricRNN, ScoRNN, ScuRNN
from keras_ortho.diagnostics import trajectories, vector_field
from tests import reference
from tests.diagnostics.networks import EPS, randomize, weights_of

pytestmark = pytest.mark.backends

STARTS = np.array([[0.5, -0.25], [0.0, 0.0], [1.0, 2.0]])


def antisymmetric(h, weights):
    matrix = reference.skew(weights["recurrent_skew"], 2) - 0.25 * np.eye(2)
    return h + 0.5 * np.tanh(h @ matrix + weights["bias"])


def simple(h, weights):
    return np.tanh(h @ weights["recurrent_kernel"] + weights["bias"])


def scornn(h, weights):
    matrix = reference.scaled_cayley(
        weights["recurrent_skew"], weights["recurrent_signs"]
    )
    return reference.modrelu(h @ matrix, weights["bias"])


CASES = {
    "AntisymmetricRNN": (
        lambda **kw: AntisymmetricRNN(2, 0.5, 0.25, **kw),
        antisymmetric,
    ),
    "SimpleRNN": (lambda **kw: layers.SimpleRNN(2, **kw), simple),
    "ScoRNN, stateful": (lambda **kw: ScoRNN(2, stateful=True, **kw), scornn),
}


@pytest.mark.parametrize("name", CASES)
def test_trajectories(name):
    make, step = CASES[name]
    layer = make(dtype="float64", dropout=0.5)
    # Of another batch than there are starts.
    model = keras.Sequential(
        [keras.Input(batch_shape=(2, 4, 3), dtype="float64"), layer, layers.Dense(1)]
    )
    randomize(model)
    seed = [np.asarray(v) for v in layer.non_trainable_variables]
    weights = weights_of(layer)
    expected = [STARTS]
    for _ in range(5):
        expected.append(step(expected[-1], weights))
    found = trajectories(model, STARTS, 5)
    # Rounding, over five steps that at most double a difference.
    np.testing.assert_allclose(
        found, np.stack(expected, axis=1), rtol=0, atol=300 * EPS
    )
    np.testing.assert_allclose(
        vector_field(layer, STARTS), expected[1] - STARTS, rtol=0, atol=20 * EPS
    )
    for value, before in zip(layer.non_trainable_variables, seed, strict=True):
        np.testing.assert_array_equal(np.asarray(value), before)


def test_one_complex_unit():
    layer = ScuRNN(
        1, trainable_initial_state=False, activation="linear", bias_initializer="zeros"
    )
    layer.build((None, None, 1))
    found = trajectories(layer, STARTS, 3)
    # A rotation.
    moduli = np.linalg.norm(found, axis=-1)
    np.testing.assert_allclose(moduli[:, 1:], moduli[:, :1].repeat(3, 1), rtol=1e-6)
