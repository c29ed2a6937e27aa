import math

import keras
import numpy as np
import pytest

from keras_ortho.metrics import BitsPerCharacter, ErrorRate
from tests.saving import saved_copy

pytestmark = pytest.mark.backends

EPS = float(np.finfo("float32").eps)


def expected(batches):
    """The mean of -log2 of the probability of the character, in float64."""
    bits = []
    for y, logits in batches:
        logits = logits.astype("float64")
        rows = logits.reshape(-1, logits.shape[-1])
        for target, row in zip(y.ravel(), rows, strict=True):
            bits.append(math.log2(np.exp(row).sum()) - row[target] / math.log(2))
    return np.mean(bits)


@pytest.fixture
def batches():
    random = np.random.default_rng(0)
    shapes = [(2, 3, 5), (4, 1, 5), (1, 7, 5)]
    return [
        (random.integers(0, 5, shape[:2]), random.normal(size=shape).astype("f4"))
        for shape in shapes
    ]


@pytest.mark.parametrize("from_logits", [True, False])
def test_bits(from_logits, batches):
    metric = BitsPerCharacter(from_logits)
    assert float(metric.result()) == 0
    for y, logits in batches:
        e = np.exp(logits)
        metric.update_state(y, logits if from_logits else e / e.sum(-1, keepdims=True))
    # Sums of 17 characters, and of 5 exponentials each.
    assert float(metric.result()) == pytest.approx(expected(batches), rel=85 * EPS)
    metric.reset_state()
    assert float(metric.result()) == 0


@pytest.mark.parametrize("rows", [False, True])
def test_weights(rows, batches):
    metric = BitsPerCharacter()
    total = count = 0
    for number, (y, logits) in enumerate(batches):
        weights = np.arange(len(y) if rows else y.size) + number
        weights = weights.reshape(len(y) if rows else y.shape).astype("f4")
        metric.update_state(y, logits, sample_weight=weights)
        each = np.broadcast_to(weights[:, None], y.shape) if rows else weights
        for place in np.ndindex(y.shape):
            one = expected([(y[place].reshape(1, 1), logits[place].reshape(1, 1, -1))])
            total, count = total + each[place] * one, count + each[place]
    assert float(metric.result()) == pytest.approx(total / count, rel=85 * EPS)


def test_shapes_of_targets(batches):
    """An axis of one, as Keras's loss takes it, and lists; a weight of each row."""
    y, logits = batches[0]
    weights = np.array([1.0, 3.0], "float32")
    found = []
    for targets in (y, y[:, :, None], y.tolist()):
        metric = BitsPerCharacter()
        metric.update_state(targets, logits, sample_weight=weights)
        found.append(float(metric.result()))
    rows = [expected([(y[i : i + 1], logits[i : i + 1])]) for i in range(2)]
    # Sums of 6 characters, and of 5 exponentials each.
    wanted = (rows[0] + 3 * rows[1]) / 4
    assert found == pytest.approx([wanted] * 3, rel=30 * EPS)


@pytest.mark.parametrize("weighted", [False, True])
def test_masked_characters_do_not_count(weighted, batches):
    y, logits = batches[0]
    inside = np.array([[1, 1, 0], [1, 0, 0]], bool)
    masked = keras.layers.Masking()(np.where(inside[:, :, None], logits, 0.0))
    metric = BitsPerCharacter()
    weights = np.array([1.0, 3.0], "float32") if weighted else None
    metric.update_state(y, masked, sample_weight=weights)
    each = [expected([(y[i, t], logits[i, t])]) for i, t in ((0, 0), (0, 1), (1, 0))]
    wanted = np.average(each, weights=(1, 1, 3) if weighted else None)
    assert float(metric.result()) == pytest.approx(wanted, rel=30 * EPS)


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


def test_configs():
    copy = saved_copy(BitsPerCharacter(from_logits=False, name="bits", dtype="float64"))
    assert (copy.name, copy.from_logits) == ("bits", False)
    assert saved_copy(ErrorRate(name="wrong")).name == "wrong"
