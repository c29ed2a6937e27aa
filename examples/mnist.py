"""MNIST, one pixel per time step, in row order.

    python examples/mnist.py --model scornn --preset paper --out out/mnist

An epoch takes two minutes on two cores at n = 170; the papers train for 70 epochs.
"""

from experiments.command import command
from experiments.options import Settings
from experiments.runs import classify
from keras_ortho.tasks import pixels


@command("mnist")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    classify(pixels.mnist(steps=784, **settings.data), settings)


if __name__ == "__main__":
    main()
