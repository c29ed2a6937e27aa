from types import SimpleNamespace

import numpy as np
import pytest

from experiments.linear_prediction import fit

PENALTIES = (1e-3, 1e-2, 1e-1)


def batch(random, lengths):
    """Frames that follow from the last two, with noise, and padding of other frames."""
    wide = max(lengths)
    x = random.normal(-30, 10, (len(lengths), wide + 1, 129))
    mixing = np.random.default_rng(1).normal(0, 0.04, (2, 129, 129))
    for t in range(2, wide + 1):
        x[:, t] += (x[:, t - 1] + 30) @ mixing[0] + (x[:, t - 2] + 30) @ mixing[1]
    weight = (np.arange(wide) < np.array(lengths)[:, None]).astype("float32")
    return x[:, :-1].astype("float32"), x[:, 1:].astype("float32"), weight


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    train = [batch(random, [90, 40, 70]), batch(random, [60, 25])]
    frames = np.concatenate([x[weight > 0] for x, _, weight in train], dtype=float)
    mean, std = frames.mean(axis=0), frames.std(axis=0)
    valid = [batch(random, [80, 55])]
    return SimpleNamespace(train=train, valid=valid, mean=mean, std=std)


def design(batches, count, data):
    """The inputs, in standardized units, and the targets, of each valid frame."""
    rows, targets = [], []
    for x, y, weight in batches:
        for frames, following, valid in zip(x, y, weight, strict=True):
            past = np.zeros((count, 129))
            for frame, target, is_valid in zip(frames, following, valid, strict=True):
                past = np.concatenate([past[1:], [(frame - data.mean) / data.std]])
                if is_valid:
                    rows.append(past.ravel())
                    targets.append((target - data.mean) / data.std)
    return np.array(rows), np.array(targets)


def solve(rows, targets, penalty):
    """Least squares on rows that the penalty adds: a bias is not penalized."""
    count, width = rows.shape
    with_one = np.column_stack([rows, np.ones(count)])
    added = np.sqrt(penalty * count) * np.eye(width, width + 1)
    whole = np.concatenate([with_one, added])
    wanted = np.concatenate([targets, np.zeros((width, 129))])
    return np.linalg.lstsq(whole, wanted, rcond=None)[0]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_solution_is_that_of_the_augmented_system(data, count):
    rows, targets = design(data.train, count, data)
    held_out, wanted = design(data.valid, count, data)
    errors = {}
    for penalty in PENALTIES:
        weights = solve(rows, targets, penalty)
        left = (held_out @ weights[:-1] + weights[-1] - wanted) * data.std
        errors[penalty] = (left**2).mean()
    best = min(errors, key=errors.get)
    found = fit(data, count, PENALTIES)
    assert found.penalty == best
    expected = solve(rows, targets, best)
    assert found.kernel.shape == (count, 129, 129)
    # The normal equations square the condition of the system, which the penalty
    # bounds: the largest of 387 eigenvalues is below their sum.
    tolerance = 387 * count / best * np.finfo(float).eps
    np.testing.assert_allclose(
        found.kernel.reshape(-1, 129), expected[:-1], atol=10 * tolerance
    )
    np.testing.assert_allclose(found.bias, expected[-1], atol=10 * tolerance)


def test_the_choice_depends_on_the_validation_data(data):
    # Targets that have nothing to do with the inputs: the smallest map is the best.
    random = np.random.default_rng(2)
    noise = [(random.permutation(x[0])[None], y[:1], w[:1]) for x, y, w in data.valid]
    other = SimpleNamespace(**{**vars(data), "valid": noise})
    assert fit(other, 2, (1e-4, 1e2)).penalty == 1e2
    # What it was fitted to.
    known = SimpleNamespace(**{**vars(data), "valid": data.train})
    assert fit(known, 2, (1e-4, 1e2)).penalty == 1e-4


def test_padding_changes_nothing(data):
    end = ((0, 0), (0, 9), (0, 0))
    wider = [
        (
            *(np.pad(frames, end, constant_values=-50.0) for frames in (x, y)),
            np.pad(weight, end[:2]),
        )
        for x, y, weight in data.train
    ]
    other = SimpleNamespace(**{**vars(data), "train": wider})
    # The same frames, in the same order.
    np.testing.assert_array_equal(fit(other, 2).kernel, fit(data, 2).kernel)


def test_prediction_is_in_decibels_and_reads_no_later_frame(data):
    predict = fit(data, 2)
    x, _, weight = data.valid[0]
    found = predict(x)
    assert found.shape == x.shape
    rows, _ = design(data.valid, 2, data)
    weights = predict.kernel.reshape(-1, 129)
    expected = (rows @ weights + predict.bias) * data.std + data.mean
    # Sums of 258 products of terms of at most about 5, in standardized units.
    np.testing.assert_allclose(found[weight > 0], expected, atol=1e-9)
    changed = x.copy()
    changed[:, 10:] = 0
    np.testing.assert_array_equal(predict(changed)[:, :10], found[:, :10])


def test_a_bin_that_never_changes(data):
    quiet = [tuple(np.array(part) for part in each) for each in data.train]
    for x, y, _ in quiet:
        x[..., 7] = y[..., 7] = -50
    mean, std = data.mean.copy(), data.std.copy()
    mean[7], std[7] = -50, 0
    predict = fit(SimpleNamespace(train=quiet, valid=quiet, mean=mean, std=std), 1)
    x, _, weight = quiet[0]
    np.testing.assert_allclose(predict(x)[weight > 0][:, 7], -50, atol=1e-9)
