"""Which layers have methods that neither Keras nor this package knows."""

from typing import Any

_KNOWN = ("keras", "keras_ortho")


def method_of_ones_own(layer: Any, *names: str) -> str | None:
    """Finds a method that a class of the user's defines.

    Args:
        layer: The layer.
        *names: Names of methods.

    Returns:
        The first of the names whose method is neither of Keras nor of this package, or
        `None`.

    Example:
    >>> method_of_ones_own(ScoRNN(8), "call") is None
    True
    """
    for name in names:
        owner = next((cls for cls in type(layer).__mro__ if name in vars(cls)), None)
        if owner and owner.__module__.partition(".")[0] not in _KNOWN:
            return name
    return None
