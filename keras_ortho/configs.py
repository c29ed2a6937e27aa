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


def argument_names(cls: type) -> list[str]:
    """Lists the arguments of a class by name, those that it passes on among them.

    Args:
        cls: The class. Where its `__init__` has `**kwargs`, they are the arguments of
            the class above.

    Returns:
        Their names.

    Example:
    >>> argument_names(keras.layers.RMSNormalization)[:2]
    ['axis', 'epsilon']
    """
    names: dict[str, None] = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = declared(base)
        named = [
            p.name
            for p in parameters
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        names.update(dict.fromkeys(named))
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return list(names)


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
