"""Linear prediction of the next frame from the last ones, by ridge regression."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_ortho.audio import NUM_BINS
from keras_ortho.tasks.timit import Timit

# Factors of the squared weights, relative to the mean over frames; the inputs are
# standardized.
PENALTIES = tuple(10 ** (power / 2) for power in range(-10, 1))


@dataclass(frozen=True)
class LinearPrediction:
    """A linear map from the last frames to the next one, all of them standardized.

    `kernel` is float64 `[frames, 129, 129]`, the oldest frame first, from bins to those
    of the next frame; `bias`, `mean` and `std` (in dB) are `[129]`.
    """

    kernel: np.ndarray
    bias: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    penalty: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Predicts the frame that follows each frame."""
        rows = stack((np.asarray(x) - self.mean) / self.std, len(self.kernel))
        weights = self.kernel.reshape(-1, NUM_BINS)
        return (rows @ weights + self.bias) * self.std + self.mean


def stack(frames: np.ndarray, count: int) -> np.ndarray:
    """Concatenates the last frames at each step, the oldest first."""
    padded = np.pad(frames, ((0, 0), (count - 1, 0), (0, 0)))
    length = frames.shape[1]
    return np.concatenate([padded[:, i : i + length] for i in range(count)], axis=-1)


def fit(
    data: Timit, frames: int, penalties: Sequence[float] = PENALTIES
) -> LinearPrediction:
    """Fits a linear prediction of the next frame, by ridge regression.

    It minimizes the mean squared error over the valid frames of the training data, in
    standardized units, plus the penalty times the squared weights, without the bias.
    """
    # A bin that never changes is predicted by the bias alone.
    std = np.where(data.std > 0, data.std, 1.0)
    train, valid = (
        _moments(batches, frames, data.mean, std)
        for batches in (data.train, data.valid)
    )
    found = {penalty: _solve(train, penalty) for penalty in penalties}
    errors = {
        penalty: _squared_errors(valid, weights) @ std**2
        for penalty, weights in found.items()
    }
    penalty = min(errors, key=errors.__getitem__)
    kernel = found[penalty][:-1].reshape(frames, NUM_BINS, NUM_BINS)
    return LinearPrediction(kernel, found[penalty][-1], data.mean, std, penalty)


def _moments(
    batches: Any, frames: int, mean: np.ndarray, std: np.ndarray
) -> np.ndarray:
    """Returns the mean products of all pairs of inputs, a constant 1, and targets."""
    size = (frames + 1) * NUM_BINS + 1
    total, count = np.zeros((size, size)), 0.0
    for x, y, weight in batches:
        inputs, targets = ((np.asarray(a) - mean) / std for a in (x, y))
        ones = np.ones((*inputs.shape[:2], 1))
        rows = np.concatenate([stack(inputs, frames), ones, targets], axis=-1)
        valid = rows[np.asarray(weight) > 0]
        total += valid.T @ valid
        count += len(valid)
    return total / count


def _solve(moments: np.ndarray, penalty: float) -> np.ndarray:
    """Returns the weights of the inputs, with the bias in the last row."""
    of_inputs, with_targets = (
        moments[:-NUM_BINS, :-NUM_BINS],
        moments[:-NUM_BINS, -NUM_BINS:],
    )
    penalties = np.full(len(of_inputs), penalty)
    penalties[-1] = 0
    return np.linalg.solve(of_inputs + np.diag(penalties), with_targets)


def _squared_errors(moments: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns the mean squared error of each bin."""
    # The targets minus the weighted inputs.
    left = np.concatenate([-weights, np.eye(NUM_BINS)])
    return np.einsum("ib,ij,jb->b", left, moments, left, optimize=True)
