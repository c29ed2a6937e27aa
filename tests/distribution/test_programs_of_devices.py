"""What JAX compiles for several devices: each computes with its share of the batch."""

import json
import os

import keras
import numpy as np
import pytest

from tests.modules import run_python

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="runs JAX in another process"
)

EXCHANGES = """
import json
import re

import jax
import keras
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from keras_ortho import GORU, ScoRNN, ScuRNN

keras.distribution.set_distribution(
    keras.distribution.DataParallel(auto_shard_dataset=False)
)
BATCH, STEPS = 8, 112  # Two segments of the recurrence.
layers = {
    "scoRNN": ScoRNN(6),
    "all states": ScoRNN(6, return_sequences=True, recurrent_dropout=0.5),
    "scuRNN": ScuRNN(3),
    "heads": ScoRNN(6, heads=2, recompute=True),
    "gates": GORU(8),
}
found = {}
for name, layer in layers.items():
    masking = keras.layers.Masking()
    model = keras.Sequential([keras.Input((STEPS, 2)), masking, layer])
    weights = [v.value for v in model.trainable_variables]
    others = [v.value for v in model.non_trainable_variables]
    divided = NamedSharding(weights[0].sharding.mesh, PartitionSpec("batch"))
    x = jax.device_put(np.ones((BATCH, STEPS, 2), "float32"), divided)

    def loss(weights, x):
        return model.stateless_call(weights, others, x, training=True)[0].sum()

    program = jax.jit(jax.grad(loss)).lower(weights, x).compile().as_text()
    exchange = r" ((?:all|collective)-[a-z-]+|reduce-scatter)\\("
    found[name] = re.findall(exchange, program)
print(json.dumps(found))
"""

# Batches of 8 that are compiled, and one of 7 that is not and cannot be divided.
TRAINED = """
import json

import keras
import numpy as np

from keras_ortho import ScoRNN

keras.config.set_floatx("float64")
random = np.random.default_rng(0)
x, y = random.normal(size=(16, 112, 2)), random.normal(size=(16, 1))


def trained(devices):
    keras.distribution.set_distribution(devices)
    keras.utils.set_random_seed(0)
    output = keras.layers.Dense(1, use_bias=False)
    model = keras.Sequential([keras.Input(x.shape[1:]), ScoRNN(8), output])
    model.compile(keras.optimizers.SGD(1e-3), "mse")
    if devices:
        values = [v.value for v in model.layers[0].trainable_variables]
        parts = [v.size / v.addressable_data(0).size for v in values]
        assert parts == [devices.device_mesh.shape[1]] * 3, parts
    before = np.concatenate([w.ravel() for w in model.get_weights()])
    for _ in range(5):
        model.train_on_batch(x[:8], y[:8])
    after = np.concatenate([w.ravel() for w in model.get_weights()])
    return [*(after - before), *np.asarray(model(x[:7]))[:, 0]]


found = {"one device": trained(None)}
for batch, matrix in ((4, 1), (2, 2), (1, 4)):
    mesh = keras.distribution.DeviceMesh((batch, matrix), ("batch", "model"))
    layout = keras.distribution.LayoutMap(mesh)
    layout[".*cell.*/kernel"] = (None, "model")
    layout[".*cell.*/recurrent_skew"] = layout[".*cell.*/bias"] = ("model",)
    found[f"{batch} x {matrix}"] = trained(
        keras.distribution.ModelParallel(
            layout_map=layout, batch_dim_name="batch", auto_shard_dataset=False
        )
    )
print(json.dumps(found))
"""


def run(program, devices):
    variables = {
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
    said = run_python("-c", program, env=os.environ | variables)
    return json.loads(said.splitlines()[-1])


@pytest.mark.slow
def test_devices_exchange_gradients_alone_and_once():
    found = run(EXCHANGES, devices=2)
    assert len(found) == 5
    assert all(exchanged == ["all-reduce"] for exchanged in found.values()), found


@pytest.mark.slow
def test_batch_and_matrix_divided():
    """Every way to divide four devices gives what one gives."""
    found = run(TRAINED, devices=4)
    one = found.pop("one device")
    assert len(found) == 3
    for divided in found.values():
        # Sums in another order, 112 steps long, in float64. The losses that Keras
        # reports would not do: they are rounded to some 1e-9.
        np.testing.assert_allclose(divided, one, rtol=1e-9)
