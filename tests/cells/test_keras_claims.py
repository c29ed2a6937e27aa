"""What Keras's own tests claim of recurrent layers, held for each of ours.

Of stacks of cells, `Bidirectional`, states that stay and masks in `TimeDistributed`;
the other claims are in `test_standards.py`. What is expected comes from single steps of
the cells.
"""

import keras
import numpy as np
import pytest

from tests.cells.architectures import ARCHITECTURES
from tests.cells.test_standards import (
    ATOL,
    BATCH,
    FEATURES,
    TIME,
    lively,
    make_layer,
    sequences,
    steps,
)

pytestmark = [
    pytest.mark.backends,
    pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str),
]

MERGE_MODES = ["concat", "sum", "mul", "ave", None]


def make_stack(architecture, **kwargs):
    """A stock layer of two cells, and the cells."""
    cells = [architecture.cell(**architecture.arguments) for _ in range(2)]
    stack = keras.layers.RNN(cells, **kwargs)
    stack.build((BATCH, TIME, FEATURES))
    return lively(stack), cells


def run_stack(cells, x, states=(None, None), mask=None):
    """All outputs of both cells."""
    first = steps(cells[0], x, state=states[0], mask=mask)
    return first, steps(cells[1], first, state=states[1], mask=mask)


def make_both_ways(architecture, **kwargs):
    """A bidirectional layer, and the cells of the way there and the way back."""
    forward, backward = (
        architecture.layer(**architecture.arguments, **kwargs, go_backwards=backwards)
        for backwards in (False, True)
    )
    both = keras.layers.Bidirectional(forward, backward_layer=backward)
    both.build((BATCH, TIME, FEATURES))
    lively(both.forward_layer)
    lively(both.backward_layer, seed=5)
    return both, both.forward_layer.cell, both.backward_layer.cell


def assert_comes_back_from_its_config(layer, x):
    expected = layer(x)
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    again.build(x.shape)
    again.set_weights(layer.get_weights())
    np.testing.assert_allclose(again(x), expected, atol=ATOL)


def random_states(architecture, count):
    return [sequences(seed, (BATCH, architecture.units)) for seed in range(count)]


def test_a_stack_returns_the_state_of_each_cell(architecture):
    x = sequences()
    stack, cells = make_stack(architecture, return_sequences=True, return_state=True)
    first, second = run_stack(cells, x)
    # In a list each, as of `SimpleRNNCell`.
    outputs, (state,), (last,) = stack(x)
    np.testing.assert_allclose(outputs, second, atol=ATOL)
    np.testing.assert_allclose(state, first[:, -1], atol=ATOL)
    np.testing.assert_allclose(last, second[:, -1], atol=ATOL)
    shapes = stack.compute_output_shape(x.shape)
    assert [tuple(s) for s in shapes] == [y.shape for y in (outputs, state, last)]


def test_a_stack_takes_the_state_of_each_cell(architecture):
    x, start = sequences(), random_states(architecture, 2)
    stack, cells = make_stack(architecture)
    _, expected = run_stack(cells, x, start)
    found = stack(x, initial_state=[[state] for state in start])
    np.testing.assert_allclose(found, expected[:, -1], atol=ATOL)


def test_a_stack_under_a_mask(architecture):
    x = sequences()
    mask = np.ones((BATCH, TIME), bool)
    mask[0, 3:] = mask[1, 1] = False
    stack, cells = make_stack(architecture)
    _, expected = run_stack(cells, x, mask=mask)
    np.testing.assert_allclose(stack(x, mask=mask), expected[:, -1], atol=ATOL)


def test_a_stack_keeps_its_states(architecture):
    x = sequences()
    stack, cells = make_stack(architecture, stateful=True)
    # `lively` has given trained initial states other values.
    start = [np.array(state) for state in keras.tree.flatten(stack.states)]
    _, expected = run_stack(cells, x, start)
    np.testing.assert_allclose(stack(x[:, :2]), expected[:, 1], atol=ATOL)
    np.testing.assert_allclose(stack(x[:, 2:]), expected[:, -1], atol=ATOL)


def test_a_stack_comes_back_from_its_config(architecture):
    stack, _ = make_stack(architecture, return_sequences=True)
    assert_comes_back_from_its_config(stack, sequences())


