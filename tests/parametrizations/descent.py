"""Whether descent takes free variables to a matrix."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from keras import ops

from tests.gradients import gradients


def descend(
    function: Callable[..., Any], start: list[np.ndarray], target: np.ndarray
) -> float:
    """The distance from the target that L-BFGS comes to, in float64."""
    optimize = pytest.importorskip("scipy.optimize")
    splits = np.cumsum([x.size for x in start])[:-1]

    def free(flat):
        parts = np.split(flat, splits)
        return [x.reshape(y.shape) for x, y in zip(parts, start, strict=True)]

    def value_and_gradient(flat):
        values = []

        def loss(*x):
            values.append(ops.sum(ops.square(function(*x) - target)))
            return values[-1]

        found = gradients(loss, *free(flat))
        return float(values[0]), np.concatenate([g.ravel() for g in found])

    result = optimize.minimize(
        value_and_gradient,
        np.concatenate([x.ravel() for x in start]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 3000, "ftol": 0, "gtol": 1e-12, "maxcor": 50},
    )
    return float(np.sqrt(result.fun))
