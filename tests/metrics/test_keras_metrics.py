import math

import keras
import numpy as np
import pytest

from keras_ortho.metrics import BitsPerCharacter, ErrorRate
from tests.saving import saved_copy

pytestmark = pytest.mark.backends

EPS = float(np.finfo("float32").eps)


def bits(y, logits):
    """The -log2 of the probability of each character, in float64."""
    logits = np.asarray(logits, "float64")
    chosen = np.take_along_axis(logits, y[..., None], axis=-1)[..., 0]
    return np.log2(np.exp(logits).sum(axis=-1)) - chosen / math.log(2)


RANDOM = np.random.default_rng(0)
CHARACTERS = [
    (RANDOM.integers(0, 5, shape[:2]), RANDOM.normal(size=shape).astype("f4"))
    for shape in [(2, 3, 5), (4, 1, 5), (1, 7, 5)]
]


@pytest.mark.parametrize("from_logits", [True, False])
@pytest.mark.parametrize("weighted", [None, "rows", "characters"])
def test_bits(from_logits, weighted):
    metric = BitsPerCharacter(from_logits)
    total = count = 0
    for number, (y, logits) in enumerate(CHARACTERS):
        weights, each = None, np.ones(y.shape)
        if weighted:
            shape = (len(y), 1) if weighted == "rows" else y.shape
            weights = number + np.arange(np.prod(shape), dtype="f4").reshape(shape)
            each = weights * each
            weights = weights[:, 0] if weighted == "rows" else weights
        e = np.exp(logits)
        outputs = logits if from_logits else e / e.sum(-1, keepdims=True)
        metric.update_state(y, outputs, sample_weight=weights)
        total, count = total + np.sum(each * bits(y, logits)), count + np.sum(each)
    # Sums of 17 characters, and of 5 exponentials each.
    assert float(metric.result()) == pytest.approx(total / count, rel=85 * EPS)
    metric.reset_state()
    assert float(metric.result()) == 0


@pytest.mark.parametrize("weights", [None, np.array([1.0, 3.0], "float32")])
def test_masked_characters_do_not_count(weights):
    y, logits = CHARACTERS[0]
    inside = np.array([[1, 1, 0], [1, 0, 0]], bool)
    masked = keras.layers.Masking()(np.where(inside[:, :, None], logits, 0.0))
    metric = BitsPerCharacter()
    # An axis of one, as Keras's loss takes it.
    metric.update_state(y[:, :, None], masked, sample_weight=weights)
    each = None if weights is None else (1, 1, 3)
    wanted = np.average(bits(y, logits)[inside], weights=each)
    assert float(metric.result()) == pytest.approx(wanted, rel=30 * EPS)


def test_error_rate():
    random = np.random.default_rng(0)
    metric = ErrorRate()
    wrong = []
    for size in (5, 1, 8):
        y, outputs = random.integers(0, 3, size), random.normal(size=(size, 3))
        metric.update_state(y, outputs)
        wrong += list(outputs.argmax(axis=1) != y)
    assert 0 < np.mean(wrong) < 1
    assert float(metric.result()) == pytest.approx(np.mean(wrong), abs=1e-6)
    metric.reset_state()
    metric.update_state([1, 1], np.full((2, 3), np.nan))
    assert float(metric.result()) == 1


def test_configs():
    assert saved_copy(ErrorRate(name="mine")).name == "mine"
    copy = saved_copy(BitsPerCharacter(from_logits=False, name="bits", dtype="float64"))
    assert (copy.name, copy.from_logits) == ("bits", False)
