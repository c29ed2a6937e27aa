"""Addition of numbers as text: reads "12+345" backwards, and writes "357".

    python examples/addition.py --model scornn --epochs 20 --out out/addition

The network is that of the keras.io example: one recurrent layer reads, and another of
the same kind writes. An epoch of 1 407 updates takes a few seconds on two cores.
"""

import keras

from experiments.command import command
from experiments.layers import build
from experiments.options import Settings
from experiments.runs import fit_classifier
from keras_ortho.tasks import addition


@command("addition")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    digits = settings.digits
    task = addition.load(digits, **settings.data)

    def network(reader: keras.layers.Layer) -> keras.Model:
        config = {**reader.get_config(), "name": "writer", "return_sequences": True}
        return keras.Sequential(
            [
                keras.Input((2 * digits + 1, task.num_classes)),
                reader,
                keras.layers.RepeatVector(digits + 1),
                type(reader).from_config(config),
                keras.layers.Dense(task.num_classes),
            ]
        )

    model, settings = build(network, settings)
    fit_classifier(model, task, settings)


if __name__ == "__main__":
    main()
