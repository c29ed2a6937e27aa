"""Layers of different kinds at sizes that can be compared: of as many parameters."""

from collections.abc import Callable, Mapping
from typing import Any

from experiments.layers import Units, make_layer, trained_parameters
from keras_ortho.baselines import closest_size


def _of_enrnn(size: int) -> tuple[int, int]:
    # As 374 and 94 of the dissertation's network for speech.
    return size, max(1, round(size * 94 / 374))


# Units of the network of each size, where these are not the size itself.
_UNITS: dict[str, Callable[[int], Units]] = {
    "enrnn": _of_enrnn,
    "eurnn": lambda size: 2 * size,
    "goru": lambda size: 2 * size,
}


def count_parameters(
    model: str,
    units: Units,
    arguments: Mapping[str, Any],
    features: int,
    outputs: int,
) -> int:
    """Counts the trained parameters of a recurrent layer and of a dense one after it.

    Args:
        model: Name of the layer.
        units: Its units; for ENRNN long-term and short-term ones.
        arguments: Arguments of the layer besides.
        features: Number of inputs.
        outputs: Number of outputs of the dense layer.

    Returns:
        Their number.

    Raises:
        ValueError: If there is no such layer, or it takes no such argument.

    Example:
    >>> count_parameters("scornn", 224, {}, features=129, outputs=129)
    83121
    """
    layer = make_layer(model, units, arguments)
    layer.build((None, None, features))
    width = layer.compute_output_shape((None, 1, features))[-1]
    recurrent = trained_parameters(layer)
    return recurrent + (width + 1) * outputs


def closest_units(
    model: str,
    parameters: int,
    arguments: Mapping[str, Any],
    features: int,
    outputs: int,
) -> Units:
    """Finds the units for which a network has about as many parameters as another.

    Args:
        model: Name of the layer.
        parameters: The number to come near to.
        arguments: Arguments of the layer besides its units.
        features: Number of inputs.
        outputs: Number of outputs of the dense layer after it.

    Returns:
        The units whose `count_parameters` is nearest, the fewer of two: any positive
        number, an even one for EURNN and GORU, and for ENRNN long-term and
        short-term units as 374 to 94.

    Raises:
        ValueError: If there is no such layer, or it takes no such argument.

    Example:
    >>> closest_units("lstm", 83_121, {}, features=129, outputs=129)
    84
    """
    units_of = _UNITS.get(model, lambda size: size)

    def count(size: int) -> int:
        return count_parameters(model, units_of(size), arguments, features, outputs)

    return units_of(closest_size(count, parameters))
