"""Losses that divide by what is no padding, on replicas that have unlike shares."""

import json
import os

import keras
import numpy as np
import pytest

from tests.modules import run_python

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="replicas are TensorFlow's"
)

REPLICAS = """
import json
import keras
import numpy as np
import tensorflow as tf

from keras_ortho.losses import NegativeSISDR, ValidFrameMSE

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
strategies = [
    tf.distribute.get_strategy(),
    tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
]
keras.config.set_floatx("float64")
random = np.random.default_rng(0)
x, y = random.normal(size=(2, 4, 6, 2))
frames, none = np.ones((4, 6)), np.ones((4, 6))
frames[:2, 2:] = 0  # 4 frames on the first replica, 12 on the second,
none[:2] = 0  # none on the first,
heard = np.ones((4, 6))
heard[1] = 0  # or one waveform on the first and two on the second.
cases = {
    "frames": (ValidFrameMSE, frames, x, y),
    "none": (ValidFrameMSE, none, x, y),
    "waveforms": (NegativeSISDR, heard, x, y[..., 0]),
}
found = {}
for case, (loss, weights, inputs, targets) in cases.items():
    for strategy in strategies:
        keras.utils.set_random_seed(0)
        with strategy.scope():
            dense = keras.layers.Dense(targets.shape[-1] if targets.ndim == 3 else 1)
            outputs = dense(start := keras.Input((6, 2)))
            if targets.ndim == 2:
                outputs = keras.layers.Reshape((6,))(outputs)
            model = keras.Model(start, outputs)
            model.compile(keras.optimizers.SGD(0.01), loss(), jit_compile=False)
        losses = model.fit(
            inputs, targets, 4, 3, sample_weight=weights, shuffle=False, verbose=0
        ).history["loss"]
        trained = np.concatenate([w.ravel() for w in model.get_weights()])
        found.setdefault(case, []).append([*losses, *trained])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_replicas_have_the_mean_over_the_whole_batch():
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    printed = run_python("-c", REPLICAS, env=environment)
    found = json.loads(printed.splitlines()[-1])
    assert set(found) == {"frames", "none", "waveforms"}
    for case, (one, two) in found.items():
        # Three steps of sums of at most 24 numbers of order ten, in float64; the mean
        # of the replicas' means is off by 0.02.
        np.testing.assert_allclose(two, one, rtol=0, atol=1e-12, err_msg=case)
