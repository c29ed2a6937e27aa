"""CIFAR-10, one pixel per time step.

    python examples/pixel_cifar10.py --model antisymmetric --preset paper --out out

At n = 256, an update with the paper's batch size of 128 takes about a second on two
cores.
"""

import keras

from experiments.command import command
from experiments.layers import build
from experiments.options import Settings
from experiments.runs import fit_classifier
from keras_ortho.tasks import pixels


@command("pixel-cifar10")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    task = pixels.cifar10(form="pixels", **settings.data)

    def network(layer: keras.layers.Layer) -> keras.Model:
        return keras.Sequential([keras.Input((1024, 3)), layer, keras.layers.Dense(10)])

    model, settings = build(network, settings)
    fit_classifier(model, task, settings)


if __name__ == "__main__":
    main()
