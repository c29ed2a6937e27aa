"""Detection of layer methods that users override."""

from typing import Any

_KNOWN = ("keras", "keras_ortho")


def method_of_ones_own(layer: Any, *names: str) -> str | None:
    """Finds a method that is defined outside Keras and this package.

    Args:
        layer: The layer.
        *names: Names of methods to look for.

    Returns:
        The first name whose method is defined by neither Keras nor this package, or
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
