"""MNIST, one row (28 time steps) or a quarter of a row (112) per time step.

    python examples/sequence_mnist.py --model svdrnn --preset paper --out out/rows

An epoch takes seconds on two cores.
"""

import keras

from experiments.command import command
from experiments.layers import build
from experiments.options import Settings
from experiments.runs import fit_classifier
from keras_ortho.tasks import pixels


@command("sequence-mnist")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    task = pixels.mnist(steps=settings.length, **settings.data)

    def network(layer: keras.layers.Layer) -> keras.Model:
        inputs = keras.Input((settings.length, 784 // settings.length))
        return keras.Sequential([inputs, layer, keras.layers.Dense(10)])

    model, settings = build(network, settings)
    fit_classifier(model, task, settings)


if __name__ == "__main__":
    main()
