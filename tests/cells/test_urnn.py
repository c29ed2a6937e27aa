import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import FullURNN, FullURNNCell, RestrictedURNN, RestrictedURNNCell
from keras_ortho.initializers import UnitaryComposition
from keras_ortho.optimizers import StiefelDescent, paper_optimizer
from keras_ortho.parametrizations import unitarity_error
from tests import reference
from tests.cells.building import builder, weights_of
from tests.gradients import weight_gradients
from tests.reference import random_unitary

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps
KINDS = [RestrictedURNN, FullURNN]


built = builder(FullURNN, 5)


def unitary_of(weights):
    if "recurrent_unitary" in weights:
        return weights["recurrent_unitary"][0] + 1j * weights["recurrent_unitary"][1]
    return reference.restricted_unitary(
        weights["recurrent_phases"],
        weights["recurrent_reflectors"],
        weights["permutation"],
    )


@pytest.mark.parametrize("cls", KINDS)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_against_numpy(cls, n):
    random = np.random.default_rng(0)
    layer = built(cls, units=n, return_sequences=True, dtype="float64")
    layer.cell.bias.assign(0.3 * random.normal(size=n))
    weights = weights_of(layer)
    w = unitary_of(weights)
    x = random.normal(size=(4, 9, 3))
    kernel = weights["kernel"][:, :n] + 1j * weights["kernel"][:, n:]
    start = weights["initial_state"]
    h = np.tile(start[:n] + 1j * start[n:], (len(x), 1))
    expected = []
    for t in range(9):
        h = reference.complex_modrelu(x[:, t] @ kernel + h @ w, weights["bias"])
        expected.append(np.concatenate([h.real, h.imag], axis=1))
    # Errors of n eps a step add up, stretched by modReLU where |z| is small.
    np.testing.assert_allclose(
        layer(x), np.stack(expected, axis=1), atol=9 * n * 1e4 * EPS64
    )


@pytest.mark.parametrize("cls", KINDS)
@pytest.mark.slow_on_jax
def test_starts_with_the_papers_settings(cls):
    n = 128
    layer = built(cls, units=n, features=10)
    weights = weights_of(layer)
    assert unitarity_error(layer.recurrent_matrix()) <= 7 * n * EPS32
    limits = {
        "kernel": np.sqrt(6 / (10 + 2 * n)),
        "bias": 0.01,
        "initial_state": np.sqrt(3 / (2 * n)),
    }
    if cls is RestrictedURNN:
        limits |= {
            "recurrent_phases": np.pi,
            "recurrent_reflectors": np.sqrt(6 / (2 + 2 * n)),
        }
        permutation = weights["permutation"]
        np.testing.assert_array_equal(np.sort(permutation), np.arange(n))
        # About one number of a random permutation stays where it is.
        assert np.sum(permutation == np.arange(n)) < 8
        phases, reflectors = (
            weights["recurrent_phases"].ravel(),
            weights["recurrent_reflectors"].ravel(),
        )
        # Drawn apart: a correlation of five standard errors would be 0.26.
        assert abs(np.corrcoef(phases, reflectors[: len(phases)])[0, 1]) < 0.26
    for name, limit in limits.items():
        assert 0.9 * limit < np.abs(weights[name]).max() <= limit, name


def test_the_permutation_is_saved(tmp_path):
    layer = built(RestrictedURNN, units=12)
    model = keras.Sequential([keras.Input((None, 3)), layer])
    expected = ops.convert_to_numpy(layer.recurrent_matrix())
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras").layers[0]
    np.testing.assert_array_equal(loaded.recurrent_matrix(), expected)
    assert loaded.cell.permutation.trainable is False
    # A new one has another.
    other = built(RestrictedURNN, units=12)
    assert not np.array_equal(other.cell.permutation, layer.cell.permutation)


@pytest.mark.parametrize("initializer", ["orthogonal", np.eye(4), "zeros"])
@pytest.mark.parametrize("cls", [RestrictedURNN, RestrictedURNNCell])
def test_restricted_capacity_takes_no_matrix(cls, initializer):
    with pytest.raises(ValueError, match="cannot be decomposed.*Received: recurrent_"):
        cls(4, recurrent_initializer=initializer)


def test_restricted_capacity_cannot_be_set():
    layer = built(RestrictedURNN, units=4)
    with pytest.raises(ValueError, match=r"Received: matrix of shape \(4, 4\)"):
        layer.set_recurrent_matrix(np.eye(4))


