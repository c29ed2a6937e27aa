"""Layers, losses that divide by what is no padding, and clipping, on replicas."""

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
from keras.optimizers import SGD

from keras_ortho import BNPDense, ENRNN, FullURNN, ScoRNN, ScuRNN
from keras_ortho.losses import NegativeSISDR, ValidFrameMSE
from keras_ortho.optimizers import (
    RMSpropTF1, StiefelDescent, paper_optimizer, two_rate_adam
)

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
frames, heard = np.ones((4, 6)), np.ones((4, 6))
frames[:2, 2:] = 0  # 4 frames on the first replica, 12 on the second.
heard[1] = 0  # One waveform on the first, two on the second.


def frame():
    return [keras.layers.Dense(2)]


def waveform():
    return [keras.layers.Dense(1), keras.layers.Reshape((6,))]


def both():
    return [ScoRNN(4, return_sequences=True), FullURNN(2)]


def flags_and_statistics():
    near = {"short_term_initializer": np.diag([0.998, 0.5])}
    return [
        ENRNN(2, 2, **near, return_sequences=True),
        ScoRNN(4, rebase_every=3, return_sequences=True),
        ScuRNN(2, return_sequences=True),
        keras.layers.Flatten(),
        BNPDense(4, activation="tanh"),
    ]


def words():
    return [keras.layers.Embedding(5, 3), ScoRNN(4)]


def clipped():
    return paper_optimizer(
        RMSpropTF1(0.05, clipvalue=0.02),
        SGD(0.05, global_clipnorm=0.02),
        StiefelDescent(0.05, clipnorm=0.02),
    )


mse = keras.losses.MeanSquaredError
last = random.normal(size=(4, 4))
cases = {
    "frames": (frame, SGD, ValidFrameMSE, y, frames, x),
    "waveforms": (waveform, SGD, NegativeSISDR, y[..., 0], heard, x),
    "README": (lambda: [ScoRNN(4)], two_rate_adam, mse, last, np.ones(4), x),
    "sparse": (words, clipped, mse, last, np.ones(4), random.integers(5, size=(4, 6))),
    "each its own": (both, clipped, mse, last, np.ones(4), x),
    "flags": (flags_and_statistics, SGD, mse, last, np.ones(4), x),
    "alone": (frame, lambda: RMSpropTF1(0.05, clipnorm=0.1), mse, y, heard, x),
}
found = {}
for case, (layers, optimizer, loss, targets, weights, inputs) in cases.items():
    for strategy in strategies:
        keras.utils.set_random_seed(0)
        with strategy.scope():
            start = keras.Input(inputs.shape[1:])
            model = keras.Sequential([start, *layers()])
            model.compile(optimizer(), loss(), jit_compile=False)
        before = np.concatenate([w.ravel() for w in model.get_weights()])
        losses = model.fit(
            inputs, targets, 4, 12, sample_weight=weights, shuffle=False, verbose=0
        ).history["loss"]
        after = np.concatenate([w.ravel() for w in model.get_weights()])
        moved = float(np.abs(after - before).max())
        found.setdefault(case, []).append([moved, *losses, *after])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_replicas_train_as_one_device():
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    printed = run_python("-c", REPLICAS, env=environment)
    found = json.loads(printed.splitlines()[-1])
    assert len(found) == 7
    for case, (one, two) in found.items():
        assert one[0] > 1e-3, case
        # Twelve steps of sums of at most 24 numbers of order ten, in float64. The mean
        # of the replicas' means is off by 0.02, and to clip each replica's gradient
        # changes weights by 1e-3 or more.
        np.testing.assert_allclose(two, one, rtol=0, atol=1e-12, err_msg=case)
