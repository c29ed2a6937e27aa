"""The whole-sequence recurrence against a loop in NumPy, and central differences."""

import functools

import keras
import numpy as np
import pytest
import scipy.linalg
from keras import ops

from keras_ortho import GORU, AntisymmetricRNN, ScoRNN
from keras_ortho.recurrence import find, sequence
from keras_ortho.recurrence.sequence import _segment_length
from tests import reference
from tests.gradients import gradients
from tests.recurrence.plain import plain_recurrence

pytestmark = [pytest.mark.backends, pytest.mark.usefixtures("cut_in_two", "full_turns")]

EPS = np.finfo("float64").eps
BATCH, FEATURES, UNITS = 3, 2, 4
NAMES = ["inputs", "kernel", "recurrent_kernel", "bias", "initial_state"]


def problem(steps, seed=0, complex_state=False, batch=BATCH, heads=1):
    random = np.random.default_rng(seed)
    shapes = {
        "inputs": (batch, steps, FEATURES),
        "kernel": (FEATURES, UNITS),
        "recurrent_kernel": (UNITS, UNITS),
        "bias": (UNITS // 2 if complex_state else UNITS,),
        "initial_state": (batch, UNITS),
    }
    values = {name: random.normal(size=shape) for name, shape in shapes.items()}
    values["recurrent_kernel"] = np.linalg.qr(values["recurrent_kernel"])[0]
    if heads > 1:  # Blocks, as the recurrence takes them.
        k = UNITS // heads
        form = (heads, 2, k // 2, 2, k // 2) if complex_state else (heads, k, k)
        blocks = np.linalg.qr(random.normal(size=(heads, k, k)))[0]
        values["recurrent_kernel"] = blocks.reshape(form)
    values["bias"] *= 0.1
    mask = random.random((batch, steps)) < 0.7
    mask[0] = False  # One sequence of nothing but padding.
    state_mask = 2.0 * (random.random((batch, UNITS)) < 0.5)
    return values, mask, state_mask


complex_modrelu = reference.complex_reals(reference.complex_modrelu)


def whole(kernel):
    """The matrix with its zeros; of complex units, all real parts come first."""
    if kernel.ndim < 5:
        return scipy.linalg.block_diag(*kernel) if kernel.ndim == 3 else kernel
    heads, _, k, _, _ = kernel.shape
    matrix = np.zeros((2, heads, k, 2, heads, k))
    for head, block in enumerate(kernel):
        matrix[:, head, :, :, head, :] = block
    return matrix.reshape(2 * heads * k, -1)


def numpy_states(values, mask, state_mask, function):
    x, u, w, b, h = values.values()
    w = whole(w)
    states = []
    for t in range(x.shape[1]):
        dropped = h if state_mask is None else h * state_mask
        new = function(x[:, t] @ u + dropped @ w, b)
        h = new if mask is None else np.where(mask[:, t, None], new, h)
        states.append(h)
    return np.stack(states, axis=1)


@pytest.mark.parametrize(
    ("return_sequences", "recompute"),
    [
        (False, False),
        (False, True),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [(False, 5), (True, True)]
        ),
        (True, False),
        (True, 5),
    ],
)
@pytest.mark.parametrize(
    ("steps", "masked", "dropped", "complex_state", "heads"),
    [
        (1, False, False, False, 1),
        (7, True, True, False, 1),
        (5, False, True, True, 1),
        (64, False, False, True, 1),  # One segment.
        (73, True, False, True, 1),  # One, and some steps more.
        (130, False, True, False, 1),
        (70, True, True, False, 2),
        (70, True, True, True, 2),
    ],
)
def test_against_numpy(
    steps, masked, dropped, complex_state, heads, return_sequences, recompute
):
    values, mask, state_mask = problem(steps, complex_state=complex_state, heads=heads)
    mask, state_mask = mask if masked else None, state_mask if dropped else None
    function = complex_modrelu if complex_state else reference.modrelu

    def states(**changed):
        found = numpy_states({**values, **changed}, mask, state_mask, function)
        return found if return_sequences else found[:, -1]

    expected = states()
    upstream = np.random.default_rng(1).normal(size=expected.shape)

    def loss(*tensors):
        found = plain_recurrence(
            *tensors,
            find("modrelu", complex_state),
            mask=mask,
            state_mask=None
            if state_mask is None
            else ops.convert_to_tensor(state_mask),
            return_sequences=return_sequences,
            recompute=recompute,
        )
        losses.append(found)
        return ops.sum(found * upstream)

    losses = []
    found = gradients(loss, *values.values())
    if keras.backend.backend() != "jax":  # A tracer, there.
        growth = 10 * UNITS * EPS * np.abs(expected).max()
        np.testing.assert_allclose(losses[0], expected, atol=steps * growth)

    # In a random direction, a number for each tensor: central differences of all
    # entries would take minutes.
    step = 1e-6
    random = np.random.default_rng(2)
    for name, gradient in zip(NAMES, found, strict=True):
        direction = random.normal(size=values[name].shape)
        ahead, behind = (
            np.sum(upstream * states(**{name: values[name] + s * direction}))
            for s in (step, -step)
        )
        scale = np.abs(upstream).sum() * np.abs(expected).max()
        atol = steps * scale * (step + 10 * UNITS * EPS / step)
        np.testing.assert_allclose(
            np.sum(gradient * direction),
            (ahead - behind) / (2 * step),
            rtol=1e-4,
            atol=1e-4 * atol,
            err_msg=name,
        )


@pytest.mark.slow
@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX compiles all by XLA"
)
def test_xla_differentiates_the_loop_without_segments():
    import tensorflow as tf

    values, _, _ = problem(40)

    tensors = [tf.constant(value) for value in values.values()]

    @tf.function(jit_compile=True)
    def compiled(training):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            states = plain_recurrence(
                *tensors, find("modrelu", False), training=training
            )
            loss = ops.sum(ops.sin(states))
        return tape.gradient(loss, tensors)

    for value, other in zip(compiled(False), compiled(True), strict=True):
        atol = 40 * 10 * EPS * np.abs(other).max()
        np.testing.assert_allclose(value, other, atol=atol)


