"""Addition of numbers as text: "12+345" is read backwards, "357" is written.

    python examples/addition.py --model scornn --epochs 20 --out out/addition

The network of keras.io's example: one layer reads, another of its kind writes. An epoch
of 1 407 updates takes some seconds on two cores.
"""

import keras

from experiments.building import build
from experiments.command import command
from experiments.runs import fit_classifier
from experiments.settings import Settings
from keras_ortho.tasks import addition


@command("addition")
def main(settings: Settings) -> None:
    """Builds the network, trains it, and writes what came of it."""
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
