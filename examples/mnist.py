"""MNIST, a pixel a step, in the order of the rows.

    python examples/mnist.py --model scornn --preset paper --out out/mnist

An epoch takes two minutes on two cores at n = 170; the papers run 70.
"""

import keras

from experiments.layers import make_layer
from experiments.options import plain_errors, read_task
from experiments.runs import fit_classifier
from keras_ortho.tasks import pixels


@plain_errors()
def main() -> None:
    """Builds the network, trains it, and writes what came of it."""
    settings = read_task("mnist", __doc__)
    keras.utils.set_random_seed(settings.seed)
    layer = make_layer(settings.model, settings.units, settings.arguments)
    task = pixels.mnist(steps=784, **settings.data)
    model = keras.Sequential([keras.Input((784, 1)), layer, keras.layers.Dense(10)])
    fit_classifier(model, task, settings)


if __name__ == "__main__":
    main()
