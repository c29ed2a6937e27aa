"""MNIST, one row (28 time steps) or a quarter of a row (112) per time step.

    python examples/sequence_mnist.py --model svdrnn --preset paper --out out/rows

An epoch takes seconds on two cores.
"""

from experiments.command import command
from experiments.options import Settings
from experiments.runs import classify
from keras_ortho.tasks import pixels


@command("sequence-mnist")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    classify(pixels.mnist(steps=settings.length, **settings.data), settings)


if __name__ == "__main__":
    main()
