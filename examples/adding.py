"""The adding problem: sum the two marked numbers of a long sequence.

    python examples/adding.py --model scornn --preset paper --out out/adding

On two cores, an epoch of 2 000 updates takes one minute at T = 200 and three minutes
at T = 750.
"""

import keras

from experiments.command import command
from experiments.layers import build
from experiments.optimizers import make_optimizer
from experiments.options import Settings
from experiments.runs import fit
from keras_ortho.tasks import adding


@command("adding")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    task = adding.load(
        settings.length, shuffle=not settings.fixed_order, **settings.data
    )

    def network(layer: keras.layers.Layer) -> keras.Model:
        return keras.Sequential(
            [keras.Input((settings.length, 2)), layer, keras.layers.Dense(1)]
        )

    model, settings = build(network, settings)
    model.compile(
        make_optimizer(settings.rates, len(task.train)),
        "mse",
        jit_compile=settings.jit_compile or "auto",
    )
    fit(model, task, settings, "mse", baseline="always 1")


if __name__ == "__main__":
    main()
