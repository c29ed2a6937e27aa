"""Prediction of the next character on the Penn Treebank, in bits per character.

    python examples/char_ptb.py --model enrnn --preset paper --data-dir DATA --out OUT

Backpropagation is truncated to 50 characters, and the state is carried over from one
stretch to the next. An epoch of ENRNN takes 10 to 20 minutes on two cores; the paper
(Helfrich, dissertation, 2020, section 2.7) trains for 20. If the files in DATA are
missing, the error says where to get them.
"""

import keras
from keras import ops

from experiments.command import command
from experiments.layers import build
from experiments.optimizers import make_optimizer
from experiments.options import Settings
from experiments.runs import fit
from keras_ortho.layers import CarriedState
from keras_ortho.metrics import BitsPerCharacter
from keras_ortho.tasks import characters
from keras_ortho.tasks.pipeline import Task
from keras_ortho.training_callbacks import ResetStates

# These layers have both an embedding and a kernel. For ENRNN, the kernel behind the
# embedding is fixed to the identity, which equals a free kernel on one-hot characters.
EMBEDDED = (keras.layers.LSTM, keras.layers.GRU)


@command("char-ptb")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    # The order of the text does not depend on the seed.
    data = {name: value for name, value in settings.data.items() if name != "seed"}
    text = characters.load(unroll=settings.unroll, **data)
    shape = settings.batch_size, settings.unroll
    model, settings = build(
        lambda layer: network(layer, text.num_classes, shape),
        settings,
        return_sequences=True,
        return_state=True,
    )
    model.compile(
        make_optimizer(settings.rates, len(text.train)),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[BitsPerCharacter()],
        jit_compile=settings.jit_compile or "auto",
    )
    fit(
        model,
        Task(text.train, text.valid, text.test, passes=text.train),
        settings,
        "bits per character",
        log=False,
        callbacks=[ResetStates(every=len(text.train))],
        test_callbacks=[ResetStates()],
    )


def network(
    layer: keras.layers.Layer, num_classes: int, shape: tuple[int, int]
) -> keras.Model:
    """Makes the network, from a batch of characters to the logits of the next ones.

    An LSTM or GRU has a trained embedding with as many dimensions as units; other
    layers read one-hot characters. The state is carried over from batch to batch.
    """
    inputs = keras.Input(batch_shape=shape, dtype="int32")
    if isinstance(layer, EMBEDDED):
        features = keras.layers.Embedding(num_classes, layer.units)(inputs)
    else:
        features = ops.one_hot(inputs, num_classes)
    outputs = keras.layers.Dense(num_classes)(CarriedState(layer)(features))
    return keras.Model(inputs, outputs)


if __name__ == "__main__":
    main()
