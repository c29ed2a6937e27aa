"""The whole-sequence recurrence against a loop in NumPy, and central differences."""

import dataclasses
import os
from functools import partial

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import GORU, AntisymmetricRNN, ScoRNN, activations
from keras_ortho.recurrence import (
    Euler,
    GatedEuler,
    Plain,
    ResetAndUpdate,
    Weights,
    find,
    recurrence,
    sequence,
)
from tests.cells.oracle import ACTIVATIONS, sigmoid, with_bias
from tests.gradients import gradients
from tests.recurrence.test_blocks import as_matrix

pytestmark = [pytest.mark.backends, pytest.mark.usefixtures("cut_in_two", "full_turns")]
on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="of TensorFlow's graphs and tapes"
)

EPS = np.finfo("float64").eps
FEATURES, UNITS = 2, 4


# Those whose derivative is known, of real and of complex units.
KNOWN = ["modrelu", "linear", "relu", "leaky_relu", "paper_leaky_relu", "oplu", "tanh"]
KNOWN += ["sigmoid", "complex modrelu", "complex smoothed_modrelu"]


def reset_and_update(x, p, h, own, b, f):
    reset, update = np.split(sigmoid(x[1] + p[1] + b[1]), 2, axis=-1)
    return update * own + (1 - update) * f(x[0] + reset * p[0], b[0])


def euler(x, p, h, own, b, f):
    return h + 0.3 * f(x[0] + p[0], b[0])


def gated_euler(x, p, h, own, b, f):
    gate = sigmoid(x[1] + p[0] + b[1])
    return h + 0.3 * gate * f(x[0] + p[0], b[0])


# The update; its step, from the products, the state before, the same after dropout, the
# biases and the activation; and the width of each product with inputs and with states.
UPDATES = {
    "plain": (Plain, lambda x, p, h, own, b, f: f(x[0] + p[0], b[0]), (1,), (1,)),
    "reset and update": (ResetAndUpdate, reset_and_update, (1, 2), (1, 2)),
    "euler": (partial(Euler, step_size=0.3), euler, (1,), (1,)),
    "gated euler": (partial(GatedEuler, step_size=0.3), gated_euler, (1, 1), (1,)),
}


def activation_of(name):
    is_modrelu = isinstance(name, str) and name.endswith("modrelu")
    return name if is_modrelu else activations.get(name)


