"""The arguments of an `__init__`, and their values in a config."""

import inspect
from typing import Any

import keras


def declared(cls: Any) -> list[inspect.Parameter]:
    """Lists the parameters in the signature of a class's `__init__`.

    Args:
        cls: The class.

    Returns:
        The parameters, without `self`.
    """
    return list(inspect.signature(cls.__init__).parameters.values())[1:]


def argument_names(cls: type) -> list[str]:
    """Lists the names of a class's arguments, including those that it passes on.

    Args:
        cls: The class. If its `__init__` has `**kwargs`, these are assumed to be the
            arguments of its base class.

    Returns:
        The names of the arguments.

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
    """Converts the value of an argument to a JSON-compatible value.

    Args:
        value: A number, string, `None`, or object that Keras can serialize.

    Returns:
        A value that the class accepts for the same argument.
    """
    if inspect.isfunction(value):
        return keras.activations.serialize(value)
    return keras.saving.serialize_keras_object(value)
