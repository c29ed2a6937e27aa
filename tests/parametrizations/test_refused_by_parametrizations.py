"""What maps refuse, and what they say of it: one table of calls and messages."""

import numpy as np
import pytest

from keras_ortho import parametrizations as sets
from keras_ortho.initializers import UnitaryComposition
from keras_ortho.parametrizations import arithmetic, givens, householder, skew
from keras_ortho.parametrizations.cayley import diagonal_signs
from keras_ortho.parametrizations.svd import bounded_logits
from keras_ortho.training_callbacks import Rebase

pytestmark = pytest.mark.backends

EYE, NAN = np.eye(4), np.full((4, 4), np.nan)
HALF = np.ones(3, "float16")


def zeros(*shapes):
    return map(np.zeros, shapes)


# Of each function its calls: arguments, and what is said of them.
CALLS = {
    sets.scaled_cayley: [
        ((HALF, HALF), "`entries` must be of float32"),
        ((np.ones(3), np.ones(4)), r"`entries`.* Received: entries.shape=\(3,\)"),
        *(  # A column would scale the rows.
            ((np.array([0.5]), np.array(signs)), "n `signs`. Received: .*signs.shape=")
            for signs in ([[1.0], [-1.0]], [[1.0, -1.0]], 1.0)
        ),
    ],
    sets.scaled_cayley_unitary: [
        (zeros(3, 3, 3), r"Received: skew.shape=\(3,\), symmetric.shape=\(3,\)"),
    ],
    diagonal_signs: [
        ((5, n), "`negative_ones` must .*Received: negative_ones=")
        for n in (-1, 6, 1.5, -0.1, "half", None, True, 2.0)
    ],
    sets.skew_exponential: [
        ((HALF,), "`entries` must be of float32"),
        ((np.arange(3),), "`entries` must be of float32"),
        *(
            (zeros(s), "`entries` must have .* Received: ")
            for s in ((), (1, 2), (3, 3))
        ),
    ],
    sets.antisymmetric: [
        (zeros(s), "`entries` must have .* Received: ") for s in ((), (1, 2), (3, 3))
    ],
    skew.matrix_size: [((n,), f"Received: entries={n}") for n in (2, 4, -1, 7)],
    sets.antisymmetric_inverse: [
        ((np.eye(2),), "Received: a matrix with a distance of 2.8e"),
        ((np.ones((2, 2)) - np.eye(2),), "Received: a matrix with a distance"),
        ((np.zeros((3, 3)), 0.1), "-diffusion = -0.1.* Received"),
    ],
    sets.antisymmetry_error: [((1j * EYE,), "`matrix` must contain real.* Received")],
    sets.householder_product: [
        ((HALF, 2), "`reflectors` must be of float32"),
        ((np.ones(3), 2, 5), "`columns` must lie between 0 and the order, 2.*Received"),
        *(
            ((np.zeros(shape), 3), "`reflectors` must .*Received: reflectors.shape")
            for shape in ((4,), (0,), (7,), (3, 3))
        ),
    ],
    householder.check_pair: [
        ((pair, 5), "`reflections` must .*Received: reflections=")
        for pair in (0, 6, -1, 2.0, True, "all", (1,), (1, 2, 3), (1, 6), (0, 1))
    ],
    givens.angles_shape: [
        ((5, "tunable", 2), '`units` must be even for style="tunable".*units=5'),
        ((6, "fft", None), "`units` must be a power of two.*Received: units=6"),
        ((1, "fft", None), "`units` must be a power of two.*Received: units=1"),
        *(
            ((4, "tunable", n), f"`capacity` must be .*Received: capacity={n}")
            for n in (3, 0, -2, 2.0, None)
        ),
        ((4, "banded", 2), "`style` must be .*Received: style='banded'"),
    ],
    sets.givens_unitary: [
        (zeros((1, 4), (1, 4), 5), "`units` must .*Received: units"),
        (zeros((1, 3), (1, 1), 4), "`phases` must .*Received: phases"),
        (zeros((1, 3), (1, 3), 3), "`output_phases` must .*Received: output_phases"),
    ],
    sets.givens_orthogonal: [
        ((np.zeros((3, 2)), None, "fft"), "`angles` must .*Received: angles.shape"),
        ((np.ones(3),), "`angles` must have the shape.*Received"),
        ((HALF[None],), "`angles` must be of float32"),
    ],
    sets.givens_orthogonal_inverse: [((np.eye(3),), r"even order.*shape=\(3, 3\)")],
    sets.givens_unitary_inverse: [((np.eye(3),), r"even order.*shape=\(3, 3\)")],
    sets.restricted_unitary: [
        (zeros((3, 4), (2, 4), 4), r"Received: phases.shape=\(3, 4\), reflectors.sh"),
    ],
    UnitaryComposition(): [(((),), "`shape` must be .*Received")],
    sets.schur_inverse: [((EYE, "log"), "`map` must .*Received: map='log'")],
    sets.schur_matrix: [
        ((*zeros(1, 1, 1, 1), "log"), "`map` must .*Received: map='log'"),
        (zeros(6, 6, 2, 1), r"Received: entries.shape=\(6,\)"),
    ],
    sets.svd_matrix: [
        ((np.ones(3), np.ones(3), np.asarray(values), (2, 2)), "`singular_values` must")
        for values in (np.ones(1), np.ones(3), 2.0)
    ],
    sets.spectral_deviation: [
        ((np.ones(3),), "`matrix` must be a matrix.*Received"),
        ((1j * EYE,), "`matrix` must contain real.*Received"),
    ],
    bounded_logits: [
        ((np.array([1.0, 1.1]), 0.0, 1.0), "Received: between 1.0 and 1.1"),
        ((np.array([1.01 + 1e-7]), 0.01, 1.0), "values of `matrix` must lie between"),
    ],
    sets.spectral_radius: [((EYE.astype("float16"),), "`matrix` must be of float32")],
    sets.orthogonality_error: [
        (zeros(s), "must be square. Received: matrix.shape=")
        for s in (3, (2, 3), (2, 2, 2))
    ],
    sets.unitarity_error: [
        ((np.eye(3),), r"Received: matrix.shape=\(3, 3\)"),
        ((np.float64(1),), r"Received: matrix.shape=\(\)"),
        ((np.diag([1.0, -1.0]),), "real form of a complex matrix.*Received"),
    ],
    arithmetic.complex_matrix: [
        (("it", EYE, 3), r"\(3, 3\) or, .* \(6, 6\). Received: it.shape=\(4, 4\)"),
        (("it", np.ones(3), 3), r"Received: it.shape=\(3,\)"),
        (("it", np.diag([1.0, 1, 1, -1]), 2), "`it` of twice .*Received: another"),
    ],
    sets.random_orthogonal: [
        ((n,), "`size` must be .* Received: size=") for n in (1.5, "many", 0, -1)
    ],
    sets.random_unitary: [((0,), "`size` must be .* Received: size=")],
    sets.Heads: [
        ((sets.Heads(sets.ScaledCayley(), 2), 2), "`parametrization`.*Received"),
        ((sets.ScaledCayley(), 0), "`heads`.*Received"),
        ((sets.ScaledCayley(), 2.0), "`heads`.*Received"),
    ],
    sets.Rebased: [
        *(
            ((kind,), "`parametrization` must .* Received")
            for kind in (
                sets.Householder(),
                sets.Rebased(sets.ScaledCayley()),
                sets.Heads(sets.ScaledCayley(), 2),
            )
        ),
        ((sets.ScaledCayley(), 0), "`rebase_every` must .* Received"),
        ((sets.ScaledCayley(), 1.5), "`rebase_every` must .* Received"),
    ],
    Rebase: [((0,), "`every` must .* Received")],
    sets.ScaledCayley(7).variables: [((6,), "`negative_ones`.*Received")],
    sets.Heads(sets.ScaledCayley(4), 2).variables: [((6,), "`negative_ones`.*Recei")],
    sets.Heads(sets.ScaledCayley(), 4).variables: [((6,), "`units`.*Received")],
    sets.Heads(sets.ScaledCayley(), 2).distance: [((np.eye(5),), "Received")],
    sets.Householder(7).variables: [((6,), "`reflections`.*Received")],
    sets.GivensUnitary(2).variables: [((5,), "even.*Received")],
    sets.EigenvalueNormalized(4, 2).variables: [((5,), "number of units.*Received")],
    sets.EigenvalueNormalized(2, 2).distance: [((np.eye(3),), "Received")],
}
# Those of matrices that must be square and finite, and real or orthogonal or both.
INVERSES = {
    sets.scaled_cayley_inverse: ("real", "orthogonal"),
    sets.scaled_cayley_unitary_inverse: ("orthogonal",),
    sets.givens_orthogonal_inverse: ("real", "orthogonal"),
    sets.givens_unitary_inverse: ("orthogonal",),
    sets.householder_inverse: ("real", "orthogonal"),
    sets.skew_logarithm: ("real", "orthogonal"),
    sets.schur_inverse: ("real",),
    sets.antisymmetric_inverse: ("real",),
    sets.svd_inverse: ("real", "any shape"),
}
BAD = [
    (np.ones((2, 4)), r"matrix.shape=\(2, 4\)", "square"),
    (np.ones(4), r"matrix.shape=\(4,\)", ""),
    (np.zeros((0, 0)), r"matrix.shape=\(0, 0\)", ""),
    (NAN, "NaN or infinite", ""),
    (1j * EYE, "matrix.dtype=complex128", "real"),
    (np.full((4, 4), "1"), "matrix.dtype=<U1", "orthogonal"),
    (np.zeros((4, 4)), "a distance of 2.0", "orthogonal"),
    (1.001 * EYE, "a distance of", "orthogonal"),
]
MATRICES = [
    (inverse, (matrix,), f"`matrix` must .*Received: .*{message}")
    for inverse, kinds in INVERSES.items()
    for matrix, message, kind in BAD
    if kind in ("", *kinds) or (kind == "square" and "any shape" not in kinds)
]


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [(call, tuple(a), m) for call, rows in CALLS.items() for a, m in rows] + MATRICES,
)
def test_what_is_refused(call, arguments, message):
    with pytest.raises(ValueError, match=message):
        call(*arguments)
