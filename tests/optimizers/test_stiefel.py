"""Steps along the unitary matrices, against complex NumPy, and in Keras's training."""

from itertools import pairwise

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import FullURNN
from keras_ortho.optimizers import StiefelDescent
from keras_ortho.parametrizations.orthogonality import orthogonality_error
from tests.parametrizations.test_kahan_unitary import random_unitary

pytestmark = [
    pytest.mark.backends,
    pytest.mark.filterwarnings("ignore:Skipping variable loading"),
]

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps
# Without XLA JAX runs one operation after the other: what `run_eagerly` does, too.
XLA = [True] if keras.backend.backend() == "jax" else [False, True]


def gaussian(n, seed):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, n)) + 1j * random.normal(size=(n, n))


def parts(matrix):
    return np.stack([matrix.real, matrix.imag])


def variable_of(matrix, dtype="float64"):
    return keras.Variable(parts(matrix), dtype=dtype)


def value_of(variable):
    real, imaginary = ops.convert_to_numpy(variable)
    return real + 1j * imaginary


def take_steps(optimizer, variable, gradient_of, steps):
    for _ in range(steps):
        gradient = parts(gradient_of(value_of(variable)))
        dtype = keras.backend.standardize_dtype(variable.dtype)
        gradient = ops.convert_to_tensor(gradient, dtype=dtype)
        optimizer.apply([gradient], [variable])


def step_by_definition(w, g, rate):
    identity = np.eye(len(w))
    b = g @ w.conj().T - w @ g.conj().T
    return np.linalg.solve(identity + rate / 2 * b, (identity - rate / 2 * b) @ w)


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("rate", [1e-3, 0.5])
def test_step(n, rate):
    w, g = random_unitary(n), gaussian(n, 1)
    variable = variable_of(w)
    take_steps(StiefelDescent(rate), variable, lambda _: g, 1)
    # The rate itself is a float32.
    expected = step_by_definition(w, g, float(np.float32(rate)))
    np.testing.assert_allclose(value_of(variable), expected, atol=100 * n * EPS64)
    # The step from the other side is the same.
    b = w.conj().T @ g - g.conj().T @ w
    half = np.float32(rate) / 2 * b
    identity = np.eye(n)
    other = w @ np.linalg.solve(identity + half, identity - half)
    np.testing.assert_allclose(value_of(variable), other, atol=100 * n * EPS64)
    assert orthogonality_error(value_of(variable)) <= 10 * n * EPS64


def test_rms_scaling():
    """Real and imaginary parts have moving averages of their own."""
    n, rate = 5, float(np.float32(0.01))
    w, gradients = random_unitary(n), [gaussian(n, seed) for seed in range(4)]
    variable = variable_of(w)
    remaining = iter(gradients)
    take_steps(
        StiefelDescent(0.01, rms_scaling=True), variable, lambda _: next(remaining), 4
    )
    average = np.zeros((2, n, n))
    for g in gradients:
        average = 0.9 * average + 0.1 * parts(g) ** 2
        real, imaginary = parts(g) / (np.sqrt(average) + 1e-8)
        w = step_by_definition(w, real + 1j * imaginary, rate)
    np.testing.assert_allclose(value_of(variable), w, atol=1000 * n * EPS64)


@pytest.mark.parametrize("n", [2, 6])
def test_steepest_descent(n):
    """The slope of the loss along a step, for L = Re tr(C* W) with G = C."""
    w, c = random_unitary(n), gaussian(n, 1)
    rate = 2.0**-17  # Exact in float32.
    variable = variable_of(w)
    take_steps(StiefelDescent(rate), variable, lambda _: c, 1)
    slope = np.vdot(c, value_of(variable) - w).real / rate
    expected = -0.5 * np.linalg.norm(c - w @ c.conj().T @ w) ** 2
    assert expected < -0.1
    # To first order in the rate.
    assert slope == pytest.approx(expected, rel=100 * rate * np.linalg.norm(c))


@pytest.mark.slow
def test_reaches_a_unitary_matrix():
    """Full capacity: descent on |W - T|^2 from a random start."""
    n = 6
    target = random_unitary(n, seed=1)
    variable = variable_of(random_unitary(n, seed=2))
    take_steps(StiefelDescent(0.25), variable, lambda w: 2 * (w - target), 300)
    assert np.linalg.norm(value_of(variable) - target) < 1e-6


