"""Each parametrization with its definition in NumPy."""

import math
from functools import partial

import keras
import numpy as np
import scipy.linalg

from keras_ortho import parametrizations as sets
from keras_ortho.parametrizations.givens import MAX_UNROLLED
from tests import reference

N = 6


def rotated(angles, signs=1, style="tunable"):
    n = angles.shape[1] + 1 if style == "tunable" else 2 * angles.shape[1]
    return reference.rotations(style, angles, 0 * angles, np.zeros(n)).real * signs


def singular_values(logits):
    return 0.75 + 2 * 0.25 * (1 / (1 + np.exp(-logits)) - 0.5)


def bounded(left, right, logits):
    """Equations 4, 7 and 8 of the svdRNN paper, whose `U` is the right factor here."""
    n = len(logits)
    return reference.svd(left, right, singular_values(logits), n, n)


def factorized(left, left_signs, right, right_signs, logits):
    left = reference.scaled_cayley(left, left_signs)
    right = reference.scaled_cayley(right, right_signs)
    return left * singular_values(logits) @ right.T


def householder(reflectors, m=None):
    sizes = range(1, 100)
    counts = {n: sum(range(n - (m or n) + 1, n + 1)) for n in sizes}
    (n,) = (n for n in sizes if counts[n] == len(reflectors))
    return reference.householder(reflectors, n).T


def skew(entries):
    return reference.skew(entries, (1 + math.isqrt(1 + 8 * len(entries))) // 2)


def exponential(entries):
    return reference.exponential(entries, len(skew(entries)))


def diffused(matrix):
    return matrix - 0.25 * np.eye(len(matrix))


def full(parts):
    return parts[0] + 1j * parts[1]


def in_heads(map, heads):
    def whole(*values):
        size = len(values) // heads
        parts = [values[i : i + size] for i in range(0, len(values), size)]
        return scipy.linalg.block_diag(*(map(*part) for part in parts))

    return whole


def rebased(base, passes, entries, *rest, map=reference.scaled_cayley):
    *signs, origin = rest
    return base @ map(entries - origin, *signs)


def rebased_unitary(base, passes, skew, symmetric, phases, *origins):
    free = [a - b for a, b in zip((skew, symmetric, phases), origins, strict=True)]
    return reference.as_complex(base) @ reference.unitary_cayley(*free)


CAYLEY, UNITARY = sets.ScaledCayley(1), sets.ScaledCayleyUnitary()
REBASED, ONE = sets.Rebased(CAYLEY, 2), sets.Householder(1)
EXPONENTIAL, ONES = sets.SkewExponential(), keras.initializers.Ones()
MANY = MAX_UNROLLED + 4
cayley, unitary = reference.scaled_cayley, reference.unitary_cayley
schur = reference.real_schur
rebased_exponential = partial(rebased, map=exponential)
householder_1 = partial(householder, m=1)
turns = partial(reference.rotations, "tunable")
butterflies = partial(reference.rotations, "fft")
# The first size, and others.
NONE, ALL, EVEN, POWERS = (N,), (N, 1, 2, 7, 17), (N, 2, 10), (8, 2, 4, 16)
# Each with values of all its arguments that are not their defaults, its definition in
# NumPy, and sizes.
TABLE = {
    "cayley": (CAYLEY, cayley, (*ALL, 33, 64)),
    "unitary-cayley": (UNITARY, unitary, ALL),
    "antisymmetric": (sets.Antisymmetric(0.25), lambda a: diffused(skew(a)), ALL),
    "unstructured": (sets.Unstructured(0.25), diffused, ALL),
    "householder": (sets.Householder(), householder, (*ALL, 40)),
    "few-reflectors": (sets.Householder(2), lambda u: householder(u, 2), (N, 2, 17)),
    "svd": (sets.SVD(None, 0.25, 0.75), bounded, ALL),
    "few-reflectors-svd": (sets.SVD((3, 2), 0.25, 0.75), bounded, (N, 3)),
    "factorized": (sets.FactorizedCayley(0.25, 0.75), factorized, ALL),
    "rotations": (sets.GivensOrthogonal(None, "tunable"), rotated, EVEN),
    "few-rotations": (sets.GivensOrthogonal(2, "tunable"), rotated, EVEN),
    "few-fft": (sets.GivensOrthogonal(), partial(rotated, style="fft"), POWERS),
    "unitary-rotations": (sets.GivensUnitary(N, "tunable"), turns, NONE),
    "few-unitary-rotations": (sets.GivensUnitary(4), turns, EVEN),
    "many-unitary-rotations": (sets.GivensUnitary(MANY), turns, NONE),
    "few-unitary-fft": (sets.GivensUnitary(style="fft"), butterflies, POWERS),
    "schur": (sets.RealSchur("cayley", ONES), partial(schur, map="cayley"), ALL),
    "schur-exponential": (sets.RealSchur(), partial(schur, map="exponential"), ALL),
    "restricted": (sets.RestrictedUnitary(), reference.restricted_unitary, ALL),
    "full": (sets.FullUnitary(), full, ALL),
    "half-full": (sets.FullUnitary(half_gradient=True), full, NONE),
    "enrnn": (sets.EigenvalueNormalized(4, 2, 1, True, 0.5), None, NONE),
    "enrnn-uncoupled": (sets.EigenvalueNormalized(4, 2, coupling=False), None, NONE),
    "exponential": (EXPONENTIAL, exponential, (*ALL, 33)),
    "rebased": (REBASED, rebased, ALL),
    "rebased-unitary": (sets.Rebased(UNITARY), rebased_unitary, ALL),
    "rebased-exponential": (sets.Rebased(EXPONENTIAL, 3), rebased_exponential, ALL),
    "heads": (sets.Heads(CAYLEY, 2), in_heads(cayley, 2), EVEN),
    "unitary-heads": (sets.Heads(UNITARY, 3), in_heads(unitary, 3), NONE),
    "rebased-heads": (sets.Heads(REBASED, 2), in_heads(rebased, 2), EVEN),
    "few-reflectors-in-heads": (sets.Heads(ONE, 2), in_heads(householder_1, 2), EVEN),
}
