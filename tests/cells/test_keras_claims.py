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


@pytest.mark.parametrize("case", ["states", "mask", "stateful"])
def test_a_stack_of_cells(architecture, case):
    cells = [architecture.cell(**architecture.arguments) for _ in range(2)]
    stateful = case == "stateful"
    stack = keras.layers.RNN(cells, return_state=True, stateful=stateful)
    stack.build((BATCH, TIME, FEATURES))
    lively(stack, names=ORDINARY)
    x, mask = sequences(), MASK if case == "mask" else None
    given = None if stateful else [[states(architecture, seed)] for seed in range(2)]
    start = [np.array(state) for state in keras.tree.flatten(given or stack.states)]
    first = steps(cells[0], x, start[0], mask)
    second = steps(cells[1], first, start[1], mask)
    if stateful:
        stack(x[:, :2])
    late = x[:, 2:] if stateful else x
    output, (state,), (last,) = stack(late, initial_state=given, mask=mask)
    # Of a row that is masked as a whole Keras shows another output on JAX.
    close(output[:3], second[:3, -1])
    close(state, first[:, -1])  # In a list each, as of `SimpleRNNCell`.
    close(last, second[:, -1])
    assert_comes_back_from_its_config(keras.layers.RNN(cells), x)


@pytest.mark.parametrize("case", ["states", "mask", "stateful"])
def test_two_ways(architecture, case):
    stateful = case == "stateful"  # Keras 3.15 cannot return these.
    options = {"return_sequences": True, "return_state": not stateful}
    ways = [
        architecture.layer(
            **architecture.arguments, **options, stateful=stateful, go_backwards=back
        )
        for back in (False, True)
    ]
    both = keras.layers.Bidirectional(ways[0], backward_layer=ways[1])
    both.build((BATCH, TIME, FEATURES))
    ways = [both.forward_layer, both.backward_layer]
    cells = [lively(way.cell, seed=3, names=ORDINARY) for way in ways]
    x, mask = sequences(), MASK if case == "mask" else None
    given = None if stateful else [states(architecture, seed) for seed in range(2)]
    start = given
    if stateful:
        both.reset_state()
        start = [np.array(way.states[0]) for way in ways]
        both(x[:, :2])
        parts = x[:, :2], x[:, 1::-1]
        start = [
            steps(cell, part, state)[:, -1]
            for cell, part, state in zip(cells, parts, start, strict=True)
        ]
        x = x[:, 2:]
    results = both(x, initial_state=given, mask=mask)
    back_mask = None if mask is None else mask[:, ::-1]
    there = steps(cells[0], x, start[0], mask)
    back = steps(cells[1], x[:, ::-1], start[1], back_mask)
    outputs, *last = [results] if stateful else results
    if mask is None:
        close(outputs, np.concatenate([there, back[:, ::-1]], axis=-1))
    if last:
        close(last[0], there[:, -1])
        close(last[1], back[:, -1])


@pytest.mark.parametrize("merge_mode", ["concat", "sum", "mul", "ave", None])
def test_two_ways_have_the_shapes_that_they_tell(architecture, merge_mode):
    layer, x = make_layer(architecture), sequences()
    both = keras.layers.Bidirectional(layer, merge_mode=merge_mode)
    found, told = both(x), both.compute_output_shape(x.shape)
    shapes = [tuple(each.shape) for each in keras.tree.flatten(found)]
    assert shapes == ([*told] if merge_mode is None else [told])
    assert_comes_back_from_its_config(keras.layers.Bidirectional(layer), x)


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
