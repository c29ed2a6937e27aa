r"""CIFAR-10, a row a step, and then noise up to 1 000 steps.

    python examples/noise_padded_cifar10.py --model antisymmetric --preset paper \
        --out out/noise-padded-cifar10

The noise of a training image is another in each epoch; --fixed-noise keeps it, and a
network may then learn the noise. run.json tells, as "controls", how much it did.
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
    settings = read_task("noise-padded-cifar10", __doc__)
    keras.utils.set_random_seed(settings.seed)
    layer = make_layer(settings.model, settings.units, settings.arguments)
    task = pixels.cifar10(
        form="noise-padded", fixed_noise=settings.fixed_noise, **settings.data
    )
    model = keras.Sequential([keras.Input((1000, 96)), layer, keras.layers.Dense(10)])
    fit_classifier(model, task, settings)


if __name__ == "__main__":
    main()
