import numpy as np
import pytest

from keras_ortho.metrics import ErrorRate
from tests.saving import saved_copy

pytestmark = pytest.mark.backends


def test_share_of_all_batches():
    random = np.random.default_rng(0)
    metric = ErrorRate()
    wrong = []
    for size in (5, 1, 8):
        y, outputs = random.integers(0, 3, size), random.normal(size=(size, 3))
        metric.update_state(y, outputs)
        wrong += list(outputs.argmax(axis=1) != y)
    assert 0 < np.mean(wrong) < 1
    assert float(metric.result()) == pytest.approx(np.mean(wrong), abs=1e-6)


def test_outputs_that_are_not_finite_have_a_rate():
    metric = ErrorRate()
    metric.update_state([1, 1], np.full((2, 3), np.nan))
    assert float(metric.result()) == 1


def test_config():
    metric = ErrorRate(name="wrong")
    assert saved_copy(metric).name == "wrong"
