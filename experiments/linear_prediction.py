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
    """A linear map of standardized frames; `kernel` has the oldest frame first."""

    kernel: np.ndarray
    bias: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    penalty: float

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Predicts the frame that follows each frame, in dB."""
        rows = _stack((np.asarray(x) - self.mean) / self.std, len(self.kernel))
        weights = self.kernel.reshape(-1, NUM_BINS)
        return (rows @ weights + self.bias) * self.std + self.mean


def _stack(frames: np.ndarray, count: int) -> np.ndarray:
    """Concatenates the last frames at each step, the oldest first."""
    padded = np.pad(frames, ((0, 0), (count - 1, 0), (0, 0)))
    length = frames.shape[1]
    return np.concatenate([padded[:, i : i + length] for i in range(count)], axis=-1)


def fit(
    data: Timit, frames: int, penalties: Sequence[float] = PENALTIES
) -> LinearPrediction:
    """Fits a linear prediction, with the penalty that is best on validation data."""
    # A bin that never changes is predicted by the bias alone.
    std = np.where(data.std > 0, data.std, 1.0)

    def moments(batches: Any) -> np.ndarray:
        """Returns the mean products of all pairs of inputs, a constant 1, targets."""
        total, count = np.zeros(()), 0
        for x, y, weight in batches:
            inputs, targets = ((np.asarray(a) - data.mean) / std for a in (x, y))
            ones = np.ones((*inputs.shape[:2], 1))
            rows = np.concatenate([_stack(inputs, frames), ones, targets], axis=-1)
            valid = rows[np.asarray(weight) > 0]
            total, count = total + valid.T @ valid, count + len(valid)
        return total / count

    train, valid = moments(data.train), moments(data.valid)
    of_inputs, with_targets = np.split(train[:-NUM_BINS], [-NUM_BINS], axis=1)
    found = []
    for penalty in penalties:
        ridge = np.full(len(of_inputs), penalty)
        ridge[-1] = 0
        weights = np.linalg.solve(of_inputs + np.diag(ridge), with_targets)
        # The targets minus the weighted inputs.
        left = np.concatenate([-weights, np.eye(NUM_BINS)])
        errors = np.einsum("ib,ij,jb->b", left, valid, left, optimize=True)
        found.append((errors @ std**2, penalty, weights))
    _, penalty, weights = min(found, key=lambda each: each[0])
    kernel = weights[:-1].reshape(frames, NUM_BINS, NUM_BINS)
    return LinearPrediction(kernel, weights[-1], data.mean, std, penalty)
