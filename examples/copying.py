"""The copying problem: repeat ten symbols after a long pause.

    python examples/copying.py --model scornn --preset paper --out out/copying

At T = 1 000, an update with the papers' batch size of 20 takes about 0.1 s on two
cores.
"""

import keras

from experiments.command import command
from experiments.layers import build
from experiments.optimizers import make_optimizer
from experiments.options import Settings
from experiments.runs import fit
from keras_ortho.tasks import copying


@command("copying")
def main(settings: Settings) -> None:
    """Builds and trains the network, and writes the results."""
    task = copying.load(settings.length, **{"valid_size": 200, **settings.data})

    def network(layer: keras.layers.Layer) -> keras.Model:
        # Ten symbols, the pause, and ten time steps to repeat them.
        inputs = keras.Input((settings.length + 20, 10))
        return keras.Sequential([inputs, layer, keras.layers.Dense(task.num_classes)])

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
