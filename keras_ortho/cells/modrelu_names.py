"""Names of modReLU in the arguments of a cell and in its config.

A cell calls modReLU `"modrelu"`. With complex units, `"smoothed_modrelu"` is the
variant of the authors' code, which is smoothed at zero. In the configs of cells with
complex units, `"modrelu"` once meant the smoothed variant and always will, so that
saved models keep their outputs; there the exact function is `"exact_modrelu"`.
"""

from typing import Any

from keras_ortho.activations import complex_modrelu, modrelu, smoothed_modrelu

_EXACT, _SMOOTHED, _EXACT_IN_CONFIG = "modrelu", "smoothed_modrelu", "exact_modrelu"


def is_modrelu(activation: Any) -> bool:
    """Checks whether the activation of a cell is modReLU, which includes the bias.

    Args:
        activation: The `activation` attribute of the cell, made by `known_name`.

    Returns:
        Whether it is a name of modReLU.
    """
    return isinstance(activation, str) and activation in (_EXACT, _SMOOTHED)


def known_name(activation: Any, complex_state: bool) -> Any:
    """Converts modReLU to the name that a cell uses for it.

    Args:
        activation: The argument of a cell: a name of modReLU, one of its functions, or
            another activation.
        complex_state: Whether the units are complex.

    Returns:
        `"modrelu"`, `"smoothed_modrelu"`, or another activation unchanged.

    Raises:
        ValueError: If the activation is the smoothed modReLU and the units are real.
    """
    if activation is smoothed_modrelu:
        activation = _SMOOTHED
    elif activation in (modrelu, complex_modrelu, _EXACT_IN_CONFIG):
        activation = _EXACT
    if activation == _SMOOTHED and not complex_state:
        raise ValueError(
            f"'{_SMOOTHED}' is for complex units; for real units use '{_EXACT}'. "
            f"Received: activation={activation!r}"
        )
    return activation


def to_config(activation: Any, complex_state: bool) -> Any:
    """Converts the activation of a cell to the name in its config.

    Args:
        activation: The activation, serialized by `keras_ortho.configs.serialize`.
        complex_state: Whether the units are complex.

    Returns:
        The value for the config.
    """
    return _EXACT_IN_CONFIG if complex_state and activation == _EXACT else activation


def from_config(config: dict[str, Any], complex_state: bool) -> dict[str, Any]:
    """Converts the name of modReLU in a config to the argument of a cell.

    Args:
        config: Config of a cell or a layer.
        complex_state: Whether the units are complex.

    Returns:
        The config with `activation` as the argument.
    """
    if complex_state and config.get("activation") == _EXACT:
        return {**config, "activation": _SMOOTHED}
    return config
