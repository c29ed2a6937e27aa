r"""CIFAR-10, one row per time step, followed by noise up to 1 000 time steps.

    python examples/noise_padded_cifar10.py --model antisymmetric --preset paper \
        --out out/noise-padded

Training images get new noise in each epoch. With `--fixed-noise` they keep theirs, and
a network may then learn the noise; "controls" in run.json shows how much it did. At
n = 256, an update with the paper's batch size of 128 takes about a second on two cores.
"""

from experiments.command import command
from experiments.options import Settings
from experiments.runs import classify
from keras_ortho.tasks import pixels


@command("noise-padded-cifar10")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    task = pixels.cifar10(
        form="noise-padded", fixed_noise=settings.fixed_noise, **settings.data
    )
    classify(task, settings)


if __name__ == "__main__":
    main()
