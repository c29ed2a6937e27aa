r"""CIFAR-10, a row a step, and then noise up to 1 000 steps.

    python examples/noise_padded_cifar10.py --model antisymmetric --preset paper \
        --out out/noise-padded-cifar10

Training images get new noise in each epoch; --fixed-noise keeps it, and a
network may then learn the noise. run.json tells, as "controls", how much it did.
An update of the paper's batch of 128 at n = 256 takes about a second on two cores.
"""

import keras

from experiments.building import build
from experiments.command import command
from experiments.runs import fit_classifier
from experiments.settings import Settings
from keras_ortho.tasks import pixels


@command("noise-padded-cifar10")
def main(settings: Settings) -> None:
    """Builds the network, trains it, and writes what came of it."""
    task = pixels.cifar10(
        form="noise-padded", fixed_noise=settings.fixed_noise, **settings.data
    )

    def network(layer: keras.layers.Layer) -> keras.Model:
        return keras.Sequential(
            [keras.Input((1000, 96)), layer, keras.layers.Dense(10)]
        )

    model, settings = build(network, settings)
    fit_classifier(model, task, settings)


if __name__ == "__main__":
    main()
