"""Layers that are set to a matrix, or start from one, and what they refuse."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import (
    ENRNN,
    EURNN,
    GORU,
    NNRNN,
    ORNN,
    SVDRNN,
    AntisymmetricRNN,
    FactorizedRNN,
    FullURNN,
    RestrictedURNN,
    ScoRNN,
    ScuRNN,
)
from keras_ortho.initializers import HenaffSkew, UniformReflectors
from tests import reference
from tests.cells.building import refused, weights_of
from tests.gradients import weight_gradients
from tests.reference import random_orthogonal, random_unitary
from tests.saving import reloaded

pytestmark = [pytest.mark.backends, pytest.mark.slow_on_jax]

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps


def built(cls, *args, **kwargs):
    layer = cls(*args, **kwargs)
    layer.build((None, None, 3))
    return layer


rotation, unitary = random_orthogonal(6, 0), random_unitary(6)
mirrored = rotation * [-1, 1, 1, 1, 1, 1]
orthogonal = [rotation, mirrored, -np.eye(6), np.eye(6)[::-1]]
values = np.random.default_rng(0).uniform(0.3, 1.2, size=6)
stretched = [rotation * values @ random_orthogonal(6, 1), mirrored * values]
skew = reference.skew(np.random.default_rng(0).normal(size=15), 6) - 0.1 * np.eye(6)
anything = np.random.default_rng(0).normal(size=(6, 6))
spectrum = {"spectral_margin": 0.5, "spectral_center": 0.75}
SET = {
    "scornn": (ScoRNN, {}, orthogonal),
    "scurnn": (ScuRNN, {}, [unitary, *orthogonal]),
    "full urnn": (FullURNN, {}, [unitary, *orthogonal]),
    "eurnn": (EURNN, {"capacity": 6}, [unitary, -np.eye(6)]),
    "goru": (GORU, {"style": "tunable"}, [rotation, mirrored]),
    "ornn": (ORNN, {}, orthogonal),
    "svdrnn": (SVDRNN, spectrum, stretched),
    "factorized": (FactorizedRNN, spectrum, stretched),
    "nnrnn": (NNRNN, {}, [anything]),
    "nnrnn, cayley": (NNRNN, {"map": "cayley"}, [anything]),
    "antisymmetric": (AntisymmetricRNN, {"diffusion": 0.1}, [skew]),
    "ablation": (AntisymmetricRNN, {"antisymmetric": False}, [anything]),
}


@pytest.mark.parametrize("name", SET)
def test_set_recurrent_matrix(name):
    cls, kwargs, matrices = SET[name]
    layer = built(cls, 6, **kwargs, dtype="float64")
    for matrix in matrices:
        expected = matrix
        if layer.cell.complex_state:
            expected = reference.complex_block(matrix + 0j)
        for given in (matrix, expected):
            layer.set_recurrent_matrix(given)
            found = layer.recurrent_matrix()
            np.testing.assert_allclose(found, expected, atol=1000 * EPS64)
    start = built(cls, 6, **kwargs, recurrent_initializer=matrix)
    np.testing.assert_allclose(start.recurrent_matrix(), expected, atol=1000 * EPS32)


def test_a_complex_array_is_saved(tmp_path):
    layer = ScuRNN(6, recurrent_initializer=unitary.astype("complex64"))
    model = keras.Sequential([keras.Input((None, 3)), layer])
    loaded = reloaded(model, tmp_path).layers[0]
    np.testing.assert_array_equal(loaded.recurrent_matrix(), layer.recurrent_matrix())


def test_signs_and_the_permutation_are_saved(tmp_path):
    """Which no optimizer changes, and no argument tells."""
    sco, restricted = ScoRNN(4, 0, return_sequences=True), RestrictedURNN(12)
    model = keras.Sequential([keras.Input((None, 3)), sco, restricted])
    sco.set_recurrent_matrix(-np.eye(4))
    for layer, found in zip(
        model.layers, reloaded(model, tmp_path).layers, strict=True
    ):
        matrix = layer.recurrent_matrix()
        np.testing.assert_array_equal(found.recurrent_matrix(), matrix)
    other = built(RestrictedURNN, 12)
    assert not np.array_equal(other.cell.permutation, restricted.cell.permutation)


def test_a_seed_fixes_all_that_is_drawn():
    def drawn(cls, initializer, *names):
        weights = weights_of(built(cls, 4, recurrent_initializer=initializer))
        return [weights[name] for name in names]

    for cls, make, *names in (
        (ScuRNN, HenaffSkew, "recurrent_skew_real", "recurrent_phases"),
        (SVDRNN, UniformReflectors, "left_reflectors", "right_reflectors"),
    ):
        first, again, other = (drawn(cls, make(seed=n), *names) for n in (3, 3, 4))
        for a, b, c in zip(first, again, other, strict=True):
            np.testing.assert_array_equal(a, b)
            assert not np.array_equal(a, c)
    phases = [drawn(ScuRNN, HenaffSkew(), "recurrent_phases")[0] for _ in range(2)]
    assert not np.array_equal(*phases)


def test_initializers_of_the_blocks_of_enrnn():
    small = 0.5 * random_orthogonal(3, 0)
    layer = built(
        ENRNN,
        6,
        3,
        recurrent_initializer=rotation,
        short_term_initializer=small,
        coupling_initializer=np.ones((3, 6)),
    )
    expected = np.block([[rotation, np.zeros((6, 3))], [np.ones((3, 6)), small]])
    np.testing.assert_allclose(layer.recurrent_matrix(), expected, atol=100 * EPS32)


def test_the_identity_can_be_trained():
    """Its reflectors are not zero, whose gradient would be."""
    layer = built(ORNN, 6, recurrent_initializer="identity", dtype="float64")
    x = np.random.default_rng(0).normal(size=(8, 10, 3))
    _, found = weight_gradients(layer, lambda h: ops.sum(h * h), x)
    *longer, last = np.split(found["reflectors"], np.cumsum(range(6, 1, -1)))
    assert all(np.abs(u).max() > 0 for u in longer)
    assert last == 0


few, eye = "`style` must be.*Received: style=", np.eye(4)
ablation = AntisymmetricRNN(4, antisymmetric=False)
REFUSED = [
    (ScoRNN(4), 2 * eye, "must be orthogonal"),
    (ScuRNN(4), 2j * eye, "must be unitary"),
    (ScuRNN(4), np.diag([1.0] * 7 + [-1.0]), "must be the real form of a complex"),
    (FullURNN(4), 2 * eye, "`matrix` must"),
    (RestrictedURNN(4), eye, r"matrix of shape \(4, 4\)"),
    (EURNN(4, 4), 2 * eye, "must be unitary"),
    (EURNN(4, 2), eye, few),
    (EURNN(4, style="fft"), eye, few),
    (GORU(4), eye, few),
    (ORNN(4), 0 * eye, "`matrix` must .*Received: "),
    (ORNN(4, 3), eye, r"must be 4 .*reflections=\(3,"),
    (SVDRNN(4), np.diag([1, 1, 1, 1.02]), "lie between 0.99 and 1.01. Received: b"),
    (FactorizedRNN(4), np.diag([1, 1, 1, 1.2]), "between 0.9 and 1.1. Received: b"),
    (FactorizedRNN(4), eye + 0.5j, "`matrix` must contain real numbers"),
    (AntisymmetricRNN(4), eye, "skew-symmetric.*Received: a matrix with"),
    (ablation, np.inf * np.ones((4, 4)), "must be finite"),
    (ENRNN(2, 2), np.diag([1, 1, 0.5, 1.5]), "at most 1. Received: 1.5"),
    (ENRNN(2, 2, coupling=False), np.tril(np.ones((4, 4))), "form .*coupling=False"),
]


@pytest.mark.parametrize(("layer", "matrix", "message"), REFUSED)
def test_matrices_that_do_not_fit(layer, matrix, message):
    layer.build((None, None, 3))
    with refused(layer, message):
        layer.set_recurrent_matrix(matrix)


@pytest.mark.parametrize(
    ("cls", "initializer", "message"),
    [
        (ScoRNN, "ones", "`recurrent_initializer` returned a matrix .*distance"),
        (ScoRNN, np.eye(4)[:2], "Received: .*shape"),
        (ScuRNN, 2j * np.eye(4), "Received: .*distance"),
        (SVDRNN, "glorot_uniform", "must lie between"),
        (AntisymmetricRNN, "orthogonal", "skew-symmetric"),
        (RestrictedURNN, "orthogonal", "cannot be decomposed.*Received: recurrent_"),
        (RestrictedURNN, np.eye(4), "cannot be decomposed.*Received: recurrent_"),
        (GORU, "identity", few),
    ],
    ids=str,
)
def test_initializers_that_do_not_fit(cls, initializer, message):
    with pytest.raises(ValueError, match=message):
        built(cls, 4, recurrent_initializer=initializer)