@pytest.fixture
def kept(monkeypatch):
    """Counts the numbers that a call keeps for its gradient, besides in- and output."""
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

    def count(function):
        function()
        (number,) = counts
        counts.clear()
        return int(number)

    return count


def test_what_is_kept_for_the_gradient(kept):
    """All states, or about the square root of their number, or every `recompute`-th."""
    steps = 100
    values, _, _ = problem(steps)
    state = BATCH * UNITS

    def run(**kwargs):
        return kept(
            lambda: plain_recurrence(*values.values(), find("modrelu", False), **kwargs)
        )

    # A state before each segment is kept besides, at most.
    assert steps * state <= run() <= (steps + steps // 32 + 1) * state
    few = 10 * state
    assert few <= run(recompute=True) <= few + 2 * state
    assert 4 * state <= run(recompute=25) <= 6 * state
    # The outputs are kept in any case: the others follow from them.
    assert run(return_sequences=True, recompute=True) <= few + 2 * state


# How many times the states it keeps.
KEPT = {
    "ScoRNN": (ScoRNN, 1),
    "AntisymmetricRNN": (AntisymmetricRNN, 2),
    "with a gate": (functools.partial(AntisymmetricRNN, gated=True), 3),
    "GORU": (GORU, 6),
}


@pytest.mark.parametrize("recompute", [True, 5])
@pytest.mark.parametrize("name", list(KEPT))
def test_a_layer_keeps_few_states(kept, name, recompute):
    make, times = KEPT[name]
    x = np.ones((BATCH, 25, FEATURES), "float32")
    layers = [make(UNITS), make(UNITS, recompute=recompute)]
    every, few = (kept(functools.partial(layer, x, training=True)) for layer in layers)
    state = BATCH * UNITS
    # The state before each segment, and before what is left, are kept besides.
    assert 25 * times * state <= every <= (25 * times + 2) * state
    assert 5 * state <= few <= 7 * state


@pytest.mark.parametrize(
    ("steps", "recompute", "length"),
    [
        (784, False, 56),
        (200, False, 50),
        (10_000, False, 50),
        (2020, False, 56),
        (5, False, 5),
        (None, False, 56),
        (100_000, True, 317),
        (1, True, 1),
        (None, True, 256),
        (3, 10, 3),
    ],
)
def test_segments(steps, recompute, length):
    assert _segment_length(steps, recompute) == length


@pytest.mark.slow
@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX knows every shape"
)
@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize(
    "return_sequences", [pytest.param(False, marks=pytest.mark.slow), True]
)
def test_shapes_that_are_not_known_when_it_is_traced(return_sequences, jit_compile):
    import tensorflow as tf

    activation = find("modrelu", False)

    def run(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            states = plain_recurrence(
                *tensors, activation, return_sequences=return_sequences
            )
            loss = tf.reduce_sum(tf.sin(states))
        return states, tape.gradient(loss, tensors)

    values, _, _ = problem(1)
    shapes = [(None, None, FEATURES), *(v.shape for v in values.values())][:1]
    shapes += [values[name].shape for name in NAMES[1:4]] + [(None, UNITS)]
    traced = tf.function(
        run,
        input_signature=[tf.TensorSpec(s, "float64") for s in shapes],
        jit_compile=jit_compile,
    )
    for steps, batch in [(1, 1), (56, 3), (70, 2)]:
        values, _, _ = problem(steps, batch=batch)
        tensors = [tf.constant(v) for v in values.values()]
        expected, expected_gradients = run(*tensors)
        states, found = traced(*tensors)
        np.testing.assert_allclose(states, expected, atol=steps * 100 * EPS)
        for value, other in zip(found, expected_gradients, strict=True):
            atol = steps * 100 * EPS * np.abs(other).max()
            np.testing.assert_allclose(value, other, atol=atol)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX differentiates it again"
)
@pytest.mark.parametrize("training", [True, False])
def test_a_second_derivative_is_an_error_rather_than_wrong(training):
    """In training, and within XLA always, where TensorFlow has none of such a loop."""
    import tensorflow as tf

    values, _, _ = problem(3)
    tensors = [tf.constant(v) for v in values.values()]

    def differentiate(*tensors):
        with tf.GradientTape() as outer:
            outer.watch(tensors)
            with tf.GradientTape() as inner:
                inner.watch(tensors)
                states = plain_recurrence(
                    *tensors, find("modrelu", False), training=training
                )
                loss = tf.reduce_sum(states**2)
            gradient = inner.gradient(loss, tensors[2])
        return outer.gradient(gradient, tensors[2])

    if not training:
        assert np.abs(differentiate(*tensors)).max() > 0
        differentiate = tf.function(differentiate, jit_compile=True, autograph=False)
    with pytest.raises(LookupError, match="has first derivatives only"):
        differentiate(*tensors)
