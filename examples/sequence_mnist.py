r"""MNIST, a row (28 steps) or a quarter of one (112) a step.

    python examples/sequence_mnist.py --model svdrnn --preset paper \
        --out out/sequence-mnist

An epoch takes seconds on two cores.
"""

import keras

from experiments.layers import make_layer
from experiments.options import plain_errors, read_task
from experiments.runs import fit_classifier
from keras_ortho.tasks import pixels


@plain_errors()
def main() -> None:
    """Builds the network, trains it, and writes what came of it."""
    settings = read_task("sequence-mnist", __doc__)
    keras.utils.set_random_seed(settings.seed)
    layer = make_layer(settings.model, settings.units, settings.arguments)
    task = pixels.mnist(steps=settings.length, **settings.data)
    inputs = keras.Input((settings.length, 784 // settings.length))
    model = keras.Sequential([inputs, layer, keras.layers.Dense(10)])
    fit_classifier(model, task, settings)


if __name__ == "__main__":
    main()
