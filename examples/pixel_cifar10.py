r"""CIFAR-10, a pixel a step.

    python examples/pixel_cifar10.py --model antisymmetric --preset paper \
        --out out/pixel-cifar10

An update of the paper's batch of 128 at n = 256 takes about a second on two cores.
"""

import keras

from experiments.layers import make_layer
from experiments.options import plain_errors, read_task
from experiments.runs import fit_classifier
from keras_ortho.tasks import pixels


@plain_errors()
def main() -> None:
    """Builds the network, trains it, and writes what came of it."""
    settings = read_task("pixel-cifar10", __doc__)
    keras.utils.set_random_seed(settings.seed)
    layer = make_layer(settings.model, settings.units, settings.arguments)
    task = pixels.cifar10(form="pixels", **settings.data)
    model = keras.Sequential([keras.Input((1024, 3)), layer, keras.layers.Dense(10)])
    fit_classifier(model, task, settings)


if __name__ == "__main__":
    main()
