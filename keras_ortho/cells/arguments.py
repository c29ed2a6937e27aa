"""The arguments of a cell: which there are, and whether all are given."""

import inspect
from typing import Any


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


def check_given(layer: Any, cell: Any, args: Any, kwargs: Any) -> None:
    """Checks that a layer has been given what its cell cannot do without.

    Args:
        layer: Class of the layer.
        cell: Class of its cell.
        args: Arguments of the cell that are given by position.
        kwargs: Arguments that are given by name, of the layer, too.

    Raises:
        TypeError: If one is missing, given twice, or one too many by position.
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
    # What `__init__` itself asks for: it may give the class above what that needs.
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
            f"`{layer.__name__}` needs {' and '.join(missing)}. "
            f"Received: {layer.__name__}({given})"
        )
