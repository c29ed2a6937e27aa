"""Heads: blocks on their own, in layers of every kind that a user makes of them."""

import keras
import numpy as np
import pytest
import scipy.linalg
from keras import ops

import keras_ortho
from keras_ortho import ScoRNN, ScuRNN
from keras_ortho import parametrizations as sets
from keras_ortho.initializers import UnitaryComposition
from keras_ortho.parametrizations import orthogonality_error
from keras_ortho.parametrizations.arithmetic import random_orthogonal
from tests import reference

pytestmark = pytest.mark.backends
each_class = pytest.mark.parametrize("cls", [ScoRNN, ScuRNN])
EPS = np.finfo("float64").eps


@pytest.mark.parametrize("stock", [False, True])
@pytest.mark.parametrize("mix_inputs", [True, False])
@each_class
def test_a_layer_against_numpy(cls, mix_inputs, stock):
    given = {"kernel_initializer": "glorot_uniform", "dtype": "float64"}
    layer = cls(6, heads=2, mix_inputs=mix_inputs, **given)
    run = keras.layers.RNN(layer.cell, dtype="float64") if stock else layer
    x = np.random.default_rng(0).normal(size=(3, 5, 4))
    found = run(x)
    weights = {w.name: ops.convert_to_numpy(w) for w in layer.cell.weights}
    make = reference.scaled_cayley if cls is ScoRNN else reference.unitary_cayley
    blocks = [
        make(*(value for name, value in weights.items() if name.startswith(head)))
        for head in ("head_0", "head_1")
    ]
    assert np.abs(blocks[0] - blocks[1]).max() > 0.01  # Each starts by itself.
    matrix, parts, activation = scipy.linalg.block_diag(*blocks), 1, reference.modrelu
    if cls is ScuRNN:
        matrix, parts = reference.complex_block(matrix), 2
        activation = reference.complex_reals(reference.complex_modrelu)
    np.testing.assert_allclose(layer.recurrent_matrix(), matrix, atol=100 * EPS)
    kernel = weights["kernel"]
    if not mix_inputs:
        assert kernel.shape == (2, 2, 3 * parts)
        assert np.abs(kernel[0] - kernel[1]).max() > 0.01
        each = [scipy.linalg.block_diag(*k) for k in np.split(kernel, parts, -1)]
        kernel = np.concatenate(each, axis=1)
    state = np.zeros((3, 6 * parts)) + weights.get("initial_state", 0)
    for t in range(5):
        state = activation(x[:, t] @ kernel + state @ matrix, weights["bias"])
    np.testing.assert_allclose(found, state, atol=1e3 * EPS * np.abs(state).max())


@each_class
@pytest.mark.slow_on_jax
def test_starts_from_a_matrix(cls):
    def built(initializer):
        layer = cls(6, heads=2, recurrent_initializer=initializer, dtype="float64")
        layer.build((None, None, 1))
        return layer

    form = np.asarray if cls is ScoRNN else reference.complex_block
    matrix = ops.convert_to_numpy(built("orthogonal").recurrent_matrix())
    assert orthogonality_error(matrix) <= 100 * len(matrix) * EPS
    given = scipy.linalg.block_diag(random_orthogonal(3, 0), random_orthogonal(3, 1))
    layer = built(given)
    atol = 100 * len(matrix) * EPS
    np.testing.assert_allclose(layer.recurrent_matrix(), form(given), atol=atol)
    layer.set_recurrent_matrix(np.eye(6))
    with pytest.raises(ValueError, match="zero outside of its 2 blocks.*Received"):
        layer.set_recurrent_matrix(random_orthogonal(6, 0))
    np.testing.assert_allclose(layer.recurrent_matrix(), form(np.eye(6)), atol=atol)


def test_a_head_begins_beyond_the_seeds_of_the_one_before():
    """Two variables take a seed each, and one `UnitaryComposition` three."""
    for within, initializer, seed in (
        (sets.FullUnitary(), UnitaryComposition(seed=7), 10),
        (sets.RestrictedUnitary(), UnitaryComposition(seed=7), 10),
        (sets.ScaledCayley(), keras_ortho.initializers.HenaffSkew(seed=7), 9),
    ):
        variables = sets.Heads(within, 2).variables(8, initializer)
        made = [variable.initializer for variable in variables]
        assert {each.seed for each in made if hasattr(each, "seed")} == {7, seed}
