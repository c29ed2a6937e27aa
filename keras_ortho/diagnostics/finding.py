"""The recurrent layers of a model."""

import keras

from keras_ortho.keras_internals import layers_within


def recurrent_layers(model: keras.layers.Layer) -> list[keras.layers.RNN]:
    """Finds all recurrent layers of a model, including those in nested models.

    Args:
        model: A built model, or a built recurrent layer.

    Returns:
        List of the layers, in models and wrappers at any depth. At least one.

    Raises:
        ValueError: If the model is not built, or has no recurrent layer.

    Example:

    >>> model = keras.Sequential([keras.Input((3, 2)), keras.layers.LSTM(4)])
    >>> [layer.name for layer in recurrent_layers(model)]
    ['lstm']
    """
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
    """Finds the recurrent layer that an argument `layer` specifies.

    Args:
        model: A built model, or a built recurrent layer.
        layer: The layer, or its name, which must be unique. `None` if the model has
            only one recurrent layer.

    Returns:
        The layer.

    Raises:
        ValueError: If the model has no such recurrent layer or several, or if it is
            within `TimeDistributed`.

    Example:

    >>> find_layer(model, None)
    <ScoRNN name=sco_rnn, built=True>
    """
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
