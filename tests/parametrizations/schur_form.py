"""The real Schur form from its definition."""

import numpy as np
import pytest

from tests import reference

scipy_linalg = pytest.importorskip("scipy.linalg")


def schur_form(entries, upper, radii, angles, map):
    n = len(radii) + len(angles)
    a = reference.skew(entries, n)
    if map == "exponential":
        basis = scipy_linalg.expm(a)
    else:
        basis = reference.scaled_cayley(entries, np.ones(n))
    triangle = np.zeros((n, n))
    triangle[np.triu_indices(n, 1)] = upper
    for j, t in enumerate(angles):
        block = [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]
        triangle[2 * j : 2 * j + 2, 2 * j : 2 * j + 2] += radii[j] * np.array(block)
    if n % 2:
        triangle[-1, -1] = radii[-1]
    return basis @ triangle @ basis.T
