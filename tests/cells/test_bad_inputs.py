"""What a cell or layer is called with must have the shapes that it works on."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ENRNN, GORU, EURNNCell, ScoRNN, ScoRNNCell, ScuRNNCell
from keras_ortho.parametrizations import GivensOrthogonal

pytestmark = pytest.mark.backends

BATCH, STEPS, FEATURES = 2, 5, 4
SEQUENCES = np.zeros((BATCH, STEPS, FEATURES), "float32")
CELLS = {
    "dense": lambda: ScoRNNCell(8),
    "heads": lambda: ScoRNNCell(8, heads=2),
    "heads of their own inputs": lambda: ScuRNNCell(4, heads=2, mix_inputs=False),
}


@pytest.fixture(params=CELLS)
def cell(request):
    made = CELLS[request.param]()
    made.build((None, FEATURES))
    return made


@pytest.mark.parametrize("shape", [(BATCH, 4), (BATCH, 16), (BATCH, 2, 4), ()])
def test_states_of_another_shape(cell, shape):
    """The blocks of heads would take some of them for another batch."""
    state = np.ones(shape, "float32")
    with pytest.raises(ValueError, match=r"`states` must .*batch, 8.* Received:"):
        cell(SEQUENCES[:, 0], [state])
    if len(shape) == 2:  # Of no other is Keras's loop sure to make steps.
        layer = keras.layers.RNN(cell, unroll=True)
        with pytest.raises(ValueError, match="`states` must have .* Received:"):
            layer(SEQUENCES, initial_state=state)


@pytest.mark.parametrize("shape", [(1, 8), (8,)])
def test_one_state_for_all_sequences(cell, shape):
    state = np.random.default_rng(0).normal(size=shape).astype("float32")
    output, _ = cell(SEQUENCES[:, 0], [state])
    expected, _ = cell(SEQUENCES[:, 0], [np.broadcast_to(state, (BATCH, 8))])
    np.testing.assert_allclose(output + ops.zeros((BATCH, 8)), expected, atol=1e-6)


@pytest.mark.parametrize("states", [[], None, [np.ones((2, 8)), np.ones((2, 8))]])
def test_another_number_of_states(cell, states):
    with pytest.raises(ValueError, match="`states` must be a tensor.* Received: "):
        cell(SEQUENCES[:, 0], states)


@pytest.mark.parametrize("shape", [(BATCH, 6), (BATCH, STEPS, FEATURES)])
def test_inputs_of_another_shape(cell, shape):
    with pytest.raises(ValueError, match=r"`inputs` must .*batch, 4.* Received:"):
        cell(np.zeros(shape, "float32"), np.ones((BATCH, 8), "float32"))


def test_sequences_without_a_step_and_masks_that_are_none():
    layer = ScoRNN(4)
    for mask in ([[True] * STEPS] * BATCH, "all"):
        with pytest.raises(ValueError, match="`mask` must be .* Received: mask="):
            layer(SEQUENCES, mask=mask)
    with pytest.raises(ValueError, match="must have at least one step. Received: "):
        layer(SEQUENCES[:, :0])


def test_layers_of_rotations_of_the_other_style():
    for make in (
        lambda: GORU(8, capacity=4),
        lambda: GivensOrthogonal(2),
        lambda: EURNNCell(8, capacity="many", style="fft"),
    ):
        with pytest.raises(ValueError, match="`capacity` .* Received: capacity="):
            make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ScoRNN(4, rebase_every=1),
        # Its matrix is divided from then on.
        lambda: ENRNN(2, 2, short_term_initializer=np.diag([3.0, 2.0])),
    ],
)
def test_a_layer_that_is_not_trained_stays_as_it_is(make):
    layer = make()
    model = keras.Sequential([keras.Input((STEPS, FEATURES)), layer])
    model.add(keras.layers.Dense(1))
    layer.trainable = False
    model.compile("sgd", "mse")
    before = layer.get_weights()
    x = np.random.default_rng(0).normal(size=(4, STEPS, FEATURES)).astype("float32")
    model.fit(x, x[:, 0, :1], batch_size=2, verbose=0)
    for value, expected in zip(layer.get_weights(), before, strict=True):
        np.testing.assert_array_equal(value, expected)
    layer.trainable = True
    model.compile("sgd", "mse")
    model.fit(x, x[:, 0, :1], batch_size=2, verbose=0)
    names = [weight.name for weight in layer.weights]
    name = "normalize" if "normalize" in names else "recurrent_passes"
    index = names.index(name)
    assert layer.get_weights()[index] != before[index]
