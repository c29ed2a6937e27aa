"""The recurrent layers of a model, and parts of their states."""

from typing import Any

import keras
from keras import tree

from keras_ortho.keras_internals import layers_within


def recurrent_layers(model: keras.layers.Layer) -> list[keras.layers.RNN]:
    """Returns all recurrent layers, in models and wrappers at any depth."""
    if not model.built:
        raise ValueError(
            "`model` must be built: give it an `Input`, or call it once. "
            f"Received: {model.name} with built=False"
        )
    layers = [
        layer for layer in layers_within(model) if isinstance(layer, keras.layers.RNN)
    ]
    if not layers:
        raise ValueError(
            "`model` must contain a recurrent layer, a `keras.layers.RNN` or one "
            f"derived from it. Received: {model.name} with none"
        )
    return layers


def find_layer(
    model: keras.layers.Layer, layer: str | keras.layers.RNN | None
) -> keras.layers.RNN:
    """Returns the recurrent layer, or the only one if `layer` is `None`."""
    layers = recurrent_layers(model)
    names = ", ".join(repr(each.name) for each in layers)
    chosen = [each for each in layers if layer in (None, each.name) or each is layer]
    if not chosen:
        name = layer if isinstance(layer, str) else getattr(layer, "name", layer)
        raise ValueError(
            f"`layer` must be a recurrent layer of the model: {names}. "
            f"Received: layer={name!r}"
        )
    if len(chosen) > 1:
        raise ValueError(
            f"`layer` must name one of the recurrent layers of the model: {names}. "
            f"Received: layer={layer!r}"
        )
    for outer in layers_within(model):
        if isinstance(outer, keras.layers.TimeDistributed) and any(
            inner is chosen[0] for inner in layers_within(outer)
        ):
            raise ValueError(
                "`layer` must not be inside `TimeDistributed`, which calls it several "
                f"times. Received: layer={chosen[0].name!r} in {outer.name!r}"
            )
    return chosen[0]


def entries(layer: keras.layers.RNN, state: int | None, units: slice | None) -> slice:
    """Locates a state, or some of its units, in the concatenation of all states.

    In `StackedRNNCells`, the states of each cell follow those of the cell before.
    """
    sizes = [int(size) for size in tree.flatten(layer.cell.state_size)]
    known = range(-len(sizes), len(sizes))
    if state is not None and (isinstance(state, bool) or state not in known):
        raise ValueError(
            f"`state` must be `None` or an integer less than {len(sizes)}, the number "
            f"of states of {layer.name}. Received: state={state!r}"
        )
    if units is not None and not (isinstance(units, slice) and (units.step or 1) > 0):
        raise ValueError(
            f"`units` must be a slice with a positive step. Received: units={units!r}"
        )
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    places: Any = range(ends[-1])
    if state is not None:
        places = places[ends[state] - sizes[state] : ends[state]]
    chosen = places if units is None else places[units]
    if not chosen:
        raise ValueError(
            f"`units` must select some of the {len(places)} units. Received: "
            f"units={units!r}"
        )
    return slice(chosen[0], chosen[-1] + 1, chosen.step)
