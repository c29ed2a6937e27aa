"""What the package needs of Keras that is not public: in one file, and still so."""

import re
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_ortho
from keras_ortho import keras_internals
from keras_ortho.keras_internals import call_is_training, current_call, within_call

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


class Asking(keras.layers.Layer):
    """Notes what is known of the call that is under way."""

    def call(self, x, training=False):
        self.seen = call_is_training(), current_call(self) is not None
        return x


def test_calls_are_known_from_within():
    asking = Asking()
    model = keras.Sequential([keras.Input((3, 4)), asking])
    model(X, training=True)
    assert asking.seen == (True, True)
    asking(X)
    assert asking.seen == (False, False)
    with within_call(model, training=True):
        asking.call(X)
    assert asking.seen == (True, True)
    assert current_call(asking) is None
