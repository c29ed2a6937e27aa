import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.optimizers import StiefelDescent
from keras_ortho.parametrizations.arithmetic import orthogonality_error
from tests.reference import random_unitary

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps


def gaussian(n, seed):
    random = np.random.default_rng(seed)
    return random.normal(size=(n, n)) + 1j * random.normal(size=(n, n))


def parts(matrix):
    return np.stack([matrix.real, matrix.imag])


def variable_of(matrix, dtype="float64"):
    return keras.Variable(parts(matrix), dtype=dtype)


def value_of(variable):
    real, imaginary = ops.convert_to_numpy(ops.cast(variable, "float64"))
    return real + 1j * imaginary


def take_steps(optimizer, variable, gradient_of, steps):
    for _ in range(steps):
        gradient = parts(gradient_of(value_of(variable)))
        optimizer.apply([ops.cast(gradient, variable.dtype)], [variable])


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
    assert orthogonality_error(value_of(variable)) <= 10 * n * EPS64


def test_rms_scaling():
    """Real and imaginary parts have moving averages of their own."""
    n, rate = 5, float(np.float32(0.01))
    w, gradients = random_unitary(n), [gaussian(n, seed) for seed in range(4)]
    variable, remaining = variable_of(w), iter(gradients)
    optimizer = StiefelDescent(0.01, rms_scaling=True)
    take_steps(optimizer, variable, lambda _: next(remaining), 4)
    average = np.zeros((2, n, n))
    for g in gradients:
        average = 0.9 * average + 0.1 * parts(g) ** 2
        real, imaginary = parts(g) / (np.sqrt(average) + 1e-8)
        w = step_by_definition(w, real + 1j * imaginary, rate)
    np.testing.assert_allclose(value_of(variable), w, atol=1000 * n * EPS64)


def drift(steps, **kwargs):
    n = 24
    variable, seeds = variable_of(random_unitary(n), "float32"), itertools.count()
    optimizer = StiefelDescent(0.01, **kwargs)
    take_steps(optimizer, variable, lambda _: gaussian(n, next(seeds)), steps)
    return orthogonality_error(value_of(variable)) / (n * EPS32)


def test_reprojection_keeps_it_there():
    assert drift(100, reproject=True) < 1 < drift(100) < 100  # By n eps a step.
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


def test_variables_of_few_bits_are_factorized_in_float32():
    variable = variable_of(random_unitary(4), dtype="bfloat16")
    take_steps(StiefelDescent(0.1), variable, lambda w: np.full_like(w, 1 + 1j), 1)
    assert orthogonality_error(value_of(variable)) <= 4 * 4 * 2.0**-7
