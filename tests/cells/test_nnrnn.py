import keras
import numpy as np
import pytest

from keras_ortho import NNRNN, NNRNNCell
from keras_ortho.parametrizations import orthogonality_error
from keras_ortho.regularizers import UnitRadii
from tests import reference
from tests.cells.building import assert_gradients, builder, lively, weights_of

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps
# JAX compiles each operation for each size: there, one does.
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
FREE = ("recurrent_skew", "schur_upper", "schur_radii", "schur_angles")


built = builder(NNRNN, 6)


def nnrnn(x, weights, map):
    w = reference.real_schur(*(weights[name] for name in FREE), map=map)
    h, states = np.zeros((len(x), len(w))), []
    for t in range(x.shape[1]):
        h = reference.modrelu(x[:, t] @ weights["kernel"] + h @ w, weights["bias"])
        states.append(h)
    return np.stack(states, axis=1)


@pytest.mark.parametrize("map", ["exponential", "cayley"])
@pytest.mark.parametrize("n", [1, 2, 7, 16] if ON_TENSORFLOW else [7])
def test_against_numpy(n, map):
    layer = lively(built(units=n, map=map, return_sequences=True, dtype="float64"), 0.3)
    x = np.random.default_rng(1).normal(size=(4, 9, 3))
    expected = nnrnn(x, weights_of(layer), map)
    np.testing.assert_allclose(
        layer(x), expected, atol=1000 * n * EPS64 * np.abs(expected).max()
    )


@pytest.mark.parametrize("map", ["exponential", "cayley"])
@pytest.mark.parametrize("n", [2, 5] if ON_TENSORFLOW else [7])
def test_gradients(n, map):
    layer = lively(built(units=n, map=map, dtype="float64"), 0.3)
    assert_gradients(
        layer,
        lambda x, weights: nnrnn(x, weights, map)[:, -1],
        atol=1000 * n * EPS64 ** (2 / 3),
        shape=(2, 4, 3),
    )


@pytest.mark.parametrize("map", ["exponential", "cayley"])
@pytest.mark.slow_on_jax
def test_starts_with_the_papers_settings(map):
    layer = built(units=64, map=map)
    weights = weights_of(layer)
    np.testing.assert_array_equal(weights["schur_upper"], 0)
    np.testing.assert_array_equal(weights["schur_radii"], 1)
    assert np.count_nonzero(weights["recurrent_skew"]) == 32
    assert np.abs(weights["bias"]).max() <= 0.01
    # All around the circle.
    assert weights["schur_angles"].min() < -2 < 2 < weights["schur_angles"].max()
    # So it starts orthogonal.
    assert orthogonality_error(layer.recurrent_matrix()) <= 10 * 64 * EPS32


@pytest.mark.parametrize("map", ["exponential", "cayley"])
@pytest.mark.parametrize("n", [1, 4, 9] if ON_TENSORFLOW else [7])
@pytest.mark.slow_on_jax
def test_set_recurrent_matrix(n, map):
    pytest.importorskip("scipy")
    layer = built(units=n, map=map, dtype="float64")
    matrix = np.random.default_rng(0).normal(size=(n, n))
    layer.set_recurrent_matrix(matrix)
    np.testing.assert_allclose(
        layer.recurrent_matrix(),
        matrix,
        atol=10 * n * EPS64 * np.linalg.norm(matrix, 2),
    )


def test_starts_from_a_matrix_that_is_not_orthogonal():
    pytest.importorskip("scipy")
    matrix = np.triu(np.ones((5, 5)))
    layer = built(units=5, recurrent_initializer=matrix)
    np.testing.assert_allclose(layer.recurrent_matrix(), matrix, atol=250 * EPS32)


def test_penalty_of_the_radii():
    layer = built(units=5, radii_regularizer=UnitRadii(0.1))
    layer.cell.schur_radii.assign([1.0, 3.0, -1.0])
    layer(np.zeros((1, 2, 3)))
    assert [float(loss) for loss in layer.losses] == [pytest.approx(0.1 * 8)]
    again = NNRNN.from_config(layer.get_config())
    assert isinstance(again.cell.radii_regularizer, UnitRadii)
    assert again.cell.radii_regularizer.strength == 0.1
    assert keras.saving.get_registered_name(UnitRadii) == "keras_ortho>UnitRadii"


@pytest.mark.parametrize("strength", [-1.0, np.inf, np.nan, "strong"])
def test_penalty_of_no_strength(strength):
    with pytest.raises(ValueError, match="`strength` must be .*Received: strength="):
        UnitRadii(strength)


def test_one_regularizer_for_each_kind_of_variable():
    l1 = keras.regularizers.L1
    cell = NNRNNCell(
        4,
        recurrent_regularizer=l1(0.1),
        upper_regularizer=l1(0.2),
        radii_regularizer=None,
    )
    cell.build((None, 3))
    found = {v.name: float(v.regularizer.l1) for v in cell.variables if v.regularizer}
    assert found == pytest.approx(
        {
            "recurrent_skew": 0.1,
            "schur_upper": 0.2,
            "schur_radii": 0.1,
            "schur_angles": 0.1,
        }
    )


def test_unknown_map():
    for cls in (NNRNN, NNRNNCell):
        with pytest.raises(ValueError, match="`map` must .*Received: map='log'"):
            cls(4, map="log")
