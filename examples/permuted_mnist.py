"""MNIST, one pixel per time step, in a fixed random order.

    python examples/permuted_mnist.py --model scornn --preset paper --out out/permuted

An epoch takes two minutes on two cores at n = 170; the papers train for 70 epochs.
"""

import keras

from experiments.command import command
from experiments.layers import build
from experiments.options import Settings
from experiments.runs import fit_classifier
from keras_ortho.tasks import pixels


@command("permuted-mnist")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    task = pixels.mnist(steps=784, permuted=True, **settings.data)

    def network(layer: keras.layers.Layer) -> keras.Model:
        return keras.Sequential([keras.Input((784, 1)), layer, keras.layers.Dense(10)])

    model, settings = build(network, settings)
    fit_classifier(model, task, settings)


if __name__ == "__main__":
    main()
