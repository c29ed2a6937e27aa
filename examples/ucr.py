r"""Classification of the time series of the UCR archive.

    python examples/ucr.py --model svdrnn --preset paper --name ECG200 \
        --data-dir UCRArchive_2018 --out out/ucr

A data set takes seconds to minutes on two cores.
"""

import keras

from experiments.layers import make_layer
from experiments.options import plain_errors, read_task
from experiments.runs import fit_classifier
from keras_ortho.tasks import ucr


@plain_errors()
def main() -> None:
    """Builds the network, trains it, and writes what came of it."""
    settings = read_task("ucr", __doc__)
    keras.utils.set_random_seed(settings.seed)
    layer = make_layer(settings.model, settings.units, settings.arguments)
    task = ucr.load(settings.name, **settings.data)
    inputs = keras.Input(task.train.element_spec[0].shape[1:])
    model = keras.Sequential([inputs, layer, keras.layers.Dense(task.num_classes)])
    fit_classifier(model, task, settings)


if __name__ == "__main__":
    main()
