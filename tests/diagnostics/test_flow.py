"""Gradients through time, against central differences of the definitions in NumPy."""

import keras
import numpy as np
import pytest

from keras_ortho import ScoRNN
from keras_ortho.diagnostics import (
    end_to_end_jacobians,
    gradient_norms,
    input_sensitivity,
    jacobian_eigenvalues,
)
from tests.diagnostics.networks import EPS, NETWORKS, STEP, build, jacobian, run
from tests.reference import central_differences

pytestmark = pytest.mark.backends

# The error of central differences, and rounding over some steps of numbers of order
# one; what is compared is of order one or less.
TOLERANCE = STEP**2 + 1e-16 / STEP * 10 + 200 * EPS
UNITS, INPUTS, TIME, BATCH = 2, 3, 4, 2
KINDS = pytest.mark.parametrize("network", NETWORKS, ids=str)
SIMPLE = next(network for network in NETWORKS if network.name == "SimpleRNN")


def data(seed=1):
    random = np.random.default_rng(seed)
    return random.normal(size=(BATCH, TIME, INPUTS)), random.normal(size=(BATCH, 1))


def parts(network):
    """A state, and the entries that it has in the concatenation of all."""
    states = [None, *range(network.num_states)]
    return [
        (s, slice(None) if s is None else slice(s * UNITS, (s + 1) * UNITS))
        for s in states
    ]


@pytest.mark.parametrize("sequences", [False, True])
@KINDS
def test_gradient_norms(network, sequences):
    """If each step has an output, that at `t` is made of `h_t`, and in the loss."""
    model = build(network, UNITS, INPUTS, TIME, return_sequences=sequences)
    x, y = data()
    if sequences:
        y = np.random.default_rng(2).normal(size=(BATCH, TIME, 1))
    layer, dense = model.layers
    kernel, bias = dense.get_weights()

    def loss(i, t, entries, part):
        shift = np.zeros(UNITS * network.num_states)
        shift[entries] = part
        rows = run(network, layer, x[i], shift=(t, shift))[1:, :UNITS]
        outputs = rows @ kernel + bias
        return np.mean(((outputs if sequences else outputs[-1]) - y[i]) ** 2)

    for state, entries in parts(network):
        at = np.zeros(UNITS * network.num_states)[entries]
        expected = [
            np.mean(
                [
                    np.linalg.norm(
                        central_differences(
                            lambda z, i=i, t=t, e=entries: loss(i, t, e, z), at, STEP
                        )
                    )
                    for i in range(BATCH)
                ]
            )
            for t in range(TIME)
        ]
        norms = gradient_norms(model, x, y, state=state)
        np.testing.assert_allclose(norms, expected, rtol=0, atol=TOLERANCE)
        assert max(expected) > 0.01  # There is something to compare.


def of_a_user(y, output):
    """A scalar, which wants one dtype and one shape."""
    assert (y.dtype, y.shape) == (output.dtype, output.shape)
    return keras.ops.mean((y - output) ** 2)


@pytest.mark.parametrize(
    "loss",
    [
        "mean_squared_error",
        ["mse"],
        keras.losses.MeanSquaredError(reduction="sum"),
        of_a_user,
    ],
    ids=["name", "list", "sum", "scalar"],
)
def test_losses_are_the_mean_of_each_sequence(loss):
    model = build(SIMPLE, UNITS, INPUTS, TIME)
    x, y = data()
    y = np.round(10 * y).astype("int32")
    expected = gradient_norms(model, x, y)
    found = gradient_norms(model, x, y, loss=loss)
    np.testing.assert_allclose(found, expected, rtol=100 * EPS)


def test_small_gradients_do_not_vanish():
    """In float32 the square of 1e-30 is zero."""
    model = keras.Sequential([keras.Input((2, 1)), keras.layers.SimpleRNN(2)])
    kernel = 1e-30 * np.eye(2)
    model.set_weights([np.zeros((1, 2)), kernel, np.zeros(2)])
    x, y = np.ones((1, 2, 1)), np.ones((1, 2))
    first, last = gradient_norms(model, x, y, loss="mse")
    np.testing.assert_allclose([first, last], [1e-30 * 2**0.5, 2**0.5], rtol=1e-6)
    model.set_weights([np.ones((1, 2)) * 0.5, kernel, np.zeros(2)])
    norms = input_sensitivity(model, 0 * x)
    np.testing.assert_allclose(norms[1, 0], 1e-30 * 0.5 * 2**0.5, rtol=1e-6)