@dataclasses.dataclass
class Case:
    """A recurrence, whose tensors are inputs, initial state, kernels and biases."""

    steps: int
    activation: str = "modrelu"
    update: str = "plain"
    heads: int = 1
    masked: bool = False
    dropped: bool = False
    arguments: dict = dataclasses.field(default_factory=dict)
    batch: int = 3

    def __str__(self):
        return " ".join(map(str, dataclasses.astuple(self)))

    def __post_init__(self):
        random = np.random.default_rng(0)
        *_, inputs, states = UPDATES[self.update]
        self.counts = len(inputs), len(states)
        self.is_complex = self.activation.startswith("complex")
        parts, name = 1 + self.is_complex, self.activation.split()[-1]
        self.known = find(activation_of(ACTIVATIONS[name][0]), self.is_complex)
        self.function = with_bias(name, self.is_complex)
        order = UNITS // self.heads
        blocks = np.linalg.qr(random.normal(size=(self.heads, order, order)))[0]
        form = (self.heads, parts, order // parts, parts, order // parts)
        if self.heads == 1:
            form = (UNITS, UNITS)
        elif parts == 1:
            form = blocks.shape
        self.values = [
            random.normal(size=(self.batch, self.steps, FEATURES)),
            random.normal(size=(self.batch, UNITS)),
            *(random.normal(size=(FEATURES, k * UNITS)) for k in inputs),
            blocks.reshape(form),
            *(random.normal(size=(UNITS, k * UNITS)) for k in states[1:]),
            *(random.normal(size=k * UNITS // parts) / 10 for k in inputs),
        ]
        mask = random.random((self.batch, self.steps)) < 0.7
        mask[0] = False  # One sequence of nothing but padding.
        self.mask = mask if self.masked else None
        drop = 2.0 * (random.random((self.batch, UNITS)) < 0.5)
        self.state_mask = drop if self.dropped else None

    def weights(self, tensors):
        inputs, states = self.counts
        end = inputs + states
        return tensors[:inputs], tensors[inputs:end], tensors[end:]

    def found(self, x, h, *tensors, training=True):
        update = UPDATES[self.update][0](self.known)
        weights = Weights(*self.weights(tensors), update, adds="euler" in self.update)
        masks = {"mask": self.mask, "state_mask": self.state_mask}
        return recurrence(x, weights, h, training=training, **masks, **self.arguments)

    def expected(self, x, h, *tensors):
        step = UPDATES[self.update][1]
        kernels, recurrents, biases = self.weights(tensors)
        recurrents = [w if w.ndim == 2 else as_matrix(w) for w in recurrents]
        states = []
        for t in range(self.steps):
            own = h if self.state_mask is None else h * self.state_mask
            products = [x[:, t] @ u for u in kernels], [own @ w for w in recurrents]
            new = step(*products, h, own, biases, self.function)
            h = new if self.mask is None else np.where(self.mask[:, t, None], new, h)
            states.append(h)
        return np.stack(states, axis=1) if self.arguments.get("return_sequences") else h


ALL, FEW = {"return_sequences": True}, {"recompute": True}
CASES = [
    *(Case(5, name, arguments=ALL) for name in KNOWN),
    *(
        Case(6, name, update, masked=True, dropped=True, arguments=arguments)
        for name, arguments in (("modrelu", FEW), ("tanh", {}))
        for update in UPDATES
    ),
    Case(1),
    Case(1, heads=2, arguments=ALL),
    Case(7, masked=True, arguments=ALL | FEW),
    Case(64, "complex modrelu"),  # One segment.
    # One, and some steps more.
    Case(73, "complex modrelu", masked=True, arguments=ALL),
    Case(130, dropped=True, arguments=FEW),
    Case(70, "oplu", heads=2, masked=True, dropped=True, arguments={"recompute": 5}),
    Case(70, "complex modrelu", "plain", 2, True, True, ALL | {"recompute": 5}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_against_numpy(case):
    expected = case.expected(*case.values)
    upstream = np.random.default_rng(1).normal(size=expected.shape)
    outputs = []

    def loss(*tensors):
        outputs.append(case.found(*tensors))
        return ops.sum(outputs[0] * upstream)

    found = gradients(loss, *case.values)
    largest = np.abs(expected).max()
    if keras.backend.backend() != "jax":  # A tracer, there.
        atol = 10 * case.steps * UNITS * EPS * largest
        np.testing.assert_allclose(outputs[0], expected, atol=atol)
    # In a random direction, a number for each tensor: central differences of all
    # entries would take minutes.
    step = 1e-6
    random = np.random.default_rng(2)
    scale = case.steps * np.abs(upstream).sum() * largest
    atol = 1e-4 * scale * (step + 10 * UNITS * EPS / step)
    for index, (gradient, value) in enumerate(zip(found, case.values, strict=True)):
        direction = random.normal(size=value.shape)
        ahead, behind = (
            case.expected(
                *case.values[:index], value + s * direction, *case.values[index + 1 :]
            )
            for s in (step, -step)
        )
        slope = np.sum(upstream * (ahead - behind)) / (2 * step)
        along = np.sum(gradient * direction)
        np.testing.assert_allclose(along, slope, rtol=1e-4, atol=atol)


@pytest.fixture
def kept(monkeypatch):
    """Counts the numbers that a layer keeps for its gradient, except in- and output."""
    counts = []

    def with_gradient(forward, backward, **kwargs):
        def function(*inputs):
            output, saved = forward(*map(ops.convert_to_tensor, inputs))
            leaves = keras.tree.flatten(saved[2:])
            # What a loop has collected is a list of tensors on TensorFlow.
            tensors = [x.array.stack() if hasattr(x, "array") else x for x in leaves]
            counts.append(sum(ops.size(x) for x in tensors if x is not None))
            return output

        return function

    monkeypatch.setattr(sequence, "with_gradient", with_gradient)

    def count(layer, x):
        layer(x, training=True)
        return int(counts.pop())

    return count


# A layer, and how many times its states it keeps.
@pytest.mark.parametrize(
    ("make", "times"),
    [
        (AntisymmetricRNN, 2),
        (partial(AntisymmetricRNN, gated=True), 3),
        (GORU, 6),
        (ScoRNN, 1),
    ],
)
def test_what_is_kept_for_the_gradient(kept, make, times):
    """All states, or about the square root of their number, or every `recompute`-th."""
    batch, steps = 3, 100
    x = np.ones((batch, steps, 2), "float32")
    state = batch * UNITS
    # The state before each segment, and before what is left, are kept besides.
    every = kept(make(UNITS), x)
    assert times * steps * state <= every <= (times * steps + 3) * state
    assert 10 * state <= kept(make(UNITS, recompute=True), x) <= 12 * state
    assert 4 * state <= kept(make(UNITS, recompute=25), x) <= 6 * state
    # The outputs are kept in any case: the others follow from them.
    few = kept(make(UNITS, return_sequences=True, recompute=True), x)
    assert few <= 12 * state


@pytest.mark.parametrize(
    ("steps", "recompute", "length"),
    [
        (784, False, 56),
        (10_000, False, 50),
        (2020, False, 56),
        (5, False, 5),
        (None, False, 56),
        (100_000, True, 317),
        (None, 25, 25),
        (3, 10, 3),
    ],
)
def test_segments(steps, recompute, length):
    assert sequence.segment_length(steps, recompute) == length


@on_tensorflow
@pytest.mark.parametrize(
    ("cores", "batch", "entries", "training", "pieces"),
    [
        (2, 7, 2048**2, True, 1),
        (8, 13, 64**2, True, 3),
        (2, None, 32**2, True, 2),
        (2, 32, 128**2, False, 1),
        (2, 128, 128**2, False, 2),
    ],
)
def test_large_batches_are_cut(monkeypatch, cores, batch, entries, training, pieces):
    from keras_ortho.backend import tensorflow as backend

    monkeypatch.setattr(backend, "UNKNOWN_BATCH", 64)  # As outside of `make test`.
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)))
    assert backend.batch_pieces(batch, entries, training) == pieces


@pytest.mark.slow
@on_tensorflow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_shapes_that_are_not_known_when_it_is_traced(jit_compile):
    import tensorflow as tf

    def run(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            states = case.found(*tensors)
            loss = tf.reduce_sum(tf.sin(states))
        return states, *tape.gradient(loss, tensors)

    case = Case(1, arguments=ALL)
    shapes = [(None, None, FEATURES), (None, UNITS)]
    shapes += [value.shape for value in case.values[2:]]
    signature = [tf.TensorSpec(shape, "float64") for shape in shapes]
    traced = tf.function(run, input_signature=signature, jit_compile=jit_compile)
    for steps, batch in [(1, 1), (56, 3), (70, 2)]:
        tensors = list(map(tf.constant, Case(steps, batch=batch).values))
        for value, other in zip(traced(*tensors), run(*tensors), strict=True):
            atol = steps * 100 * EPS * np.abs(other).max()
            np.testing.assert_allclose(value, other, atol=atol)


@pytest.mark.slow
@on_tensorflow
def test_gradients_of_one_pass():
    """There may be several, and a Jacobian; a second derivative is an error."""
    import tensorflow as tf

    case = Case(3, arguments=ALL)
    tensors = list(map(tf.constant, case.values))
    with tf.GradientTape() as outer:
        outer.watch(tensors)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(tensors)
            states = case.found(*tensors)
            losses = [tf.reduce_sum(states), tf.reduce_sum(states**2)]
        ones, squares = (inner.gradient(loss, tensors[1]) for loss in losses)
    jacobian = inner.jacobian(states, tensors[1])
    for upstream, found in ((tf.ones_like(states), ones), (2 * states, squares)):
        expected = tf.tensordot(upstream, jacobian, axes=[[0, 1, 2]] * 2)
        np.testing.assert_allclose(found, expected, atol=1000 * EPS)
    with pytest.raises(LookupError, match="has first derivatives only"):
        outer.gradient(squares, tensors[1])
