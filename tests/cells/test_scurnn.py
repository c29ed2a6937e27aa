import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ScuRNN, ScuRNNCell
from keras_ortho.initializers import HenaffSkew
from keras_ortho.parametrizations import unitarity_error
from tests import reference
from tests.cells.building import assert_gradients, builder, lively, refused, weights_of
from tests.gradients import weight_gradients
from tests.reference import random_unitary
from tests.saving import reloaded

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps


built = builder(ScuRNN, 5)


def unitary_of(weights):
    return reference.unitary_cayley(
        weights["recurrent_skew_real"],
        weights["recurrent_skew_imag"],
        weights["recurrent_phases"],
    )


def states_by_definition(x, weights, mask=None):
    """All states in complex numbers, one step after the other."""
    n = len(weights["bias"])
    w = unitary_of(weights)
    kernel = weights["kernel"][:, :n] + 1j * weights["kernel"][:, n:]
    start = weights["initial_state"]
    h = np.tile(start[:n] + 1j * start[n:], (len(x), 1))
    states = []
    for t in range(x.shape[1]):
        new = reference.complex_modrelu(x[:, t] @ kernel + h @ w, weights["bias"])
        h = new if mask is None else np.where(mask[:, t, None], new, h)
        states.append(np.concatenate([h.real, h.imag], axis=1))
    return np.stack(states, axis=1)


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("masked", [False, True])
def test_against_numpy(n, masked):
    random = np.random.default_rng(0)
    layer = lively(built(units=n, return_sequences=True, dtype="float64"), 0.4, seed=7)
    x = random.normal(size=(4, 9, 3))
    mask = random.random((4, 9)) < 0.7 if masked else None
    if masked:
        mask[:, 0] = True  # Before the first step Keras's outputs are zero.
    expected = states_by_definition(x, weights_of(layer), mask=mask)
    # Errors of n eps a step add up. modReLU stretches them where |z| is small, by at
    # most b / sqrt(1e-5).
    np.testing.assert_allclose(layer(x, mask=mask), expected, atol=9 * n * 1e4 * EPS64)


def test_gradient_of_every_weight():
    layer = lively(built(units=3, dtype="float64"), 0.4, seed=7)
    assert_gradients(layer, lambda x, weights: states_by_definition(x, weights)[:, -1])


@pytest.mark.slow_on_jax
def test_starts_with_the_papers_settings():
    layer = built(units=116, features=1)
    weights = weights_of(layer)
    assert np.abs(weights["kernel"]).max() <= np.sqrt(6 / (1 + 232))
    assert np.abs(weights["kernel"]).max() > 0.1
    assert 0.005 < np.abs(weights["bias"]).max() <= 0.01
    assert 0.005 < np.abs(weights["initial_state"]).max() <= 0.01
    assert 0 <= weights["recurrent_phases"].min() < 0.5
    assert 2 * np.pi - 0.5 < weights["recurrent_phases"].max() <= 2 * np.pi
    assert np.count_nonzero(weights["recurrent_skew_real"]) == 58
    np.testing.assert_array_equal(weights["recurrent_skew_imag"], 0)
    assert unitarity_error(layer.recurrent_matrix()) <= 116 * EPS32


@pytest.mark.parametrize("n", [1, 2, 9, 40])
@pytest.mark.slow_on_jax
def test_set_recurrent_matrix(n):
    layer = built(units=n, dtype="float64")
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]
    mirrored = rotation * np.array([-1.0] + [1.0] * (n - 1))
    # Any determinant is within reach, unlike with signs that were chosen before.
    for matrix in (random_unitary(n), rotation, mirrored, -np.eye(n)):
        for form in (matrix, reference.complex_block(matrix)):
            layer.set_recurrent_matrix(form)
            np.testing.assert_allclose(
                layer.recurrent_matrix(),
                reference.complex_block(matrix),
                atol=10 * n * n * EPS64,
            )
    found = ops.convert_to_numpy(layer.recurrent_matrix())
    layer.set_recurrent_matrix(layer.recurrent_matrix())
    np.testing.assert_allclose(layer.recurrent_matrix(), found, atol=10 * n * n * EPS64)


@pytest.mark.slow_on_jax
def test_matrices_that_do_not_fit():
    cell = built(ScuRNNCell, units=4)
    for matrix, message in [
        (2j * np.eye(4), "must be unitary"),
        (np.diag([1.0] * 7 + [-1.0]), "must be the real form of a complex matrix"),
    ]:
        with refused(cell, message):
            cell.set_recurrent_matrix(matrix)


@pytest.mark.parametrize(
    ("initializer", "expected"),
    [
        ("identity", np.eye(5)),
        (random_unitary(5), random_unitary(5)),
        (random_unitary(5).astype("complex64"), random_unitary(5)),
        (reference.complex_block(random_unitary(5)), random_unitary(5)),
        ("orthogonal", None),
    ],
)
@pytest.mark.slow_on_jax
def test_recurrent_initializer_that_yields_a_matrix(initializer, expected, tmp_path):
    layer = built(units=5, recurrent_initializer=initializer)
    kernel = ops.convert_to_numpy(layer.recurrent_matrix())
    assert unitarity_error(kernel) <= 5 * 5 * EPS32
    if expected is not None:
        wanted = reference.complex_block(expected)
        np.testing.assert_allclose(kernel, wanted, atol=50 * EPS32)
    model = keras.Sequential([keras.Input((None, 3)), layer])
    loaded = reloaded(model, tmp_path)  # The config holds complex numbers, too.
    np.testing.assert_array_equal(loaded.layers[0].recurrent_matrix(), kernel)


@pytest.mark.parametrize("initializer", ["zeros", 2j * np.eye(4), np.eye(4)[:2]])
def test_recurrent_initializer_that_is_not_unitary(initializer):
    with pytest.raises(ValueError, match=r"Received: .*(distance|shape)"):
        built(ScuRNNCell, units=4, recurrent_initializer=initializer)


def test_a_seed_fixes_the_phases_too():
    def weights(seed):
        layer = ScuRNN(4, recurrent_initializer=HenaffSkew(seed=seed))
        layer.build((None, None, 3))
        named = {w.name: ops.convert_to_numpy(w) for w in layer.weights}
        return [named["recurrent_skew_real"], named["recurrent_phases"]]

    for first, again, other in zip(weights(3), weights(3), weights(4), strict=True):
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)
    assert not np.array_equal(weights(None)[1], weights(None)[1])


def test_no_rotation_leaves_the_phases():
    cell = built(ScuRNNCell, units=4, recurrent_initializer=HenaffSkew(0.0, 0.0))
    phases = weights_of(cell)["recurrent_phases"]
    expected = reference.complex_block(np.diag(np.exp(1j * phases)))
    np.testing.assert_allclose(cell.recurrent_matrix(), expected, atol=10 * EPS32)


def test_mnists_blank_pixels():
    """A trained start keeps the gradient finite where inputs begin with zeros."""
    layer = built(units=8, features=1, bias_initializer="ones")
    x = np.zeros((2, 50, 1), "float32")
    _, found = weight_gradients(layer, ops.sum, x)
    assert all(np.isfinite(gradient).all() for gradient in found.values())
    assert np.abs(found["initial_state"]).max() > 0
