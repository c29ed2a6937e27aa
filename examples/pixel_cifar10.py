"""CIFAR-10, one pixel per time step.

    python examples/pixel_cifar10.py --model antisymmetric --preset paper --out out

At n = 256, an update with the paper's batch size of 128 takes about a second on two
cores.
"""

from experiments.command import command
from experiments.options import Settings
from experiments.runs import classify
from keras_ortho.tasks import pixels


@command("pixel-cifar10")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    classify(pixels.cifar10(form="pixels", **settings.data), settings)


if __name__ == "__main__":
    main()
