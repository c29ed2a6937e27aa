"""What maps refuse, and what they say of it: one table of calls and messages."""

import numpy as np
import pytest

from keras_ortho import OrthoRNN
from keras_ortho import parametrizations as sets
from keras_ortho.parametrizations import givens
from keras_ortho.parametrizations.cayley import diagonal_signs
from keras_ortho.training_callbacks import Rebase

pytestmark = pytest.mark.backends

EYE, HALF, CAYLEY = np.eye(4), np.ones(3, "float16"), sets.ScaledCayley()
ANTISYMMETRIC, EXPONENTIAL = sets.Antisymmetric(), sets.SkewExponential()


def built(kind):
    return OrthoRNN(8, kind).build((None, 3, 2))


# Functions, arguments of a call, and what is said of them.
CALLS = [
    (sets.scaled_cayley, (HALF, HALF), "`entries` must be of float32"),
    *(
        (diagonal_signs, (5, n), "`negative_ones` must .*Received: negative_ones=")
        for n in (-1, 6, 1.5, -0.1, "half", None, True, 2.0)
    ),
    *(
        (EXPONENTIAL.matrix, (np.zeros(s),), "entries must have .* Received: ")
        for s in ((), (2,), (3, 3))
    ),
    *(
        (measure, (np.ones(s),), "`matrix` must be square. Received: matrix.shape=")
        for measure in (sets.orthogonality_error, sets.spectral_radius)
        for s in ((3,), (2, 3), (0, 0), (2, 2, 2))
    ),
    (ANTISYMMETRIC.inverse, (np.eye(2),), "Received: a matrix with a distance of 2.8e"),
    (sets.Antisymmetric(0.1).inverse, (0 * EYE,), "-diffusion = -0.1.* Received"),
    (ANTISYMMETRIC.distance, (1j * EYE,), "`matrix` must .*real.* Received"),
    *((CAYLEY.sample, (n,), "`size` must .* Received: size=") for n in (1.5, 0)),
    (EXPONENTIAL.inverse, (np.diag([1.0, -1.0]),), "Received: a determinant of -1"),
    *((sets.Heads, (CAYLEY, n), "`heads`.*Received") for n in (0, 2.0)),
    *(
        (sets.Rebased, (kind,), "`parametrization` must .* Received")
        for kind in (sets.Householder(), sets.Rebased(CAYLEY), 3)
    ),
    *((sets.Rebased, (CAYLEY, n), "`rebase_every` must .* Received") for n in (0, 1.5)),
    (Rebase, (0,), "`every` must .* Received"),
    (sets.ScaledCayley(7).variables, (6,), "`negative_ones`.*Received"),
    (sets.Heads(sets.ScaledCayley(4), 2).variables, (6,), "`negative_ones`.*Received"),
    (sets.Heads(CAYLEY, 4).variables, (6,), "`units`.*Received"),
    (sets.Heads(CAYLEY, 2).distance, (np.eye(5),), "Received"),
    (sets.Householder(7).variables, (6,), "`reflections`.*Received"),
    (sets.GivensUnitary(2).variables, (5,), "even.*Received"),
    (sets.GivensOrthogonal().variables, (6,), "power of two.*Received: units=6"),
    (sets.EigenvalueNormalized(4, 2).variables, (5,), "`units` must be.*Received"),
    # A smaller array would be repeated.
    (built, (sets.RealSchur(radii_initializer=np.ones(1)),), "radii_init.*Received"),
]
# Those of matrices that must be square and finite, and real or orthogonal or both.
INVERSES = {
    CAYLEY.inverse: ("real", "orthogonal"),
    sets.ScaledCayleyUnitary.inverse: ("orthogonal",),
    givens.givens_orthogonal_inverse: ("real", "orthogonal"),
    givens.givens_unitary_inverse: ("orthogonal",),
    sets.Householder().inverse: ("real", "orthogonal"),
    EXPONENTIAL.inverse: ("real", "orthogonal"),
    sets.RealSchur().inverse: ("real",),
    ANTISYMMETRIC.inverse: ("real",),
}
BAD = [
    (np.ones((2, 4)), r"matrix.shape=\(2, 4\)", ""),
    (np.full((4, 4), np.nan), "NaN or infinite", ""),
    (1j * EYE, "matrix.dtype=complex128", "real"),
    (1.001 * EYE, "a distance of", "orthogonal"),
]
CALLS += [
    (inverse, (matrix,), f"`matrix` must .*Received: .*{message}")
    for inverse, kinds in INVERSES.items()
    for matrix, message, kind in BAD
    if kind in ("", *kinds)
]


@pytest.mark.parametrize(("call", "arguments", "message"), CALLS)
def test_what_is_refused(call, arguments, message):
    with pytest.raises(ValueError, match=message):
        call(*arguments)
