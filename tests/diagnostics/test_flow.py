import keras
import numpy as np
import pytest
from keras import layers

from keras_ortho import ScoRNN, ScuRNN, diagnostics
from keras_ortho.diagnostics import gradient_norms, input_sensitivity, trajectories
from tests.diagnostics.networks import EPS, STEP, STEPS, model_of, run
from tests.reference import central_differences

pytestmark = pytest.mark.backends

# The error of central differences, and rounding over some steps of numbers of order
# one; what is compared is of order one or less.
TOLERANCE = STEP**2 + 1e-16 / STEP * 10 + 200 * EPS
UNITS, TIME, BATCH = 2, 4, 2
KINDS = pytest.mark.parametrize("kind", STEPS)
RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(BATCH, TIME, 2))
Y = RANDOM.normal(size=(BATCH, TIME, 1))


def build(kind, **kwargs):
    layer = kind(UNITS, dtype="float64", **kwargs)
    return model_of(layer, layers.Dense(1, dtype="float64"), dtype="float64")


def parts(kind):
    """A state, and the entries that it has in the concatenation of all."""
    slices = slice(0, UNITS), slice(UNITS, 2 * UNITS)
    return [(None, slice(None)), *enumerate(slices[: STEPS[kind][1]])]


def derivatives(function, at):
    """The derivative of a vector by central differences, a row for each entry."""
    return [
        central_differences(lambda z, i=i: function(z)[i], at, STEP)
        for i in range(len(function(at)))
    ]


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
    assert np.max(np.abs(expected)) > 1e-3  # There is something to compare.


@pytest.mark.parametrize("sequences", [False, True])
@KINDS
def test_gradient_norms(kind, sequences):
    """If each step has an output, that at `t` is made of `h_t`, and in the loss."""
    model = build(kind, return_sequences=sequences)
    y = Y if sequences else Y[:, -1]
    kernel, bias = model.layers[1].get_weights()

    def loss(i, t, shift):
        rows = run(model.layers[0], X[i], shift=(t, shift))[1:, :UNITS]
        outputs = rows @ kernel + bias
        return np.mean(((outputs if sequences else outputs[-1]) - y[i]) ** 2)

    at = np.zeros(UNITS * STEPS[kind][1])
    found = [
        central_differences(lambda z, i=i, t=t: loss(i, t, z), at, STEP)
        for i, t in np.ndindex(BATCH, TIME)
    ]
    found = np.reshape(found, (BATCH, TIME, -1))
    for state, entries in parts(kind):
        norms = np.linalg.norm(found[..., entries], axis=-1).mean(0)
        assert_close(gradient_norms(model, X, y, state=state), norms)


def of_a_user(y, output):
    """A scalar, which wants one dtype and one shape."""
    assert (y.dtype, y.shape) == (output.dtype, output.shape)
    return keras.ops.mean((y - output) ** 2)


def test_losses_are_the_mean_of_each_sequence():
    model, y = build(ScoRNN), np.round(10 * Y[:, 0]).astype("int32")
    expected = gradient_norms(model, X, y)
    for loss in (["mse"], keras.losses.MeanSquaredError(reduction="sum"), of_a_user):
        found = gradient_norms(model, X, y, loss=loss)
        np.testing.assert_allclose(found, expected, rtol=100 * EPS)


def test_small_gradients_do_not_vanish():
    """In float32 the square of 1e-30 is zero."""
    model = model_of(layers.SimpleRNN(2))
    x, y = np.zeros((1, 2, 2)), np.ones((1, 2))
    model.set_weights([0.5 * np.eye(2), 1e-30 * np.eye(2), np.zeros(2)])
    norms = gradient_norms(model, x, y)
    np.testing.assert_allclose(norms, [1e-30 * 2**0.5, 2**0.5], rtol=1e-6)
    np.testing.assert_allclose(input_sensitivity(model, x)[1, 0], 0.5e-30, rtol=1e-6)


@KINDS
def test_jacobians(kind):
    model = build(kind)
    layer = model.layers[0]

    def states(i, t, part):
        moved = X[i].copy()
        moved[t] = part
        return run(layer, moved)[1:].ravel()

    by_inputs = [
        derivatives(lambda z, i=i, t=t: states(i, t, z), X[i, t])
        for i, t in np.ndindex(BATCH, TIME)
    ]
    by_inputs = np.reshape(by_inputs, (BATCH, TIME, TIME, -1, 2))
    start = np.zeros(UNITS * STEPS[kind][1])
    by_start = [derivatives(lambda z, x=x: run(layer, x, z)[-1], start) for x in X]
    by_start = np.array(by_start)
    for state, entries in parts(kind):
        norms = np.linalg.norm(by_inputs[..., entries, :], 2, axis=(-2, -1)).mean(0)
        assert_close(input_sensitivity(model, X, state=state), norms.T)
        found = diagnostics.end_to_end_jacobians(model, X, state=state)
        assert_close(found, by_start[:, entries, entries])
    odd = slice(1, None, 2)
    found = diagnostics.end_to_end_jacobians(model, X, state=None, units=odd)
    assert_close(found, by_start[:, odd, odd])
    eigenvalues = diagnostics.jacobian_eigenvalues(model, X)
    for matrix, values in zip(by_start, eigenvalues, strict=True):
        expected = np.poly(matrix[:UNITS, :UNITS])
        np.testing.assert_allclose(np.poly(values), expected, atol=10 * TOLERANCE)


STARTS = np.array([[0.5, -0.25], [0.0, 0.0], [1.0, 2.0]])


def test_trajectories():
    layer = ScoRNN(2, dtype="float64", dropout=0.5, stateful=True)
    # Of another batch than there are starts.
    model = keras.Sequential([keras.Input(batch_shape=(2, 4, 2)), layer])
    zeros = np.zeros((5, 2))
    expected = np.stack([run(layer, zeros, start) for start in STARTS])
    assert_close(trajectories(model, STARTS, 5), expected)
    assert_close(diagnostics.vector_field(layer, STARTS), expected[:, 1] - STARTS)
    # One complex unit is turned.
    layer = ScuRNN(1, activation="linear", bias_initializer="zeros")
    layer.build((None, None, 1))
    moduli = np.linalg.norm(trajectories(layer, STARTS, 3), axis=-1)
    np.testing.assert_allclose(moduli, moduli[:, :1].repeat(4, 1), rtol=1e-6)
