"""What Keras makes again of what it has saved."""

import keras
import numpy as np


def saved_copy(thing):
    """Makes an object again from its config, with all its arguments."""
    config = keras.saving.serialize_keras_object(thing)
    copy = keras.saving.deserialize_keras_object(config)
    assert type(copy) is type(thing)
    assert copy.get_config() == thing.get_config()
    return copy


def reloaded(model, folder, x=None):
    """Saves a model and loads it again, with the same outputs for `x`."""
    model.save(folder / "model.keras")
    loaded = keras.saving.load_model(folder / "model.keras")
    if x is not None:
        found, expected = (each.predict(x, verbose=0) for each in (loaded, model))
        np.testing.assert_array_equal(found, expected)
    return loaded
