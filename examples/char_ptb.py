"""The next character of the Penn Treebank, in bits per character.

    python examples/char_ptb.py --model enrnn --preset paper --data-dir DATA --out OUT

Back-propagation through 50 characters at a time, the state carried on. An epoch, of
20 in the paper (Helfrich, dissertation, 2020, section 2.7), takes ENRNN 10 to 20
minutes on two cores. The files in DATA are not downloaded: without them the error says
where to get them.
"""

import keras
from keras import ops

from experiments.building import build
from experiments.command import command
from experiments.optimizers import make_optimizer
from experiments.runs import fit
from experiments.settings import Settings
from keras_ortho.layers import CarriedState
from keras_ortho.metrics import BitsPerCharacter
from keras_ortho.tasks import characters
from keras_ortho.tasks.pipeline import Task
from keras_ortho.training_callbacks import ResetStates

# These have a table of characters, and the kernel behind it. ENRNN's kernel behind
# its table is fixed to the identity; of one-hot characters that is its free kernel.
EMBEDDED = (keras.layers.LSTM, keras.layers.GRU)


@command("char-ptb")
def main(settings: Settings) -> None:
    """Builds the network, trains it, and writes what came of it."""
    if settings.distribute == "mirrored":
        raise ValueError(
            "The state that is carried on is that of a whole batch: train on several "
            "devices by --distribute data-parallel. Received: --distribute mirrored"
        )
    # The text has one order, whatever the seed.
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
    """Makes the network: from a batch of characters to the logits of the next ones.

    The characters of an LSTM or GRU go through a trained table of as many numbers as
    there are units; those of other layers are one-hot. The state is carried on from
    batch to batch.
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
