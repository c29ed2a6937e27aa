"""What the package needs of Keras that is not public: in one file, and still so."""

import re
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_ortho
from keras_ortho import keras_internals
from keras_ortho.keras_internals import (
    DropoutRNNCell,
    call_is_training,
    current_call,
    get_keras_mask,
    layers_within,
    run_through,
    within_call,
)

pytestmark = pytest.mark.backends

X = np.ones((2, 3, 4), "float32")


def test_one_file_has_them():
    root = Path(keras_ortho.__file__).parent
    files = {
        path.name
        for path in root.rglob("*.py")
        if re.search(r"keras\.src|\._(flatten_layers|functional\b)", path.read_text())
    }
    assert files == {Path(keras_internals.__file__).name}


def test_calls_are_known_from_within():
    seen = []

    class Asking(keras.layers.Layer):
        """Notes what is known of the call that is under way."""

        def call(self, x, training=False):
            """Notes it."""
            seen.append((call_is_training(), current_call(self) is not None))
            return x

    asking = Asking()
    model = keras.Sequential([keras.Input((3, 4)), asking])
    model(X, training=True)
    asking(X)
    with within_call(model, training=True):
        asking.call(X)
    assert seen[-3:] == [(True, True), (False, False), (True, True)]
    assert current_call(asking) is None


def test_masks_models_and_their_graphs():
    masked = keras.layers.Masking()(X)
    assert np.all(np.asarray(get_keras_mask(masked)))
    inner = keras.Sequential([keras.Input((3, 4)), keras.layers.Dense(2)])
    x = keras.Input((3, 4))
    model = keras.Model(x, keras.layers.Activation("tanh")(inner(x)))
    assert {type(layer).__name__ for layer in layers_within(model)} >= {
        "Functional",
        "Sequential",
        "Dense",
        "Activation",
    }
    called = []

    def call(layer, *args, **kwargs):
        called.append(type(layer).__name__)
        return layer(*args, **kwargs)

    np.testing.assert_array_equal(run_through(model, X, call), model(X))
    assert called == ["Sequential", "Activation"]
    run_through(inner, X, call)
    assert called[-1] == "Dense"


def test_the_stock_layer_asks_the_cell_for_masks_around_its_loop():
    """Once before its steps, and resets them afterwards: the kernel is made there."""
    events = []

    class Noting(DropoutRNNCell, keras.layers.Layer):
        """A cell that adds nothing, and notes when it is called."""

        state_size = output_size = 4
        dropout = recurrent_dropout = 0.0

        def get_dropout_mask(self, step_input):
            """Notes that a sequence begins."""
            events.append("begin")

        def reset_dropout_mask(self):
            """Notes that it ends."""
            events.append("end")

        def call(self, inputs, states, training=False):
            """Notes a step."""
            events.append("step")
            return inputs, states

    layer = keras.layers.RNN(Noting(), unroll=True)
    layer.build((2, 3, 4))
    events.clear()
    layer.call(keras.ops.convert_to_tensor(X))
    assert events[0] == "begin"
    assert events[-1] == "end"
    assert events.count("begin") == 1
    assert events.count("step") >= 3
    assert DropoutRNNCell._create_dropout_mask  # Which `RecurrentCell` calls.
