r"""MNIST, a pixel a step, in one random order.

    python examples/permuted_mnist.py --model scornn --preset paper \
        --out out/permuted-mnist

An epoch takes two minutes on two cores at n = 170; the papers run 70.
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
    settings = read_task("permuted-mnist", __doc__)
    keras.utils.set_random_seed(settings.seed)
    layer = make_layer(settings.model, settings.units, settings.arguments)
    task = pixels.mnist(steps=784, permuted=True, **settings.data)
    model = keras.Sequential([keras.Input((784, 1)), layer, keras.layers.Dense(10)])
    model.compile(
        make_optimizer(settings.rates, len(task.train)),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[ErrorRate()],
        jit_compile=settings.jit_compile or "auto",
    )
    fit(model, task, settings, "accuracy", baseline="most frequent class")


if __name__ == "__main__":
    main()
