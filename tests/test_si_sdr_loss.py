"""The SI-SDR loss against the metric, with padding, and its gradient."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.losses import NegativeSISDR
from keras_ortho.metrics import si_sdr
from tests.gradients import gradients

pytestmark = pytest.mark.backends

LENGTHS = [40, 25, 12]


def batch(seed=0):
    """Waveforms, also in the padding, and the mask."""
    random = np.random.default_rng(seed)
    y_true = random.normal(size=(3, 40)) + 0.5
    y_pred = y_true + 0.3 * random.normal(size=(3, 40))
    return y_true, y_pred, (np.arange(40) < np.array(LENGTHS)[:, None]).astype("f8")


@pytest.mark.parametrize("zero_mean", [False, True])
def test_is_the_metric(zero_mean):
    y_true, y_pred, mask = batch()
    loss = NegativeSISDR(zero_mean, dtype="float64")
    expected = [
        -si_sdr(estimate[:length], reference[:length], zero_mean=zero_mean)
        for estimate, reference, length in zip(y_pred, y_true, LENGTHS, strict=True)
    ]
    # The guard of 1e-12 is 1e-10 of what is lost here, and that 5e-10 dB.
    found = float(loss(y_true, y_pred, sample_weight=mask))
    assert found == pytest.approx(np.mean(expected), abs=1e-8)
    whole = [
        -si_sdr(estimate, reference, zero_mean=zero_mean)
        for estimate, reference in zip(y_pred, y_true, strict=True)
    ]
    assert float(loss(y_true, y_pred)) == pytest.approx(np.mean(whole), abs=1e-8)
    np.testing.assert_allclose(loss.call(y_true, y_pred), whole, atol=1e-8)


def test_waveforms_without_a_sample_do_not_count():
    y_true, y_pred, mask = batch()
    loss = NegativeSISDR(dtype="float64")
    mask[2] = 0
    y_pred[2] = np.nan_to_num(y_pred[2]) * 1e6
    found = float(loss(y_true, y_pred, sample_weight=mask))
    expected = float(loss(y_true[:2], y_pred[:2], sample_weight=mask[:2]))
    assert found == pytest.approx(expected, abs=1e-12)
    assert float(loss(y_true, y_pred, sample_weight=0 * mask)) == 0


@pytest.mark.parametrize("zero_mean", [False, True])
def test_gradient(zero_mean):
    y_true, y_pred, mask = batch()
    loss = NegativeSISDR(zero_mean, dtype="float64")
    weight = ops.convert_to_tensor(mask)
    (found,) = gradients(lambda y: loss(y_true, y, sample_weight=weight), y_pred)
    np.testing.assert_array_equal(found[mask == 0], 0)
    step, random = 1e-5, np.random.default_rng(1)
    for _ in range(5):
        direction = random.normal(size=y_pred.shape)
        ahead, behind = (
            float(loss(y_true, y_pred + s * direction, sample_weight=mask))
            for s in (step, -step)
        )
        # The third derivative is a few hundred; a value of 10 dB has 1e-15.
        expected = (ahead - behind) / (2 * step)
        assert np.sum(found * direction) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_silence_and_perfection_are_finite(dtype):
    y_true = np.array([[0.0] * 8, [1.0, -2.0] * 4, [1.0, -2.0] * 4], dtype)
    y_pred = np.array([[1.0] * 8, [0.0] * 8, [2.0, -4.0] * 4], dtype)
    loss = NegativeSISDR(dtype=dtype)
    values = ops.convert_to_numpy(
        loss.call(*map(ops.convert_to_tensor, (y_true, y_pred)))
    )
    assert np.isfinite(values).all()
    assert values[1] == pytest.approx(0.0, abs=1e-4)
    assert -126.1 < values[2] <= -110  # Of twice as loud a signal six dB more.
    (found,) = gradients(lambda y: loss(y_true, y), y_pred)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_single(dtype):
    y_true, y_pred, mask = batch()
    found = NegativeSISDR(dtype=dtype)(1e3 * y_true, 1e3 * y_pred, mask)
    expected = NegativeSISDR(dtype="float32")(1e3 * y_true, 1e3 * y_pred, mask)
    assert np.isfinite(float(expected))
    assert float(found) == float(expected)
    policy = keras.DTypePolicy(f"mixed_{dtype}")
    assert NegativeSISDR(dtype=policy).dtype == "float32"


def test_config():
    loss = NegativeSISDR(zero_mean=True, name="mine", dtype="float64")
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert again.get_config() == loss.get_config()
    assert again.zero_mean


@pytest.mark.parametrize("scale", [1.0, 2.0**10, 2.0**20])
def test_ends_at_120_db_however_loud(scale):
    y_true = batch()[0].astype("float32")
    # The scale is a power of two: what is lost is the rounding of the projection, some
    # 1e-14 of the energy.
    found = float(NegativeSISDR()(y_true, scale * y_true))
    assert found == pytest.approx(-120, abs=0.1)
