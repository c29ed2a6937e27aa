"""What JAX compiles for several devices: each computes with its share of the batch.

And a run that is resumed on them ends as one that was not ended.
"""

import os

import keras
import pytest

from tests.modules import run_python

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="runs JAX in another process"
)

# Batches of 8 that are compiled, and one of 7 that is not and cannot be divided.
PROGRAM = """
import re
import sys

import jax
import keras
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from keras_ortho import GORU, ScoRNN, ScuRNN
from keras_ortho.tasks import adding
from keras_ortho.training import train

random = np.random.default_rng(0)
x, y = random.normal(size=(16, 112, 2)), random.normal(size=(16, 1))


def exchanges(layer):
    masking = keras.layers.Masking()
    model = keras.Sequential([keras.Input(x.shape[1:]), masking, layer])
    weights = [v.value for v in model.trainable_variables]
    others = [v.value for v in model.non_trainable_variables]
    divided = NamedSharding(weights[0].sharding.mesh, PartitionSpec("batch"))
    inputs = jax.device_put(x[:8].astype("float32"), divided)

    def loss(weights, inputs):
        return model.stateless_call(weights, others, inputs, training=True)[0].sum()

    program = jax.jit(jax.grad(loss)).lower(weights, inputs).compile().as_text()
    return re.findall(r" ((?:all|collective)-[a-z-]+|reduce-scatter)\\(", program)


def trained(devices):
    keras.distribution.set_distribution(devices)
    keras.utils.set_random_seed(0)
    given = {"dtype": "float64"}
    parts = ScoRNN(8, **given), keras.layers.Dense(1, use_bias=False, **given)
    model = keras.Sequential([keras.Input(x.shape[1:], **given), *parts])
    model.compile(keras.optimizers.SGD(1e-3), "mse")
    if devices:
        _, matrix = devices.device_mesh.shape
        values = [v.value for v in model.layers[0].trainable_variables]
        assert [v.size / v.addressable_data(0).size for v in values] == [matrix] * 3
    before = model.get_weights()
    for _ in range(5):
        model.train_on_batch(x[:8], y[:8])
    moved = [a - b for a, b in zip(model.get_weights(), before)]
    return [float(v) for part in (*moved, model(x[:7])) for v in np.ravel(part)]


one = trained(None)
for shape in ((4, 1), (2, 2), (1, 4)):
    mesh = keras.distribution.DeviceMesh(shape, ("batch", "model"))
    layout = keras.distribution.LayoutMap(mesh)
    layout[".*cell.*/kernel"] = (None, "model")
    layout[".*cell.*/recurrent_skew"] = layout[".*cell.*/bias"] = ("model",)
    distribution = keras.distribution.ModelParallel(
        layout_map=layout, batch_dim_name="batch", auto_shard_dataset=False
    )
    # Sums in another order, 112 steps long, in float64. The losses that Keras reports
    # would not do: they are rounded to some 1e-9.
    np.testing.assert_allclose(trained(distribution), one, rtol=1e-9)
keras.distribution.set_distribution(
    keras.distribution.DataParallel(auto_shard_dataset=False)
)
sequences = ScoRNN(6, return_sequences=True, recurrent_dropout=0.5)
for layer in sequences, ScuRNN(4, heads=2, recompute=True), GORU(8):
    found = exchanges(layer)
    assert found == ["all-reduce"], found


def resumed(folder, *epochs):
    task = adding.load(5, batch_size=8, train_size=40, valid_size=16, test_size=8)
    for number in epochs:
        keras.utils.set_random_seed(0)
        layers = ScoRNN(6, dropout=0.1, seed=1), keras.layers.Dense(1)
        model = keras.Sequential([keras.Input((5, 2)), *layers])
        model.compile("adam", "mse")
        given = {"epochs": number, "validation_data": task.valid, "save_seconds": 0.0}
        train(model, task.passes, f"{sys.argv[1]}/{folder}", **given, progress=False)
    return np.concatenate([w.ravel() for w in model.get_weights()])


np.testing.assert_array_equal(resumed("a", 1, 3), resumed("b", 3))
print("done")
"""


@pytest.mark.slow
def test_devices_compute_as_one_and_exchange_gradients_alone(tmp_path):
    variables = {"KERAS_BACKEND": "jax", "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    variables["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    said = run_python("-c", PROGRAM, tmp_path, env=os.environ | variables)
    assert said.endswith("done\n")