def drift(steps, **kwargs):
    n = 24
    variable = variable_of(random_unitary(n), dtype="float32")
    random = np.random.default_rng(0)
    take_steps(
        StiefelDescent(0.01, **kwargs),
        variable,
        lambda _: random.normal(size=(n, n)) + 1j * random.normal(size=(n, n)),
        steps,
    )
    return orthogonality_error(value_of(variable)) / (n * EPS32)


@pytest.mark.slow_on_jax
def test_rounding_takes_it_off_the_manifold():
    """As in the papers; by less than n eps a step, and more with every step."""
    early, late = drift(10), drift(150)
    assert late > 2 * early
    assert late < 150


def test_reprojection_keeps_it_there():
    assert drift(100, reproject=True) < 1
    # It takes away a distance that is there already: to second order.
    n = 6
    variable = variable_of(random_unitary(n) + 1e-4 * gaussian(n, 1))
    before = orthogonality_error(value_of(variable))
    optimizer = StiefelDescent(0.1, reproject=True)
    take_steps(optimizer, variable, lambda w: 0 * w, 1)
    assert 1e-4 < before < 1e-2
    assert orthogonality_error(value_of(variable)) < before**2
    take_steps(optimizer, variable, lambda w: 0 * w, 1)
    assert orthogonality_error(value_of(variable)) < 100 * n * EPS64


def make_model(optimizer, jit_compile=XLA[0], *layers):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((4, 3)),
            *layers,
            FullURNN(4),
            keras.layers.Dense(2),
        ]
    )
    model.compile(optimizer, "mse", jit_compile=jit_compile)
    return model


def fit(model, epochs=1):
    x = np.random.default_rng(0).normal(size=(32, 4, 3)).astype("float32")
    y = x.sum(axis=1)[:, :2]
    model.fit(x, y, batch_size=8, epochs=epochs, shuffle=False, verbose=0)


def test_schedules():
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([1], [0.1, 0.0])
    variable = variable_of(random_unitary(3))
    optimizer = StiefelDescent(schedule)
    seen = [value_of(variable)]
    for _ in range(4):
        take_steps(optimizer, variable, lambda _: gaussian(3, 1), 1)
        seen.append(value_of(variable))
    moved = [np.abs(after - before).max() for before, after in pairwise(seen)]
    assert min(moved[:2]) > 0.01
    assert max(moved[2:]) <= 30 * EPS64


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_variables_of_few_bits_are_factorized_in_float32(dtype):
    variable = variable_of(random_unitary(4), dtype=dtype)
    optimizer = StiefelDescent(0.1)
    optimizer.apply([ops.ones((2, 4, 4), dtype=dtype)], [variable])
    assert keras.backend.standardize_dtype(variable.dtype) == dtype
    values = ops.convert_to_numpy(ops.cast(variable, "float32"))
    eps = 2.0**-7 if dtype == "bfloat16" else 2.0**-10
    assert orthogonality_error(values[0] + 1j * values[1]) <= 4 * 4 * eps


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 4), (3, 3, 3), (2,)])
def test_variables_of_another_shape(shape):
    variable = keras.Variable(np.zeros(shape), name="it")
    with pytest.raises(
        ValueError, match=r"of shape \(2, n, n\).*Received: it of shape"
    ):
        StiefelDescent().build([variable])


def test_a_whole_model_is_not_for_it():
    model = make_model(StiefelDescent())
    with pytest.raises(
        ValueError, match=r"paper_optimizer.*Received: .*kernel of shape"
    ):
        fit(model)


@pytest.mark.parametrize(
    ("argument", "value"),
    [("rho", 1.0), ("rho", -0.1), ("epsilon", -1e-9), ("weight_decay", 0.1)],
)
def test_arguments_out_of_range(argument, value):
    with pytest.raises(
        ValueError, match=f"`{argument}` .*Received: {argument}={value}"
    ):
        StiefelDescent(**{argument: value})


def test_averages_of_the_weights_are_refused():
    with pytest.raises(ValueError, match="`use_ema` would .*Received: use_ema=True"):
        StiefelDescent(use_ema=True)


def test_config():
    optimizer = StiefelDescent(
        0.1, rms_scaling=True, rho=0.8, epsilon=1e-6, reproject=True, clipnorm=2.0
    )
    config = keras.optimizers.serialize(optimizer)
    assert config["registered_name"] == "keras_ortho>StiefelDescent"
    again = keras.optimizers.deserialize(config)
    assert again.get_config() == optimizer.get_config()
    assert (again.rms_scaling, again.reproject, again.rho) == (True, True, 0.8)
