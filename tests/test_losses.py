"""Losses and metrics of frames, and the loss of waveforms, against definitions."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import metrics
from keras_ortho.losses import NegativeSISDR, PaddedFrameMSE, ValidFrameMSE
from tests.gradients import gradients
from tests.saving import saved_copy

pytestmark = pytest.mark.backends

BINS = 3
# A mean of n numbers in float32 is off by n eps at most, relative to their mean.
RTOL = 4 * 7 * BINS * np.finfo(np.float32).eps


def frames(lengths, time=7):
    """Targets and outputs, also in the padding, and the mask."""
    rng = np.random.default_rng(time)
    y_true, y_pred = rng.standard_normal((2, len(lengths), time, BINS)).astype("f4")
    mask = np.arange(time) < np.array(lengths)[:, None]
    return y_true, y_pred, mask


def definition(loss, y_true, y_pred, mask):
    errors = np.where(mask[..., None], y_true - y_pred, 0)
    count = BINS * (mask.sum() if loss is ValidFrameMSE else mask.size)
    return np.sum(errors**2) / count, -2 * errors / count


mse = pytest.mark.parametrize("loss", [ValidFrameMSE, PaddedFrameMSE])


@mse
def test_keras_mask(loss):
    y_true, y_pred, mask = frames([7, 1, 4, 2])
    weights = frames([7, 7, 3, 7])[2]
    model = keras.Sequential([keras.Input((None, BINS)), keras.layers.Masking()])
    model.compile(loss=loss())
    outputs = np.where(mask[..., None], y_pred, 0)
    for given, counted in ((None, mask), (weights, mask & weights)):
        result = model.evaluate(outputs, y_true, 4, 0, sample_weight=given)
        expected, _ = definition(loss, y_true, y_pred, counted)
        np.testing.assert_allclose(result, expected, rtol=RTOL)


@mse
def test_gradient_of_the_definition(loss):
    y_true, y_pred, mask = frames([7, 1, 4, 2])
    (found,) = gradients(lambda y: loss()(y_true, y, mask), y_pred)
    _, expected = definition(loss, y_true, y_pred, mask)
    np.testing.assert_allclose(found, expected, rtol=RTOL)


@mse
def test_metrics_weigh_the_frames_of_all_batches_alike(loss):
    metric = getattr(metrics, loss.__name__)(name="mine")
    errors = count = 0
    for lengths in ([7, 1, 4], [3, 2], [5]):
        y_true, y_pred, mask = frames(lengths, max(lengths))
        metric.update_state(y_true, y_pred, sample_weight=mask)
        counted = mask.sum() if loss is ValidFrameMSE else mask.size
        errors += definition(loss, y_true, y_pred, mask)[0] * counted
        count += counted
    np.testing.assert_allclose(metric.result(), errors / count, rtol=RTOL)
    assert saved_copy(metric).name == "mine"


def test_a_checkpoint_on_a_metric_keeps_the_least(tmp_path):
    y_true, y_pred, mask = frames([7, 1, 4])
    model = keras.Sequential([keras.Input((None, BINS)), keras.layers.Dense(BINS)])
    weighted = [metrics.PaddedFrameMSE(), metrics.ValidFrameMSE()]
    model.compile("sgd", "mse", weighted_metrics=weighted)
    best = tmp_path / "best.keras"
    given = {"monitor": "padded_frame_mse", "save_best_only": True}
    checkpoint = keras.callbacks.ModelCheckpoint(best, **given)
    given = {"sample_weight": mask.astype("f4"), "callbacks": [checkpoint]}
    history = model.fit(y_pred, y_true, 3, 3, 0, **given).history
    assert checkpoint.best == pytest.approx(min(history["padded_frame_mse"]))
    assert history["valid_frame_mse"][0] > history["padded_frame_mse"][0]
    assert keras.saving.load_model(best).built


@mse
def test_low_precision_outputs_are_compared_in_float32(loss):
    y_true, _, mask = frames([7, 1])
    y_true = 300 * y_true  # squares overflow float16
    result = loss()(y_true, ops.zeros(y_true.shape, "float16"), mask)
    expected, _ = definition(loss, y_true, 0 * y_true, mask)
    np.testing.assert_allclose(result, expected, rtol=RTOL)


@pytest.mark.parametrize("loss", [ValidFrameMSE, PaddedFrameMSE, NegativeSISDR])
def test_config(loss):
    made = loss(name="mine", dtype="float64")
    assert saved_copy(made).reduction == made.reduction
    assert saved_copy(NegativeSISDR(zero_mean=True)).zero_mean


LENGTHS = [40, 25, 12]


def waveforms():
    """Waveforms, also in the padding, and the mask."""
    random = np.random.default_rng(0)
    y_true = random.normal(size=(3, 40)) + 0.5
    y_pred = y_true + 0.3 * random.normal(size=(3, 40))
    return y_true, y_pred, (np.arange(40) < np.array(LENGTHS)[:, None]).astype("f8")


@pytest.mark.parametrize("zero_mean", [False, True])
def test_si_sdr_and_its_gradient(zero_mean):
    y_true, y_pred, mask = waveforms()
    loss = NegativeSISDR(zero_mean, dtype="float64")
    for weights, lengths in ((None, [40] * 3), (mask, LENGTHS)):
        expected = [
            -metrics.si_sdr(estimate[:length], reference[:length], zero_mean=zero_mean)
            for estimate, reference, length in zip(y_pred, y_true, lengths, strict=True)
        ]
        # The guard of 1e-12 is 1e-10 of what is lost here, and that 5e-10 dB.
        found = float(loss(y_true, y_pred, weights))
        assert found == pytest.approx(np.mean(expected), abs=1e-8)
    (found,) = gradients(lambda y: loss(y_true, y, mask), y_pred)
    np.testing.assert_array_equal(found[mask == 0], 0)
    direction = np.random.default_rng(1).normal(size=y_pred.shape)
    ahead, behind = (
        float(loss(y_true, y_pred + step * direction, mask)) for step in (1e-5, -1e-5)
    )
    # The third derivative is a few hundred; a value of 10 dB has 1e-15.
    slope = (ahead - behind) / 2e-5
    assert np.sum(found * direction) == pytest.approx(slope, abs=1e-6)
    # Waveforms without a sample do not count.
    mask[2] = 0
    found = float(loss(y_true, y_pred, mask))
    assert found == pytest.approx(np.mean(expected[:2]), abs=1e-8)
    assert float(loss(y_true, y_pred, 0 * mask)) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_silence_and_perfection_are_finite(dtype):
    y_true = np.array([[0.0] * 8, [1.0, -2.0] * 4, [1.0, -2.0] * 4], dtype)
    y_pred = np.array([[1.0] * 8, [0.0] * 8, [1024.0, -2048.0] * 4], dtype)
    loss = NegativeSISDR(dtype=dtype)
    both = map(ops.convert_to_tensor, (y_true, y_pred))
    silent, silence, perfect = ops.convert_to_numpy(loss.call(*both))
    assert np.isfinite(silent)
    assert silence == pytest.approx(0.0, abs=1e-4)
    # However loud: 60 dB above the reference.
    assert perfect == pytest.approx(-120, abs=0.1)
    (found,) = gradients(lambda y: loss(y_true, y), y_pred)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_single(dtype):
    y_true, y_pred, mask = waveforms()
    found = NegativeSISDR(dtype=dtype)(1e3 * y_true, 1e3 * y_pred, mask)
    expected = NegativeSISDR(dtype="float32")(1e3 * y_true, 1e3 * y_pred, mask)
    assert float(found) == float(expected)
    policy = keras.DTypePolicy(f"mixed_{dtype}")
    assert NegativeSISDR(dtype=policy).dtype == "float32"
