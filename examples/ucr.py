"""Classification of time series from the UCR archive.

    python examples/ucr.py --model svdrnn --name ECG200 --data-dir UCR --out out/ucr

Each data set takes seconds to minutes on two cores.
"""

import keras

from experiments.command import command
from experiments.layers import build
from experiments.options import Settings
from experiments.runs import fit_classifier
from keras_ortho.tasks import ucr


@command("ucr")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    task = ucr.load(settings.name, **settings.data)

    def network(layer: keras.layers.Layer) -> keras.Model:
        inputs = keras.Input(task.train.element_spec[0].shape[1:])
        return keras.Sequential([inputs, layer, keras.layers.Dense(task.num_classes)])

    model, settings = build(network, settings)
    fit_classifier(model, task, settings)


if __name__ == "__main__":
    main()