@KINDS
def test_input_sensitivity(network):
    model = build(network, UNITS, INPUTS, TIME)
    x, _ = data()

    def states(part, i, t):
        moved = x[i].copy()
        moved[t] = part
        return run(network, model.layers[0], moved)[1:]

    expected = np.zeros((TIME, TIME, BATCH, UNITS * network.num_states, INPUTS))
    for i in range(BATCH):
        for t in range(TIME):
            for tau in range(t, TIME):
                expected[tau, t, i] = jacobian(
                    lambda z, i=i, t=t, tau=tau: states(z, i, t)[tau], x[i, t]
                )
    for state, entries in parts(network):
        norms = np.linalg.norm(expected[:, :, :, entries], 2, axis=(-2, -1)).mean(-1)
        found = input_sensitivity(model, x, state=state)
        np.testing.assert_allclose(found, norms, rtol=0, atol=TOLERANCE)
        assert norms[-1, 0] > 1e-3


@KINDS
def test_end_to_end_jacobians(network):
    model = build(network, UNITS, INPUTS, TIME)
    x, _ = data()
    expected = np.stack(
        [
            jacobian(
                lambda z, row=row: run(network, model.layers[0], row, start=z)[-1],
                np.zeros(UNITS * network.num_states),
            )
            for row in x
        ]
    )
    for state, entries in parts(network):
        found = end_to_end_jacobians(model, x, state=state)
        part = expected[:, entries, entries]
        np.testing.assert_allclose(found, part, rtol=0, atol=TOLERANCE)
    every, first = slice(1, None, 2), slice(0, UNITS)
    found = end_to_end_jacobians(model, x, state=None, units=every)
    part = expected[:, every, every]
    np.testing.assert_allclose(found, part, rtol=0, atol=TOLERANCE)
    values = jacobian_eigenvalues(model, x)
    # They satisfy the characteristic equation.
    for matrix, row in zip(expected[:, first, first], values, strict=True):
        for value in row:
            assert abs(np.linalg.det(matrix - value * np.eye(UNITS))) < 10 * TOLERANCE


def test_the_loss_of_masked_steps_does_not_count():
    layers = [
        keras.layers.Masking(),
        keras.layers.SimpleRNN(3, return_sequences=True),
        keras.layers.Dense(2),
    ]
    model = keras.Sequential([keras.Input((None, INPUTS)), *layers])
    x, _ = data()
    y = np.random.default_rng(0).normal(size=(BATCH, TIME, 2))
    expected = gradient_norms(model, x, y, loss="mse")
    padded = [np.pad(values, ((0, 0), (0, 5), (0, 0))) for values in (x, y)]
    found = gradient_norms(model, *padded, loss="mse")
    np.testing.assert_allclose(found[:TIME], expected, rtol=1e-5)
    assert not found[TIME:].any()


def test_where_keras_computes_in_float64():
    """Where TensorFlow counts in int64, too."""
    x = np.random.default_rng(0).normal(size=(2, 3, 2))
    inputs = keras.Input((3, 2), dtype="float64")
    of_a_layer = keras.Sequential([inputs, ScoRNN(4, dtype="float64")])
    before = keras.config.floatx()
    keras.config.set_floatx("float64")
    try:
        model = keras.Sequential([keras.Input((3, 2)), ScoRNN(4)])
        model.set_weights(of_a_layer.get_weights())
        found = input_sensitivity(model, x)
    finally:
        keras.config.set_floatx(before)
    # Norms of order one, each of three products of matrices of order four.
    expected = input_sensitivity(of_a_layer, x)
    np.testing.assert_allclose(found, expected, atol=100 * EPS)
