"""The network that predicts the next character of a text."""

import keras
from keras import ops

from keras_ortho.layers import CarriedState

# These have a table of characters, and the kernel behind it. ENRNN's kernel behind
# its table is fixed to the identity; of one-hot characters that is its free kernel.
EMBEDDED = (keras.layers.LSTM, keras.layers.GRU)


def text_network(
    layer: keras.layers.Layer, num_classes: int, *, batch_size: int, unroll: int
) -> keras.Model:
    """Makes the network: from characters to the logits of the next ones.

    The characters of an LSTM or GRU go through a trained table of as many numbers as
    there are units; those of other layers are one-hot. The state is carried on from
    batch to batch.

    Args:
        layer: The recurrent layer, which returns its sequences and its state.
        num_classes: Number of symbols.
        batch_size: Rows that are read side by side.
        unroll: Characters of a row in a batch.

    Returns:
        The model, built.

    Example:
    >>> layer = keras.layers.GRU(8, return_sequences=True, return_state=True)
    >>> text_network(layer, 50, batch_size=4, unroll=10).output_shape
    (4, 10, 50)
    """
    inputs = keras.Input(batch_shape=(batch_size, unroll), dtype="int32")
    if isinstance(layer, EMBEDDED):
        features = keras.layers.Embedding(num_classes, layer.units)(inputs)
    else:
        features = ops.one_hot(inputs, num_classes)
    outputs = keras.layers.Dense(num_classes)(CarriedState(layer)(features))
    return keras.Model(inputs, outputs)
