"""Layers, losses that divide by what is no padding, and clipping, on replicas."""

import os

import keras
import pytest

from tests.modules import run_python

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="replicas are TensorFlow's"
)

REPLICAS = """
import keras
import numpy as np
import tensorflow as tf
from keras.optimizers import SGD

from keras_ortho import BNPDense, ENRNN, FullURNN, ScoRNN, ScuRNN, parametrize
from keras_ortho.losses import NegativeSISDR, ValidFrameMSE
from keras_ortho.optimizers import RMSpropTF1, StiefelDescent, paper_optimizer
from keras_ortho.parametrizations import Householder

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)
strategies = [
    tf.distribute.get_strategy(),
    tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
]
keras.config.set_floatx("float64")
dense, mse, ones = keras.layers.Dense, keras.losses.MeanSquaredError, np.ones(4)
random = np.random.default_rng(0)
x, y = random.normal(size=(2, 4, 6, 2))
last, words = random.normal(size=(4, 4)), random.integers(5, size=(4, 6))
frames, heard = np.ones((4, 6)), np.ones((4, 6))
frames[:2, 2:] = 0  # 4 frames on the first replica, 12 on the second.
heard[1] = 0  # One waveform on the first, two on the second.


def flags_and_statistics():
    near = {"short_term_initializer": np.diag([0.998, 0.5])}
    return [
        ENRNN(2, 2, **near, return_sequences=True),
        ScoRNN(4, rebase_every=3, return_sequences=True),
        ScuRNN(2, return_sequences=True),
        keras.layers.Flatten(),
        BNPDense(4, activation="tanh"),
    ]


def clipped():
    return paper_optimizer(
        RMSpropTF1(0.05, clipvalue=0.02),
        SGD(0.05, global_clipnorm=0.02),
        StiefelDescent(0.05, clipnorm=0.02),
    )


waveform = lambda: [dense(1), keras.layers.Reshape((6,))]
sparse = lambda: [keras.layers.Embedding(5, 3), ScoRNN(4)]
both = lambda: [ScoRNN(4, return_sequences=True), FullURNN(2)]
gated = lambda: [parametrize(keras.layers.GRU(4), "recurrent_kernel", Householder())]
alone = lambda: RMSpropTF1(0.05, clipnorm=0.1)
cases = {
    "frames": (lambda: [dense(2)], SGD, ValidFrameMSE, y, frames, x),
    "waveforms": (waveform, SGD, NegativeSISDR, y[..., 0], heard, x),
    "sparse": (sparse, clipped, mse, last, ones, words),
    "each its own": (both, clipped, mse, last, ones, x),
    "parametrized": (gated, clipped, mse, last, ones, x),
    "flags": (flags_and_statistics, SGD, mse, last, ones, x),
    "alone": (lambda: [dense(2)], alone, mse, y, heard, x),
}
for case, (layers, optimizer, loss, targets, weights, inputs) in cases.items():
    found = []
    for strategy in strategies:
        keras.utils.set_random_seed(0)
        with strategy.scope():
            model = keras.Sequential([keras.Input(inputs.shape[1:]), *layers()])
            model.compile(optimizer(), loss(), jit_compile=False)
        before = np.concatenate([w.ravel() for w in model.get_weights()])
        given = {"sample_weight": weights, "shuffle": False, "verbose": 0}
        losses = model.fit(inputs, targets, 4, 12, **given).history["loss"]
        after = np.concatenate([w.ravel() for w in model.get_weights()])
        assert np.abs(after - before).max() > 1e-3, case
        found.append([*losses, *after])
    # Twelve steps of sums of at most 24 numbers of order ten, in float64. The mean of
    # the replicas' means is off by 0.02, and to clip each replica's gradient changes
    # weights by 1e-3 or more.
    np.testing.assert_allclose(*found, rtol=0, atol=1e-12, err_msg=case)
print("done")
"""


@pytest.mark.slow
def test_replicas_train_as_one_device():
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    assert run_python("-c", REPLICAS, env=environment).endswith("done\n")
