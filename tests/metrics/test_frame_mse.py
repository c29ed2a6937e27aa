"""Tests of the Keras metrics of masked errors."""

import keras
import numpy as np
import pytest

from keras_ortho.metrics import PaddedFrameMSE, ValidFrameMSE
from tests.saving import saved_copy

pytestmark = pytest.mark.backends

BINS = 3
LENGTHS = [[7, 1, 4], [3, 2], [5]]  # of three batches, each padded to its longest

# A mean of n numbers in float32 is off by n eps at most, relative to their mean.
RTOL = 22 * BINS * np.finfo(np.float32).eps


@pytest.fixture
def batches():
    """Targets, outputs and mask of batches of different sizes and lengths."""
    rng = np.random.default_rng(0)
    result = []
    for lengths in LENGTHS:
        shape = (2, len(lengths), max(lengths), BINS)
        y_true, y_pred = rng.standard_normal(shape).astype("f4")
        mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
        result.append((y_true, y_pred, mask))
    return result


def error_sum(batches):
    return sum(np.sum((y_true - y_pred)[mask] ** 2) for y_true, y_pred, mask in batches)


VALID = sum(map(sum, LENGTHS))
PADDED = sum(len(lengths) * max(lengths) for lengths in LENGTHS)
COUNTS = {ValidFrameMSE: VALID, PaddedFrameMSE: PADDED}


@pytest.fixture(params=COUNTS, ids=lambda metric: metric.__name__)
def metric(request):
    return request.param(), COUNTS[request.param]


def test_batches_of_different_length_accumulate(metric, batches):
    function, count = metric
    for y_true, y_pred, mask in batches:
        function.update_state(y_true, y_pred, sample_weight=mask)
    expected = error_sum(batches) / count / BINS
    np.testing.assert_allclose(function.result(), expected, rtol=RTOL)
    function.reset_state()
    for y_true, y_pred, _ in batches:
        function.update_state(y_true, y_pred)
    expected = sum(np.sum((t - p) ** 2) for t, p, _ in batches) / PADDED / BINS
    np.testing.assert_allclose(function.result(), expected, rtol=RTOL)


def test_evaluate(batches):
    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return len(batches)

        def __getitem__(self, index):
            y_true, y_pred, mask = batches[index]
            return y_pred, y_true, mask.astype("f4")

    inputs = keras.Input((None, BINS))
    model = keras.Model(inputs, keras.layers.Identity()(inputs))
    model.compile(
        loss="mse",
        weighted_metrics=[ValidFrameMSE(), PaddedFrameMSE()],
    )
    results = model.evaluate(Batches(), return_dict=True, verbose=0)
    expected = error_sum(batches) / BINS
    np.testing.assert_allclose(
        [results["valid_frame_mse"], results["padded_frame_mse"]],
        [expected / VALID, expected / PADDED],
        rtol=RTOL,
    )


def test_config(metric):
    saved_copy(metric[0])


def test_one_weight_for_each_frame(metric, batches):
    function, _ = metric
    y_true, y_pred, _ = batches[0]
    with pytest.raises(ValueError, match=r"`sample_weight` must .* \(3, 7\)"):
        function.update_state(y_true, y_pred, sample_weight=np.ones(3))


def test_a_checkpoint_on_the_metric_keeps_the_least(tmp_path, batches):
    y_true, y_pred, mask = batches[0]
    model = keras.Sequential([keras.Input((None, BINS)), keras.layers.Dense(BINS)])
    model.compile(
        optimizer=keras.optimizers.SGD(0.1),
        loss="mse",
        weighted_metrics=[PaddedFrameMSE()],
    )
    checkpoint = keras.callbacks.ModelCheckpoint(
        str(tmp_path / "best.keras"),
        monitor="padded_frame_mse",
        save_best_only=True,
    )
    history = model.fit(
        y_pred,
        y_true,
        sample_weight=mask.astype("f4"),
        epochs=3,
        callbacks=[checkpoint],
        verbose=0,
    )
    assert checkpoint.best == pytest.approx(min(history.history["padded_frame_mse"]))
    assert keras.saving.load_model(tmp_path / "best.keras").built
