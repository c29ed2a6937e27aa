"""What JAX compiles for several devices: each computes with its share of the batch."""

import json
import os

import keras
import pytest

from tests.modules import run_python

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="runs JAX in another process"
)

PROGRAM = """
import json
import re

import jax
import keras
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from keras_ortho import ScoRNN, ScuRNN

keras.distribution.set_distribution(
    keras.distribution.DataParallel(auto_shard_dataset=False)
)
BATCH, STEPS = 8, 112  # Two segments of the recurrence.
found = {}
for layer in (ScoRNN(6), ScoRNN(6, return_sequences=True), ScuRNN(3)):
    model = keras.Sequential([keras.Input((STEPS, 2)), layer])
    weights = [v.value for v in model.trainable_variables]
    others = [v.value for v in model.non_trainable_variables]
    divided = NamedSharding(weights[0].sharding.mesh, PartitionSpec("batch"))
    x = jax.device_put(np.ones((BATCH, STEPS, 2), "float32"), divided)

    def loss(weights, x):
        return model.stateless_call(weights, others, x, training=True)[0].sum()

    program = jax.jit(jax.grad(loss)).lower(weights, x).compile().as_text()
    exchanged = re.findall(r" ((?:all|collective|reduce)-[a-z-]+)\\(", program)
    found[layer.name] = sorted(set(exchanged))
print(json.dumps(found))
"""


def test_devices_exchange_gradients_alone():
    """An axis of time and batch would be brought together, with all states, on each."""
    variables = {
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
    }
    said = run_python("-c", PROGRAM, env=os.environ | variables)
    found = json.loads(said.splitlines()[-1])
    assert len(found) == 3
    assert all(exchanged == ["all-reduce"] for exchanged in found.values()), found
