"""What Keras makes again of what it has saved."""

from pathlib import Path
from typing import Any

import keras
import numpy as np


def saved_copy(thing: Any) -> Any:
    """Makes an object again from its config, with all its arguments."""
    config = keras.saving.serialize_keras_object(thing)
    copy = keras.saving.deserialize_keras_object(config)
    assert type(copy) is type(thing)
    assert copy.get_config() == thing.get_config()
    return copy


def reloaded(model: keras.Model, folder: Path, x: Any = None) -> keras.Model:
    """Saves a model and loads it again, with the same outputs for `x`."""
    model.save(folder / "model.keras")
    loaded = keras.saving.load_model(folder / "model.keras")
    if x is not None:
        np.testing.assert_array_equal(
            loaded.predict(x, verbose=0), model.predict(x, verbose=0)
        )
    return loaded