def test_full_capacity_is_set_to_a_matrix():
    layer = built(FullURNN, units=6, dtype="float64")
    for matrix in (random_unitary(6), np.eye(6)[::-1]):
        for form in (matrix, reference.complex_block(matrix)):
            layer.set_recurrent_matrix(form)
            expected = reference.complex_block(matrix)
            np.testing.assert_allclose(
                layer.recurrent_matrix(), expected, atol=60 * EPS64
            )
    with pytest.raises(ValueError, match="`matrix` must"):
        layer.set_recurrent_matrix(2 * np.eye(6))


@pytest.mark.parametrize("matrix", ["identity", np.eye(5), random_unitary(5)])
def test_full_capacity_starts_from_a_matrix(matrix):
    cell = built(FullURNNCell, recurrent_initializer=matrix)
    expected = np.eye(5) if isinstance(matrix, str) else matrix
    np.testing.assert_allclose(
        cell.recurrent_matrix(), reference.complex_block(expected), atol=50 * EPS32
    )


def test_half_gradient_is_that_of_the_upper_rows():
    x = np.random.default_rng(0).normal(size=(3, 6, 3))
    # Without a bias, modReLU is the identity.
    kwargs = {"units": 4, "dtype": "float64", "bias_initializer": "zeros"}
    whole = built(FullURNN, **kwargs)
    half = built(FullURNN, half_gradient=True, **kwargs)
    half.set_weights(whole.get_weights())
    np.testing.assert_array_equal(half(x), whole(x))
    found = [
        weight_gradients(layer, lambda h: ops.sum(h * h), x)[1]["recurrent_unitary"]
        for layer in (whole, half)
    ]

    # The gradient for all four quarters of the real matrix tells the two apart.
    quarters = gradient_for_the_block(whole, x)
    upper = np.stack(np.split(quarters[:4], 2, axis=1))
    lower = np.stack([quarters[4:, 4:], -quarters[4:, :4]])
    atol = 1e4 * EPS64
    np.testing.assert_allclose(found[0], upper + lower, rtol=0, atol=atol)
    np.testing.assert_allclose(found[1], upper, rtol=0, atol=atol)
    assert np.abs(lower).max() > 1e-3


def gradient_for_the_block(layer, x):
    weights = weights_of(layer)
    w = ops.convert_to_numpy(layer.recurrent_matrix())
    states = [np.tile(weights["initial_state"], (len(x), 1))]
    for t in range(x.shape[1]):
        states.append(x[:, t] @ weights["kernel"] + states[-1] @ w)
    delta, gradient = 2 * states.pop(), np.zeros_like(w)
    for state in reversed(states):
        gradient += state.T @ delta
        delta = delta @ w.T
    return gradient


@pytest.mark.slow
def test_full_capacity_trains_in_one_line():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((6, 3)), FullURNN(8), keras.layers.Dense(2)])
    model.compile(paper_optimizer(unitary=StiefelDescent(0.01)), "mse")
    x = np.random.default_rng(0).normal(size=(64, 6, 3)).astype("float32")
    y = x.sum(axis=1)[:, :2]
    start = weights_of(model)["recurrent_unitary"]
    losses = model.fit(x, y, batch_size=16, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]
    assert np.abs(weights_of(model)["recurrent_unitary"] - start).max() > 0.01
    # Eighty steps, each with a rounding of n eps at the most.
    assert unitarity_error(model.layers[0].recurrent_matrix()) < 80 * 8 * EPS32


@pytest.mark.parametrize("shape", [(3, 6), (2, 6), (2, 5, 5), (6,)])
def test_unitary_composition(shape):
    dtype = "int32" if len(shape) == 1 else "float32"
    first = UnitaryComposition(seed=1)
    again = UnitaryComposition.from_config(first.get_config())
    np.testing.assert_array_equal(first(shape, dtype), again(shape, dtype))
    other = UnitaryComposition(seed=2)
    assert not np.array_equal(first(shape, dtype), other(shape, dtype))
    generator = UnitaryComposition(seed=keras.random.SeedGenerator(0))
    assert generator(shape, dtype).shape == shape


@pytest.mark.parametrize("shape", [(4, 4), (2, 5), (2, 3, 4), (10,)])
def test_unitary_composition_makes_its_own_only(shape):
    with pytest.raises(ValueError, match=r"Received: shape=.*, dtype=float32"):
        UnitaryComposition()(shape, "float32")
