"""Tests of the masked mean squared errors."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.losses import NegativeSISDR, PaddedFrameMSE, ValidFrameMSE
from tests.saving import saved_copy

pytestmark = pytest.mark.backends

BINS = 3


def ragged_batch(lengths, time, seed=0):
    """Targets and outputs, also in the padding, and the mask."""
    rng = np.random.default_rng(seed)
    y_true, y_pred = rng.standard_normal((2, len(lengths), time, BINS)).astype("f4")
    mask = np.arange(time) < np.array(lengths)[:, None]
    return y_true, y_pred, mask


def valid_frame_mse(y_true, y_pred, mask):
    return np.mean((y_true - y_pred)[mask] ** 2)


def padded_frame_mse(y_true, y_pred, mask):
    errors = np.where(mask[..., None], y_true - y_pred, 0)
    return np.sum(errors**2) / errors.size


DEFINITIONS = {ValidFrameMSE: valid_frame_mse, PaddedFrameMSE: padded_frame_mse}


@pytest.fixture(params=DEFINITIONS, ids=lambda loss: loss.__name__)
def loss(request):
    return request.param(), DEFINITIONS[request.param]


# A mean of n numbers in float32 is off by n eps at most, relative to their mean.
RTOL = 4 * 7 * BINS * np.finfo(np.float32).eps


def test_ragged(loss):
    function, definition = loss
    y_true, y_pred, mask = ragged_batch([7, 1, 4, 2], 7)
    result = function(y_true, y_pred, sample_weight=mask)
    np.testing.assert_allclose(result, definition(y_true, y_pred, mask), rtol=RTOL)


def test_keras_mask(loss):
    function, definition = loss
    y_true, y_pred, mask = ragged_batch([7, 1, 4, 2], 7)
    weights = ragged_batch([7, 7, 3, 7], 7)[2]

    class Mask(keras.layers.Layer):
        supports_masking = True

        def compute_mask(self, inputs, previous=None):
            return ops.any(ops.not_equal(inputs, 0), axis=-1)

        def call(self, inputs):
            return inputs + 0

    inputs = keras.Input((None, BINS))
    model = keras.Model(inputs, Mask()(inputs))
    model.compile(loss=function)
    outputs = np.where(mask[..., None], y_pred, 0)
    result = model.evaluate(outputs, y_true, batch_size=4, verbose=0)
    np.testing.assert_allclose(result, definition(y_true, y_pred, mask), rtol=RTOL)
    result = model.evaluate(outputs, y_true, 4, 0, sample_weight=weights)
    expected = definition(y_true, y_pred, mask & weights)
    np.testing.assert_allclose(result, expected, rtol=RTOL)


def test_fit_follows_the_gradient_of_the_definition(loss):
    function, definition = loss
    inputs, y_true, mask = ragged_batch([7, 1, 4, 2], 7)
    model = keras.Sequential([keras.Input((None, BINS)), keras.layers.Dense(BINS)])
    kernel, _ = model.get_weights()
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss=function)
    history = model.fit(
        inputs, y_true, sample_weight=mask.astype("f4"), batch_size=4, verbose=0
    )
    outputs = inputs @ kernel
    errors = np.where(mask[..., None], outputs - y_true, 0)
    count = BINS * (mask.sum() if isinstance(function, ValidFrameMSE) else mask.size)
    gradient = 2 * np.einsum("bti,bto->io", inputs, errors) / count
    np.testing.assert_allclose(
        history.history["loss"][0], definition(y_true, outputs, mask), rtol=RTOL
    )
    # Sums of 28 products of numbers of about 1.
    atol = 28 * 4 * np.finfo(np.float32).eps
    np.testing.assert_allclose(
        model.get_weights()[0], kernel - 0.1 * gradient, atol=atol
    )


def test_low_precision_outputs_are_compared_in_float32(loss):
    function, definition = loss
    y_true, _, mask = ragged_batch([7, 1], 7)
    y_true = 300 * y_true  # squares overflow float16
    outputs = ops.zeros(y_true.shape, "float16")
    result = function(y_true, outputs, sample_weight=mask)
    np.testing.assert_allclose(result, definition(y_true, 0, mask), rtol=RTOL)


def test_config(loss):
    function, _ = loss
    copy = saved_copy(function)
    assert copy.reduction == function.reduction
    named = type(function)(name="mse", dtype="float64")
    copy = type(function).from_config(named.get_config())
    assert (copy.name, copy.dtype) == ("mse", "float64")


COMPLEX = np.ones((2, 5), "complex64")
FRAMES, WAVES = np.ones((4, 7, BINS)), np.ones((2, 5))
WEIGHTS = r"`sample_weight` must have the shape \(4, 7\) .* Received: shape"


@pytest.mark.parametrize(
    ("losses", "arguments", "message"),
    [
        *((DEFINITIONS, [FRAMES, FRAMES, np.ones(n)], WEIGHTS) for n in (4, (4, 7, 1))),
        (
            DEFINITIONS,
            [FRAMES.swapaxes(0, 1), FRAMES],
            r"`y_true` .*: shape \(7, 4, 3\)",
        ),
        (DEFINITIONS, [1.0, 2.0], "`y_pred` must have .* Received: a scalar"),
        ([NegativeSISDR], [WAVES, np.ones((2, 6))], "`y_true`.*Received"),
        ([NegativeSISDR], [WAVES, WAVES, np.ones(2)], "`sample_weight`.*Received"),
        # Each sample would be a perfect waveform.
        ([NegativeSISDR], [WAVES[..., None]] * 2, r"`y_pred`.*Received: .*\(2, 5, 1\)"),
        *(
            ([*DEFINITIONS, NegativeSISDR], pair, "must be real: .*: .*complex64")
            for pair in ([COMPLEX, WAVES], [WAVES, COMPLEX])
        ),
    ],
)
def test_messages(losses, arguments, message):
    for each in losses:
        with pytest.raises(ValueError, match=message):
            each()(*map(ops.convert_to_tensor, arguments))
