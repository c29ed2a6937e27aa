"""The arguments of an `__init__`, and their values as a config holds them."""

import inspect
from typing import Any

import keras


def declared(cls: Any) -> list[inspect.Parameter]:
    """Lists the arguments that the `__init__` of a class names.

    Args:
        cls: The class.

    Returns:
        Its parameters, without `self`.
    """
    return list(inspect.signature(cls.__init__).parameters.values())[1:]


def serialize(value: Any) -> Any:
    """Turns the value of an argument into what JSON can hold.

    Args:
        value: A number, string, `None`, or object that Keras can serialize.

    Returns:
        What the class takes back as the same argument.
    """
    if inspect.isfunction(value):
        return keras.activations.serialize(value)
    return keras.saving.serialize_keras_object(value)
