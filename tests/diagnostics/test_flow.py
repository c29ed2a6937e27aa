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
# Units, inputs, steps, sequences.
SIZES = {
    "ScoRNN": [(1, 1, 1, 1), (3, 1, 5, 2)],
    "RNN(ScoRNNCell)": [(2, 3, 4, 2)],
    "SimpleRNN": [(1, 2, 2, 1), (2, 3, 4, 2)],
    "LSTM": [(1, 1, 2, 1), (2, 3, 4, 2)],
}
CASES = [
    pytest.param(network, size, id=f"{network}-{size}")
    for network in NETWORKS
    for size in SIZES[network.name]
]


def data(m, time, batch, seed=1):
    random = np.random.default_rng(seed)
    return random.normal(size=(batch, time, m)), random.normal(size=(batch, 1))


def chosen(network, n, state):
    return slice(None) if state is None else slice(state * n, (state + 1) * n)


def expected_norms(network, model, x, y, entries, sequences=False):
    """One number a step: the mean of the norms over the sequences."""
    layer, dense = model.layers
    kernel, bias = dense.get_weights()
    n, total = kernel.shape[0], n_states(network, kernel.shape[0])

    def loss(i, t, part):
        shift = np.zeros(total)
        shift[entries] = part
        rows = run(network, layer, x[i], shift=(t, shift))[1:, :n]
        outputs = rows @ kernel + bias
        return (
            np.mean((outputs - y[i]) ** 2)
            if sequences
            else np.mean((outputs[-1] - y[i]) ** 2)
        )

    at = np.zeros(total)[entries]
    return [
        np.mean(
            [
                np.linalg.norm(
                    central_differences(lambda z, i=i, t=t: loss(i, t, z), at, STEP)
                )
                for i in range(len(x))
            ]
        )
        for t in range(x.shape[1])
    ]


def n_states(network, n):
    return n * network.num_states


@pytest.mark.parametrize(("network", "size"), CASES)
def test_gradient_norms(network, size):
    n, m, time, batch = size
    model = build(network, n, m, time)
    x, y = data(m, time, batch)
    states = [0, 1, None] if network.num_states > 1 and n == 2 else [0]
    for state in states:
        norms = gradient_norms(model, x, y, state=state)
        expected = expected_norms(network, model, x, y, chosen(network, n, state))
        assert norms.shape == (time,)
        np.testing.assert_allclose(norms, expected, rtol=0, atol=TOLERANCE)
        assert n == 1 or max(expected) > 0.01  # There is something to compare.


@pytest.mark.parametrize("network", NETWORKS[1:], ids=str)
def test_gradient_norms_of_a_loss_at_every_step(network):
    """The output at `t` is made of `h_t`: the gradient goes through it, too."""
    model = build(network, 2, 3, 4, return_sequences=True)
    x, _ = data(3, 4, 2)
    y = np.random.default_rng(2).normal(size=(2, 4, 1))
    expected = expected_norms(network, model, x, y, slice(0, 2), sequences=True)
    np.testing.assert_allclose(
        gradient_norms(model, x, y), expected, rtol=0, atol=TOLERANCE
    )


@pytest.mark.parametrize(
    "loss",
    [
        "mean_squared_error",
        keras.losses.MeanSquaredError(),
        keras.losses.MeanSquaredError(reduction="sum"),
        lambda y, output: keras.ops.mean((y - output) ** 2),
    ],
    ids=["name", "object", "sum", "scalar"],
)
def test_losses_are_the_mean_of_each_sequence(loss):
    model = build(NETWORKS[2], 2, 1, 3)
    x, y = data(1, 3, 4)
    expected = gradient_norms(model, x, y)
    np.testing.assert_allclose(
        gradient_norms(model, x, y, loss=loss), expected, rtol=100 * EPS
    )


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


@pytest.mark.parametrize(("network", "size"), CASES)
def test_input_sensitivity(network, size):
    n, m, time, batch = size
    model = build(network, n, m, time)
    x, _ = data(m, time, batch)
    for state in [0, 1, None] if network.num_states > 1 and n == 2 else [0]:
        entries = chosen(network, n, state)

        def states(part, i, t, tau, entries=entries):
            moved = x[i].copy()
            moved[t] = part
            return run(network, model.layers[0], moved)[tau + 1, entries]

        expected = np.zeros((time, time))
        for tau in range(time):
            for t in range(tau + 1):
                norms = [
                    np.linalg.norm(
                        jacobian(
                            lambda z, i=i, t=t, tau=tau: states(z, i, t, tau), x[i, t]
                        ),
                        2,
                    )
                    for i in range(batch)
                ]
                expected[tau, t] = np.mean(norms)
        found = input_sensitivity(model, x, state=state)
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
        assert n == 1 or expected[-1, 0] > 1e-3


@pytest.mark.parametrize(("network", "size"), CASES)
def test_end_to_end_jacobians(network, size):
    n, m, time, batch = size
    model = build(network, n, m, time)
    x, _ = data(m, time, batch)
    expected = np.stack(
        [
            jacobian(
                lambda z, i=i: run(network, model.layers[0], x[i], start=z)[-1],
                np.zeros(n_states(network, n)),
            )
            for i in range(batch)
        ]
    )
    whole = end_to_end_jacobians(model, x, state=None)
    np.testing.assert_allclose(whole, expected, rtol=0, atol=TOLERANCE)
    part = end_to_end_jacobians(model, x)
    np.testing.assert_allclose(part, expected[:, :n, :n], rtol=0, atol=TOLERANCE)
    values = jacobian_eigenvalues(model, x)
    assert values.shape == (batch, n)
    # They satisfy the characteristic equation.
    for matrix, row in zip(part, values, strict=True):
        for value in row:
            assert abs(np.linalg.det(matrix - value * np.eye(n))) < 1e-12


@pytest.mark.slow
def test_units():
    model = build(NETWORKS[3], 4, 2, 3)
    x, y = data(2, 3, 2)
    whole = end_to_end_jacobians(model, x, state=None)
    units = slice(1, None, 2)
    np.testing.assert_array_equal(
        end_to_end_jacobians(model, x, state=1, units=units),
        whole[:, [5, 7]][:, :, [5, 7]],
    )
    squares = [
        gradient_norms(model, x[:1], y[:1], state=1, units=u) ** 2
        for u in (slice(0, 1), slice(1, 4))
    ]
    np.testing.assert_allclose(
        sum(squares), gradient_norms(model, x[:1], y[:1], state=1) ** 2, rtol=100 * EPS
    )


def test_the_loss_of_masked_steps_does_not_count():
    layers = [
        keras.layers.Masking(),
        keras.layers.SimpleRNN(3, return_sequences=True),
        keras.layers.Dense(2),
    ]
    model = keras.Sequential([keras.Input((None, 2)), *layers])
    x, y = data(2, 4, 3)
    y = np.random.default_rng(0).normal(size=(3, 4, 2))
    padding = np.zeros((3, 5, 2))
    expected = gradient_norms(model, x, y, loss="mse")
    found = gradient_norms(
        model,
        np.concatenate([x, padding], 1),
        np.concatenate([y, padding], 1),
        loss="mse",
    )
    np.testing.assert_allclose(found[:4], expected, rtol=1e-5)
    assert not found[4:].any()


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
