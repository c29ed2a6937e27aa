"""The adding problem: the sum of two marked numbers of a long sequence.

    python examples/adding.py --model scornn --preset paper --out out/adding

An epoch of 2 000 updates takes a minute on two cores at T = 200, three at T = 750.
"""

import keras

from experiments.layers import make_layer
from experiments.optimizers import make_optimizer
from experiments.options import plain_errors, read_task
from experiments.runs import fit
from keras_ortho.tasks import adding


@plain_errors()
def main() -> None:
    """Builds the network, trains it, and writes what came of it."""
    settings = read_task("adding", __doc__)
    keras.utils.set_random_seed(settings.seed)
    layer = make_layer(settings.model, settings.units, settings.arguments)
    task = adding.load(settings.length, **settings.data)
    model = keras.Sequential(
        [keras.Input((settings.length, 2)), layer, keras.layers.Dense(1)]
    )
    model.compile(
        make_optimizer(settings.rates, len(task.train)),
        "mse",
        jit_compile=settings.jit_compile or "auto",
    )
    fit(model, task, settings, "mse", baseline="always 1")


if __name__ == "__main__":
    main()
