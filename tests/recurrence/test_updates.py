"""Steps with their derivatives, against NumPy and central differences."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.recurrence import (
    Euler,
    GatedEuler,
    Plain,
    Products,
    ResetAndUpdate,
    find,
)
from tests import reference

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
UNITS = 4

MODRELU = find("modrelu", complex_state=False)
TANH = find(keras.activations.tanh, complex_state=False)
FUNCTIONS = {MODRELU: reference.modrelu, TANH: lambda z, b: np.tanh(z + b)}


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def reset_and_update(inputs, products, state, biases, function):
    of_gates = inputs[1] + products[1] + biases[1]
    reset, update = np.split(sigmoid(of_gates), 2, axis=-1)
    candidate = function(inputs[0] + reset * products[0], biases[0])
    return update * state + (1 - update) * candidate


def gated_euler(inputs, products, state, biases, function):
    gate = sigmoid(inputs[1] + products[0] + biases[1])
    return state + 0.3 * gate * function(inputs[0] + products[0], biases[0])


# An update, its step in NumPy, and the width of each product, in units.
UPDATES = {
    "plain": (
        Plain,
        lambda x, p, h, b, function: function(x[0] + p[0], b[0]),
        (1,),
        (1,),
    ),
    "reset and update": (ResetAndUpdate, reset_and_update, (1, 2), (1, 2)),
    "euler": (
        lambda activation: Euler(activation, 0.3),
        lambda x, p, h, b, function: h + 0.3 * function(x[0] + p[0], b[0]),
        (1,),
        (1,),
    ),
    "gated euler": (
        lambda activation: GatedEuler(activation, 0.3),
        gated_euler,
        (1, 1),
        (1,),
    ),
}


@pytest.mark.parametrize("activation", [MODRELU, TANH], ids=["modrelu", "tanh"])
@pytest.mark.parametrize("name", list(UPDATES))
def test_value_and_gradient(name, activation):
    make, step, inputs, products = UPDATES[name]
    update = make(activation)
    function = FUNCTIONS[activation]
    random = np.random.default_rng(0)
    x, p = (
        [random.normal(size=(3, k * UNITS)) for k in sizes]
        for sizes in (inputs, products)
    )
    h, upstream = random.normal(size=(2, 3, UNITS))
    biases = [random.normal(size=each.shape[1]) for each in x]

    tensors = [ops.convert_to_tensor(b) for b in biases]
    projected = [
        ops.convert_to_tensor(each if inside else each + bias)
        for each, bias, inside in zip(x, biases, update.own_bias, strict=True)
    ]
    turned = [ops.convert_to_tensor(each) for each in p]
    kept = update.apply(
        Products(projected, turned, ops.convert_to_tensor(h), tuple(tensors))
    )
    expected = step(x, p, h, biases, function)
    np.testing.assert_allclose(kept[0], expected, atol=40 * EPS)
    found = [(k.shape[-1], keras.backend.standardize_dtype(k.dtype)) for k in kept]
    assert found == list(update.kept(UNITS, "float64"))

    pulled = update.pull(kept, tuple(tensors), ops.convert_to_tensor(upstream))
    assert [g.shape[-1] // UNITS for g in pulled.gradients] == list(update.widths)
    # The error of central differences, and of the rounding in them.
    delta = 1e-5
    atol = 100 * (delta**2 + EPS / delta) + 40 * EPS

    def check(gradient, values):
        # Of one of the arrays that the step takes, changed in its place.
        def loss(changed):
            old = values.copy()
            values[...] = changed
            total = np.sum(upstream * step(x, p, h, biases, function))
            values[...] = old
            return total

        wanted = reference.central_differences(loss, values.copy(), delta)
        np.testing.assert_allclose(gradient, wanted, atol=atol)

    for index, each in zip(update.of_inputs, x, strict=True):
        check(pulled.gradients[index], each)
    for index, each in zip(update.of_states, p, strict=True):
        check(pulled.gradients[index], each)
    for gradient, each in zip(pulled.to_biases, biases, strict=True):
        check(ops.sum(gradient, axis=0), each)
    check(np.zeros_like(h) if pulled.to_state is None else pulled.to_state, h)


@pytest.mark.parametrize("name", list(UPDATES))
def test_few_bits(name):
    """Everything has the dtype of the state: what a loop collects has one from it."""
    make, _, inputs, products = UPDATES[name]
    update = make(MODRELU)

    def ones(units):
        return ops.ones((3, units * UNITS), "bfloat16")

    x, p = list(map(ones, inputs)), list(map(ones, products))
    biases = tuple(each[0] for each in x)
    kept = update.apply(Products(x, p, ones(1), biases))
    found = [keras.backend.standardize_dtype(k.dtype) for k in kept]
    assert found == [dtype for _, dtype in update.kept(UNITS, "bfloat16")]
    pulled = update.pull(kept, biases, ones(1))
    for each in (*pulled.gradients, *pulled.to_biases):
        assert keras.backend.standardize_dtype(each.dtype) == "bfloat16"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_an_open_update_gate_keeps_the_state_in_few_bits(dtype):
    """Whatever the candidate, which rounding of a difference would let through."""
    random = np.random.default_rng(0)
    h = ops.convert_to_tensor(random.normal(size=(8, UNITS)), dtype)
    x = 1000 * random.normal(size=(8, UNITS))
    # So far open that the gate is one in this precision.
    gates = np.concatenate([0 * x, 0 * x + 20], axis=1)
    inputs = [ops.convert_to_tensor(each, dtype) for each in (x, gates)]
    products = [ops.zeros_like(each) for each in inputs]
    biases = tuple(ops.zeros_like(each[0]) for each in inputs)
    kept = ResetAndUpdate(MODRELU).apply(Products(inputs, products, h, biases))
    after, before = (ops.convert_to_numpy(ops.cast(s, "float64")) for s in (kept[0], h))
    np.testing.assert_array_equal(after, before)
