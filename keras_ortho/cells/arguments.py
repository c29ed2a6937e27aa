"""Signatures of cells and layers, and a check that no argument is missing."""

import inspect
from typing import Any


def join(
    own: list[inspect.Parameter], others: list[inspect.Parameter]
) -> inspect.Signature:
    """Joins the arguments that a class declares with those that it passes on.

    Args:
        own: The arguments that the class declares, including `**kwargs` if any.
        others: The arguments of the class that receives its `**kwargs`.

    Returns:
        The signature that users see: the declared arguments, then the other
        arguments whose names differ, as keyword-only arguments.
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
    """Lists the arguments of a cell that its config must contain.

    Args:
        cls: Class of a cell.

    Returns:
        The names of the arguments, without those of every Keras layer, which
        Keras adds to the config itself.

    Example:
    >>> names(ScoRNNCell)[:2]
    ['units', 'negative_ones']
    """
    return [
        name
        for name, parameter in cls.__signature__.parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def check_given(layer: Any, cell: Any, args: Any, kwargs: Any) -> None:
    """Checks that a layer has received every required argument of its cell.

    Args:
        layer: Class of the layer.
        cell: Class of its cell.
        args: Positional arguments of the cell.
        kwargs: Keyword arguments, including those of the layer.

    Raises:
        TypeError: If an argument is missing or given twice, or if there are too many
            positional arguments.
    """
    signature, own = cell.__signature__, names(cell)
    given = ", ".join(
        [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
    )
    try:
        by_name = {name: kwargs[name] for name in own if name in kwargs}
        bound = signature.bind_partial(*args, **by_name).arguments
    except TypeError as error:
        raise TypeError(
            f"`{layer.__name__}`: {error}. Received: {layer.__name__}({given})"
        ) from None
    # Only what `__init__` itself requires: it may supply what its base class requires.
    asked = inspect.signature(cell.__init__).parameters
    missing = [
        f"`{name}`"
        for name in own
        if name not in bound
        and name in asked
        and asked[name].default is inspect.Parameter.empty
    ]
    if missing:
        raise TypeError(
            f"`{layer.__name__}` requires {' and '.join(missing)}. Received: "
            f"{layer.__name__}({given})"
        )
