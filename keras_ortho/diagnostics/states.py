"""Selection of a part of a recurrent layer's state for a diagnostic."""

from typing import Any

import keras
from keras import tree


def entries(layer: keras.layers.RNN, state: int | None, units: slice | None) -> slice:
    """Locates a state, or some of its units, in the concatenation of all states.

    Args:
        layer: The recurrent layer.
        state: Index of the state. In an LSTM, 0 is `h` and 1 is `c`; in
            `StackedRNNCells`, the states of each cell follow those of the cell before.
            `None` selects all states, concatenated.
        units: Slice that selects units of the state. `None` selects all units.

    Returns:
        Slice of the concatenated states, not empty.

    Raises:
        ValueError: If there is no such state, or `units` is not a slice with a
            positive step or selects no units.

    Example:

    >>> entries(keras.layers.LSTM(4), 1, slice(2, None))
    slice(6, 8, 1)
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
