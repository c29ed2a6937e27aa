r"""MNIST, a row (28 steps) or a quarter of one (112) a step.

    python examples/sequence_mnist.py --model svdrnn --preset paper \
        --out out/sequence-mnist

An epoch takes seconds on two cores.
"""

import keras

from experiments.layers import make_layer
from experiments.optimizers import make_optimizer
from experiments.options import plain_errors, read_task
from experiments.runs import fit
from keras_ortho.metrics import ErrorRate
from keras_ortho.tasks import pixels


@plain_errors()
def main() -> None:
    """Builds the network, trains it, and writes what came of it."""
    settings = read_task("sequence-mnist", __doc__)
    keras.utils.set_random_seed(settings.seed)
    layer = make_layer(settings.model, settings.units, settings.arguments)
    task = pixels.mnist(steps=settings.length, **settings.data)
    inputs = keras.Input((settings.length, 784 // settings.length))
    model = keras.Sequential([inputs, layer, keras.layers.Dense(10)])
    model.compile(
        make_optimizer(settings.rates, len(task.train)),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[ErrorRate()],
        jit_compile=settings.jit_compile or "auto",
    )
    fit(model, task, settings, "accuracy", baseline="most frequent class")


if __name__ == "__main__":
    main()