def test_two_ways_with_given_states(architecture):
    x, start = sequences(), random_states(architecture, 2)
    both, forward, backward = make_both_ways(architecture, return_state=True)
    outputs, *states = both(x, initial_state=start)
    there = steps(forward, x, state=start[0])[:, -1]
    back = steps(backward, x[:, ::-1], state=start[1])[:, -1]
    np.testing.assert_allclose(outputs, np.concatenate([there, back], 1), atol=ATOL)
    np.testing.assert_allclose(states[0], there, atol=ATOL)
    np.testing.assert_allclose(states[1], back, atol=ATOL)


def test_two_ways_under_a_mask(architecture):
    x = sequences()
    mask = np.ones((BATCH, TIME), bool)
    mask[0, 3:] = mask[1, 1] = False
    both, forward, backward = make_both_ways(architecture)
    there = steps(forward, x, mask=mask)[:, -1]
    back = steps(backward, x[:, ::-1], mask=mask[:, ::-1])[:, -1]
    expected = np.concatenate([there, back], axis=1)
    np.testing.assert_allclose(both(x, mask=mask), expected, atol=ATOL)


def test_two_ways_that_keep_their_states(architecture):
    x = sequences()
    both, forward, backward = make_both_ways(architecture, stateful=True)
    both.reset_state()  # `lively` has given trained initial states other values.
    there = steps(forward, x)
    # The way back starts at the end of each part.
    late = steps(backward, x[:, :2][:, ::-1])
    back = steps(backward, x[:, 2:][:, ::-1], state=late[:, -1])
    for _ in range(2):
        first = np.concatenate([there[:, 1], late[:, -1]], axis=1)
        np.testing.assert_allclose(both(x[:, :2]), first, atol=ATOL)
        second = np.concatenate([there[:, -1], back[:, -1]], axis=1)
        np.testing.assert_allclose(both(x[:, 2:]), second, atol=ATOL)
        both.reset_state()


@pytest.mark.parametrize("return_sequences", [False, True], ids=["last", "all"])
def test_two_ways_have_the_shapes_that_they_tell(architecture, return_sequences):
    x = sequences()
    for merge_mode in MERGE_MODES:
        for return_state in (False, True):
            layer = architecture.layer(
                **architecture.arguments,
                return_sequences=return_sequences,
                return_state=return_state,
            )
            both = keras.layers.Bidirectional(layer, merge_mode=merge_mode)
            found, told = both(x), both.compute_output_shape(x.shape)
            if not isinstance(found, (list, tuple)):
                found, told = [found], [told]
            assert [tuple(y.shape) for y in found] == [tuple(s) for s in told]


def test_two_ways_come_back_from_their_config(architecture):
    copied = keras.layers.Bidirectional(make_layer(architecture))
    for both in (copied, make_both_ways(architecture)[0]):
        assert_comes_back_from_its_config(both, sequences())


def test_states_are_of_one_batch_size(architecture):
    layer = make_layer(architecture, stateful=True)
    inputs = keras.Input((TIME, FEATURES), batch_size=BATCH)
    model = keras.Model(inputs, layer(inputs))
    model(sequences())
    with pytest.raises(ValueError, match="batch size"):
        model(sequences(shape=(BATCH + 1, TIME, FEATURES)))


def test_a_mask_reaches_what_is_time_distributed(architecture):
    """One of each sequence of sequences, as of sentences of words."""
    x = sequences(shape=(2, 3, TIME, FEATURES))
    mask = np.ones((2, 3, TIME), bool)
    mask[0, 0, 3:] = mask[1, 2, 1] = False
    layer = make_layer(architecture)
    found = keras.layers.TimeDistributed(layer)(x, mask=mask)
    for i in range(3):
        expected = steps(layer.cell, x[:, i], mask=mask[:, i])[:, -1]
        np.testing.assert_allclose(found[:, i], expected, atol=ATOL)


def test_dropout_in_a_stack_is_of_each_cell(architecture):
    x = np.ones((BATCH, TIME, FEATURES), "float32")

    def make_stacks():
        cells = [
            architecture.cell(**architecture.arguments, dropout=0.5, seed=seed)
            for seed in (1, 2)
        ]
        return keras.layers.RNN(cells, return_sequences=True)

    stack, twin = make_stacks(), make_stacks()
    expected = np.asarray(stack(x, training=True))
    twin.build(x.shape)
    twin.set_weights(stack.get_weights())
    np.testing.assert_allclose(twin(x, training=True), expected, atol=ATOL)
    assert np.abs(expected - stack(x, training=True)).max() > 0
    np.testing.assert_allclose(stack(x), twin(x), atol=ATOL)
