"""Detection of layer methods that users override."""

from typing import Any

_KNOWN = ("keras", "keras_ortho")


def method_of_ones_own(layer: Any, *names: str) -> str | None:
    """Returns the first of the methods that neither Keras nor this package defines."""
    for name in names:
        owner = next((cls for cls in type(layer).__mro__ if name in vars(cls)), None)
        if owner and owner.__module__.partition(".")[0] not in _KNOWN:
            return name
    return None
