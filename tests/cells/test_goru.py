import numpy as np
import pytest

from keras_ortho import GORU, GORUCell
from keras_ortho.parametrizations import orthogonality_error
from tests import reference
from tests.cells.building import assert_gradients, builder, lively, weights_of

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps


built = builder(GORU, 8)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def goru(x, weights, style):
    """All states, gate by gate and one step after the other."""
    angles, bias = weights["recurrent_angles"], weights["bias"]
    n = len(bias)
    q = reference.rotations(style, angles, 0 * angles, np.zeros(n)).real
    q = q * weights.get("recurrent_signs", 1.0)
    u_r, u_g = np.split(weights["gate_kernel"], 2, axis=1)
    w_r, w_g = np.split(weights["gate_recurrent_kernel"], 2, axis=1)
    h, states = np.zeros((len(x), n)), []
    for t in range(x.shape[1]):
        r = sigmoid(x[:, t] @ u_r + h @ w_r + weights["reset_bias"])
        g = sigmoid(x[:, t] @ u_g + h @ w_g + weights["update_bias"])
        c = reference.modrelu(x[:, t] @ weights["kernel"] + r * (h @ q), bias)
        h = g * h + (1 - g) * c
        states.append(h)
    return np.stack(states, axis=1)


LAYOUTS = [(2, None, "fft"), (8, None, "fft"), (6, 2, "tunable"), (6, None, "tunable")]


@pytest.mark.parametrize(("n", "capacity", "style"), LAYOUTS)
def test_against_numpy(n, capacity, style):
    layout = {"units": n, "capacity": capacity, "style": style}
    layer = lively(built(**layout, return_sequences=True, dtype="float64"))
    x = np.random.default_rng(1).normal(size=(4, 9, 3))
    expected = goru(x, weights_of(layer), style)
    atol = 100 * n * EPS64 * np.abs(expected).max()
    np.testing.assert_allclose(layer(x), expected, atol=atol)


@pytest.mark.parametrize(("n", "capacity", "style"), LAYOUTS)
def test_gradients(n, capacity, style):
    layer = lively(built(units=n, capacity=capacity, style=style, dtype="float64"))
    assert_gradients(
        layer,
        lambda x, weights: goru(x, weights, style)[:, -1],
        atol=1000 * n * EPS64 ** (2 / 3),
        shape=(2, 4, 3),
    )


@pytest.mark.slow_on_jax
def test_starts_with_the_authors_settings():
    layer = built(units=128, features=10, **GORUCell.paper_arguments)
    weights = weights_of(layer)
    for name in ("kernel", "gate_kernel", "gate_recurrent_kernel"):
        assert 0.009 < np.abs(weights[name]).max() <= 0.01
    np.testing.assert_array_equal(weights["reset_bias"], 2)
    np.testing.assert_allclose(weights["bias"], 0.01)
    limit = np.sqrt(3 / 128)
    assert 0.9 * limit < np.abs(weights["update_bias"]).max() <= limit
    assert 3 < np.abs(weights["recurrent_angles"]).max() <= np.pi
    # The kernels of the gates are no copies of the candidate's.
    assert not np.array_equal(weights["gate_kernel"][0, :128], weights["kernel"][0])
    assert orthogonality_error(layer.recurrent_matrix()) <= 128 * EPS32


def test_biases_from_arrays():
    start = np.linspace(-1, 1, 4).astype("float32")
    layer = built(units=4, bias_initializer=start, reset_bias_initializer=2 * start)
    np.testing.assert_array_equal(layer.cell.bias, start)
    np.testing.assert_array_equal(layer.cell.reset_bias, 2 * start)


@pytest.mark.parametrize(
    ("kwargs", "angles"),
    [({}, 7 * 64), ({"style": "tunable", "capacity": 2}, 127)],
)
def test_number_of_parameters(kwargs, angles):
    """Three input kernels and biases, two recurrent kernels, and the rotations."""
    n, m = 128, 10
    layer = built(units=n, features=m, **kwargs)
    found = sum(np.asarray(w).size for w in layer.trainable_weights)
    assert found == 3 * n * (m + 1) + 2 * n * n + angles


@pytest.mark.parametrize("determinant", [-1, 1])
@pytest.mark.slow_on_jax
def test_set_recurrent_matrix(determinant):
    layer = built(units=6, style="tunable", dtype="float64")
    matrix = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    matrix[0] *= determinant * np.sign(np.linalg.det(matrix))
    layer.set_recurrent_matrix(matrix)
    np.testing.assert_allclose(layer.recurrent_matrix(), matrix, atol=60 * EPS64)


def test_too_few_layers_for_a_matrix():
    for kwargs in ({}, {"style": "tunable", "capacity": 2}):
        with pytest.raises(ValueError, match="Received: style=.*units=8"):
            built(units=8, recurrent_initializer="identity", **kwargs)
        with pytest.raises(ValueError, match="Received: style=.*units=8"):
            built(units=8, **kwargs).set_recurrent_matrix(np.eye(8))


def test_without_biases():
    layer = built(use_bias=False, activation="tanh")
    assert not any("bias" in name for name in weights_of(layer))
    x = np.ones((2, 3, 3), "float32")
    assert np.isfinite(layer(x)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"units": 6}, "power of two.*Received: units=6"),
        ({"units": 5, "style": "tunable"}, "even.*Received: units=5"),
        ({"units": 6, "style": "tunable", "capacity": 1}, "Received: capacity=1"),
        ({"units": 8, "style": "full"}, "`style` must be.*Received: style='full'"),
    ],
)
def test_bad_arguments(arguments, message):
    for cls in (GORU, GORUCell):
        with pytest.raises(ValueError, match=message):
            cls(**arguments)


@pytest.mark.parametrize("name", ["call", "step", "activate"])
def test_a_method_of_a_users_own_is_called(name):
    """The loop over the whole sequence would not know of it."""
    calls = []

    class OwnCell(GORUCell):
        pass

    def own(self, *args, **kwargs):
        calls.append(name)
        return getattr(super(OwnCell, self), name)(*args, **kwargs)

    setattr(OwnCell, name, own)

    class Own(GORU):
        cell_class = OwnCell

    layer, plain = builder(Own, 8)(seed=0), built(seed=0)
    layer.set_weights(plain.get_weights())
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    np.testing.assert_allclose(layer(x), plain(x), atol=100 * 8 * EPS32)
    assert calls
