"""The arguments of an `__init__`, and their values in a config."""

import inspect
from typing import Any

import keras


def argument_names(cls: type, last: type = object) -> list[str]:
    """Lists the arguments of a class, and those that its `**kwargs` pass on."""
    names: dict[str, None] = {}
    for base in cls.__mro__:
        if "__init__" not in vars(base):
            continue
        signature = inspect.signature(vars(base)["__init__"])
        _, *parameters = signature.parameters.values()
        named = [p.name for p in parameters if "VAR" not in p.kind.name]
        names.update(dict.fromkeys(named))
        if base is last or not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return list(names)


def serialize(value: Any) -> Any:
    """Converts the value of an argument to one that a config can hold as JSON."""
    if inspect.isfunction(value):
        return keras.activations.serialize(value)
    return keras.saving.serialize_keras_object(value)
