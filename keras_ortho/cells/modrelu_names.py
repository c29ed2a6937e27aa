"""The names of modReLU: as a cell takes them, and as its config holds them.

A cell knows modReLU as `"modrelu"`, and with complex units also as
`"smoothed_modrelu"`, which is how the authors' code guards it at zero. In a config of
complex units `"modrelu"` once meant the smoothed one, and means it there for ever, so
that what was saved gives the values that it gave; the exact one is `"exact_modrelu"`.
"""

from typing import Any

from keras_ortho.activations import complex_modrelu, modrelu, smoothed_modrelu

_EXACT, _SMOOTHED, _EXACT_IN_CONFIG = "modrelu", "smoothed_modrelu", "exact_modrelu"


def is_modrelu(activation: Any) -> bool:
    """Tells whether the activation of a cell is modReLU, whose bias is inside.

    Args:
        activation: The cell's attribute, what `known_name` made.

    Returns:
        Whether it is one of its names.
    """
    return isinstance(activation, str) and activation in (_EXACT, _SMOOTHED)


def known_name(activation: Any, complex_state: bool) -> Any:
    """Gives modReLU the name by which a cell knows it.

    Args:
        activation: Argument of a cell: a name of modReLU, one of its functions, or
            another activation.
        complex_state: Whether the units are complex.

    Returns:
        `"modrelu"`, `"smoothed_modrelu"`, or the other activation as it is.

    Raises:
        ValueError: If it is the smoothed one and the units are real.
    """
    if activation is smoothed_modrelu:
        activation = _SMOOTHED
    elif activation in (modrelu, complex_modrelu, _EXACT_IN_CONFIG):
        activation = _EXACT
    if activation == _SMOOTHED and not complex_state:
        raise ValueError(
            "The smoothed modReLU is one of complex units; of real ones it is "
            f"'{_EXACT}'. Received: activation={activation!r}"
        )
    return activation


def to_config(activation: Any, complex_state: bool) -> Any:
    """Gives the activation of a cell the name that its config holds.

    Args:
        activation: The cell's, as `keras_ortho.configs.serialize` has it.
        complex_state: Whether the units are complex.

    Returns:
        What a config holds.
    """
    return _EXACT_IN_CONFIG if complex_state and activation == _EXACT else activation


def from_config(config: dict[str, Any], complex_state: bool) -> dict[str, Any]:
    """Gives modReLU in a config the name that its argument has.

    Args:
        config: Config of a cell or a layer.
        complex_state: Whether the units are complex.

    Returns:
        The same with the argument `activation`.
    """
    if complex_state and config.get("activation") == _EXACT:
        return {**config, "activation": _SMOOTHED}
    return config
