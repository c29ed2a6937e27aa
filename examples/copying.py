"""The copying problem: ten symbols to repeat after a long pause.

    python examples/copying.py --model scornn --preset paper --out out/copying

An update of the papers' batch of 20 at T = 1 000 takes about 0.1 s on two cores.
"""

import keras

from experiments.building import build
from experiments.command import command
from experiments.optimizers import make_optimizer
from experiments.runs import fit
from experiments.settings import Settings
from keras_ortho.tasks import copying


@command("copying")
def main(settings: Settings) -> None:
    """Builds the network, trains it, and writes what came of it."""
    task = copying.load(settings.length, **{"valid_size": 200, **settings.data})

    def network(layer: keras.layers.Layer) -> keras.Model:
        # Ten symbols, the pause, and as many steps to give them back.
        inputs = keras.Input((settings.length + 20, 10))
        return keras.Sequential(
            [inputs, layer, keras.layers.Dense(copying.NUM_CLASSES)]
        )

    model, settings = build(network, settings, return_sequences=True)
    model.compile(
        make_optimizer(settings.rates, len(task.train)),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=settings.jit_compile or "auto",
    )
    fit(
        model,
        task,
        settings,
        "cross-entropy",
        tests_each_time=False,
        baseline="no memory",
    )


if __name__ == "__main__":
    main()
