"""What Keras's own tests claim of wrappers around recurrent layers, held for ours.

Of stacks of cells, `Bidirectional` and `TimeDistributed`; what is expected comes from
single steps of the cells.
"""

import keras
import numpy as np
import pytest

from tests.cells.architectures import ARCHITECTURES
from tests.cells.building import lively
from tests.cells.test_standards import (
    BATCH,
    FEATURES,
    MASK,
    ORDINARY,
    TIME,
    close,
    make_layer,
    sequences,
    states,
    steps,
)

pytestmark = [
    pytest.mark.backends,
    pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str),
]


def assert_comes_back_from_its_config(layer, x):
    again = keras.layers.deserialize(keras.layers.serialize(layer))
    again.build(x.shape)
    again.set_weights(layer.get_weights())
    close(again(x), layer(x))


@pytest.mark.parametrize("case", ["states", "mask", "stateful", "config"])
def test_a_stack_of_cells(architecture, case):
    cells = [architecture.cell(**architecture.arguments) for _ in range(2)]
    options = {"return_sequences": True, "return_state": True}
    stack = keras.layers.RNN(cells, **options, stateful=case == "stateful")
    stack.build((BATCH, TIME, FEATURES))
    lively(stack, names=ORDINARY)
    x, mask = sequences(), MASK[:, ::-1] if case == "mask" else None
    # Whole rows that are masked, and leading steps: what these show is not compared.
    counts = np.ones_like(MASK) if mask is None else np.cumsum(mask, axis=1) > 0
    start = [states(architecture, seed) for seed in range(2)]
    if case == "stateful":  # `lively` has given trained initial states other values.
        start = [np.array(state) for state in keras.tree.flatten(stack.states)]
    first = steps(cells[0], x, start[0], mask)
    second = steps(cells[1], first, start[1], mask)
    if case == "config":
        return assert_comes_back_from_its_config(keras.layers.RNN(cells), x)
    # In a list each, as of `SimpleRNNCell`.
    given = None if case == "stateful" else [[state] for state in start]
    if case == "stateful":
        close(stack(x[:, :2])[1][0], first[:, 1])
        x, counts, second = x[:, 2:], counts[:, 2:], second[:, 2:]
    outputs, (state,), (last,) = stack(x, initial_state=given, mask=mask)
    close(np.asarray(outputs)[counts], second[counts])
    close(state, first[:, -1])
    close(last, second[:, -1])
    return None


@pytest.mark.parametrize("case", ["states", "mask", "stateful", "config"])
def test_two_ways(architecture, case):
    stateful = case == "stateful"  # Keras 3.15 cannot return these.
    options = {"return_sequences": True, "return_state": not stateful}
    options |= {"stateful": stateful}
    layer, backward_layer = (
        architecture.layer(**architecture.arguments, **options, go_backwards=backwards)
        for backwards in (False, True)
    )
    both = keras.layers.Bidirectional(layer, backward_layer=backward_layer)
    both.build((BATCH, TIME, FEATURES))
    forward, backward = both.forward_layer.cell, both.backward_layer.cell
    lively(forward, seed=3, names=ORDINARY)
    lively(backward, seed=5, names=ORDINARY)
    x, mask = sequences(), MASK[:3] if case == "mask" else None
    x = x if mask is None else x[:3]
    if case == "config":
        copied = keras.layers.Bidirectional(make_layer(architecture))
        return assert_comes_back_from_its_config(copied, x)
    start = [states(architecture, seed, len(x)) for seed in range(2)]
    given = None if stateful else start
    if stateful:
        both.reset_state()
        start = [
            np.array(way.states[0]) for way in (both.forward_layer, both.backward_layer)
        ]
        both(x[:, :2])
        start = [
            steps(forward, x[:, :2], start[0])[:, -1],
            steps(backward, x[:, 1::-1], start[1])[:, -1],
        ]
        x = x[:, 2:]
    results = both(x, initial_state=given, mask=mask)
    there = steps(forward, x, start[0], mask)
    back = steps(
        backward, x[:, ::-1], start[1], None if mask is None else mask[:, ::-1]
    )
    outputs, *last = [results] if stateful else results
    for state, expected in zip(last, (there, back), strict=not stateful):
        close(state, expected[:, -1])
    if mask is None:
        close(outputs, np.concatenate([there, back[:, ::-1]], axis=-1))
    for merge_mode in ("concat", "sum", "mul", "ave", None):
        plain = keras.layers.Bidirectional(make_layer(architecture), merge_mode)
        found, told = plain(x), plain.compute_output_shape(x.shape)
        shapes = [tuple(each.shape) for each in keras.tree.flatten(found)]
        assert shapes == ([*told] if merge_mode is None else [told])
    return None


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_time_distributed(architecture, dtype):
    """With a mask, as of words of sentences, and in another precision than the layer.

    The wrapper calls `call` itself: nothing is cast for the layer.
    """
    x = sequences(shape=(BATCH, 2, TIME, FEATURES))
    x = x.astype(dtype.removeprefix("mixed_")).astype("float32")
    mask = np.stack([MASK, MASK[::-1]], axis=1)
    layer = make_layer(architecture, dtype="float32")
    found = keras.layers.TimeDistributed(layer, dtype=dtype)(x, mask=mask)
    for i in range(2):
        close(found[:, i], layer(x[:, i], mask=mask[:, i]))
