"""Builds the network of a run, which may match the size of another."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import keras

from experiments.layers import Units, allowed_size, make_layer, trained_parameters
from experiments.settings import Settings
from keras_ortho.baselines import closest_size

# Units at each size, for layers whose units are not the size itself.
_UNITS: dict[str, Callable[[int], Units]] = {
    # In the ratio 374 to 94, as in the dissertation's network for speech.
    "enrnn": lambda size: (size, max(1, round(size * 94 / 374))),
    "eurnn": lambda size: 2 * size,
    # As the FFT style needs them.
    "goru-paper": lambda size: 2 ** (size - 1).bit_length(),
}


def build(
    network: Callable[[keras.layers.Layer], keras.Model],
    settings: Settings,
    **returns: Any,
) -> tuple[keras.Model, Settings]:
    """Builds a network around the recurrent layer of the settings.

    The initial weights depend on the seed only, not on what was built before.
    """

    def sized(units: Units) -> keras.Model:
        keras.utils.set_random_seed(settings.seed)
        own = settings.model, units, settings.arguments
        return network(make_layer(*own, **returns))

    if settings.match is None:
        return sized(settings.units), settings
    other = make_layer(*settings.matched, **returns)
    parameters = trained_parameters(network(other))
    units = closest_units(
        settings.model,
        parameters,
        lambda units: trained_parameters(sized(units)),
        settings.arguments,
    )
    return sized(units), Settings(**{**vars(settings), "units": units})


def closest_units(
    model: str,
    parameters: int,
    count: Callable[[Any], int],
    arguments: Mapping[str, Any] = MappingProxyType({}),
) -> Units:
    """Finds the units that bring the number of parameters closest to a given one.

    The units are any positive number; for EURNN an even one, for GORU of the paper a
    power of two; for ENRNN, long-term and short-term units in the ratio 374 to 94.
    Their size is a multiple of the number of heads, and at least the number of
    reflections or negative ones.
    """
    of_size = _UNITS.get(model, lambda size: size)

    def units_of(size: int) -> Units:
        return of_size(allowed_size(size, arguments))

    return units_of(closest_size(lambda size: count(units_of(size)), parameters))
