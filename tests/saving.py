"""What Keras makes again of what it has saved."""

from typing import Any

import keras


def saved_copy(thing: Any) -> Any:
    """Makes an object again from its config, with all its arguments."""
    config = keras.saving.serialize_keras_object(thing)
    copy = keras.saving.deserialize_keras_object(config)
    assert type(copy) is type(thing)
    assert copy.get_config() == thing.get_config()
    return copy
