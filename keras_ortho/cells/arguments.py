"""The arguments of a cell: which there are, checked, and as a config holds them."""

import inspect
import operator
from typing import Any

import keras
import numpy as np


def declared(cls: Any) -> list[inspect.Parameter]:
    """Lists the arguments that the `__init__` of a class names.

    Args:
        cls: The class.

    Returns:
        Its parameters, without `self`.
    """
    return list(inspect.signature(cls.__init__).parameters.values())[1:]


def join(
    own: list[inspect.Parameter], others: list[inspect.Parameter]
) -> inspect.Signature:
    """Joins the arguments that a class declares with others that it passes on.

    Args:
        own: The arguments that it declares, among them `**kwargs`.
        others: Those of the class that it passes its `**kwargs` on to.

    Returns:
        The signature as users see it: the own arguments, then those of the
        others that have another name, by name only.
    """
    known = {parameter.name for parameter in own}
    rest = [p for p in own if p.kind is p.VAR_KEYWORD]
    named = [
        p.replace(kind=p.KEYWORD_ONLY)
        for p in (others if rest else [])
        if p.name not in known and p.kind is not p.VAR_KEYWORD
    ]
    return inspect.Signature([p for p in own if p not in rest] + named + rest)


def names(cls: Any) -> list[str]:
    """Lists the arguments of a cell that its config must hold.

    Args:
        cls: Class of a cell.

    Returns:
        The names of its arguments, without those of every Keras layer, which
        Keras puts into a config itself.

    Example:
    >>> names(ScoRNNCell)[:2]
    ['units', 'negative_ones']
    """
    return [
        name
        for name, parameter in cls.__signature__.parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


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


def check_count(name: str, value: Any) -> int:
    """Checks that an argument is a positive whole number.

    Args:
        name: Name of the argument.
        value: Its value.

    Returns:
        The value as an int.

    Raises:
        ValueError: If it is not.
    """
    try:
        count = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = 0
    if count <= 0:
        raise ValueError(
            f"`{name}` must be a positive integer. Received: {name}={value!r}"
        )
    return count


def check_fraction(name: str, value: Any) -> float:
    """Checks that an argument is a dropout rate.

    Args:
        name: Name of the argument.
        value: Its value.

    Returns:
        The value as a float.

    Raises:
        ValueError: If it is not in `[0, 1)`.
    """
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or not 0 <= value < 1:
        raise ValueError(
            f"`{name}` must be a fraction of at least 0 and less than 1. "
            f"Received: {name}={value!r}"
        )
    return float(value)


def check_number(name: str, value: Any, positive: bool = False) -> float:
    """Checks that an argument is a finite number that is not negative.

    Args:
        name: Name of the argument.
        value: Its value.
        positive: Whether it must be more than 0. Default: `False`.

    Returns:
        The value as a float.

    Raises:
        ValueError: If it is not.
    """
    numeric = isinstance(value, int | float | np.integer | np.floating)
    if isinstance(value, bool) or not numeric or not 0 <= value < np.inf:
        numeric = False
    if not numeric or (positive and value == 0):
        least = "more than" if positive else "at least"
        raise ValueError(
            f"`{name}` must be a finite number of {least} 0. Received: {name}={value!r}"
        )
    return float(value)


def check_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    """Checks the shape of an array.

    Args:
        name: Name of the argument.
        array: Its value.
        shape: The shape that it must have.

    Raises:
        ValueError: If it has another.
    """
    if array.shape != shape:
        raise ValueError(
            f"`{name}` must have the shape {shape}. "
            f"Received: {name}.shape={array.shape}"
        )


def check_built(layer: keras.layers.Layer) -> None:
    """Checks that a layer has its weights.

    Args:
        layer: The layer.

    Raises:
        ValueError: If it has not been built.
    """
    if not layer.built:
        raise ValueError(
            "The weights do not exist before the layer has been built: call it, or "
            f"its `build`, first. Received: {layer.name} with built=False"
        )
