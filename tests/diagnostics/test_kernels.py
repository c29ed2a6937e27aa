"""Recurrent matrices of all kinds of layers, against their definitions in NumPy."""

import keras
import numpy as np
import pytest
from keras import layers

from keras_ortho import (
    ENRNN,
    GORU,
    SVDRNN,
    FactorizedRNN,
    FullURNN,
    ScoRNN,
    ScoRNNCell,
    ScuRNN,
    freeze,
)
from keras_ortho.diagnostics import (
    kernel_eigenvalues,
    manifold_distances,
    recurrent_matrices,
    singular_values,
    spectral_margins,
)
from tests import reference
from tests.diagnostics.networks import randomize, weights_of

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps


def model_of(*made):
    model = keras.Sequential([keras.Input((3, 2)), *made])
    randomize(model)
    return model


def test_scornn():
    layer = ScoRNN(5, dtype="float64", name="sco")
    model = model_of(layer)
    weights = weights_of(layer)
    expected = reference.scaled_cayley(
        weights["recurrent_skew"], weights["recurrent_signs"]
    )
    (found,) = recurrent_matrices(model).values()
    np.testing.assert_allclose(found, expected, rtol=0, atol=100 * EPS)
    # The bound of `orthogonality_error`, for ||A|| of order one.
    assert 0 < manifold_distances(model)["sco"] < 100 * EPS
    np.testing.assert_allclose(singular_values(model)["sco"], np.ones(5), atol=1e-14)
    values = kernel_eigenvalues(model)["sco"]
    np.testing.assert_allclose(np.abs(values), np.ones(5), atol=1e-14)
    np.testing.assert_allclose(
        np.poly(values), np.poly(expected), rtol=0, atol=1000 * EPS
    )
    # Of the layer by itself, and by its cell.
    assert recurrent_matrices(layer).keys() == {"sco"}


def test_stock_layers():
    model = model_of(
        layers.SimpleRNN(3, return_sequences=True, name="simple"),
        layers.LSTM(2, return_sequences=True, name="lstm"),
        layers.GRU(2, return_sequences=True, name="gru"),
        layers.RNN(
            [layers.SimpleRNNCell(2, name="a"), ScoRNNCell(3, name="b")], name="stack"
        ),
    )
    gates = np.concatenate([k * np.eye(2) for k in (1, 2, 3, 4)], axis=1)
    model.get_layer("lstm").cell.recurrent_kernel.assign(gates)
    model.get_layer("gru").cell.recurrent_kernel.assign(gates[:, :6])
    kernel = np.array([[3.0, 0, 0], [0, 0, 0.5], [0, -2.0, 0]])
    model.get_layer("simple").cell.recurrent_kernel.assign(kernel)
    found = manifold_distances(model)
    # ||(k^2 - 1) I||_F
    assert found["simple"] == pytest.approx(np.linalg.norm([8, 3, -0.75]))
    for k, name in enumerate(["input", "forget", "cell", "output"], 1):
        assert found[f"lstm/{name}"] == pytest.approx((k * k - 1) * 2**0.5)
    for k, name in enumerate(["update", "reset", "candidate"], 1):
        assert found[f"gru/{name}"] == pytest.approx((k * k - 1) * 2**0.5)
    assert found["stack/b"] < 1e-6
    assert len(found) == 1 + 4 + 3 + 2
    np.testing.assert_allclose(singular_values(model)["simple"], [3, 2, 0.5])
    assert spectral_margins(model)["simple"] == pytest.approx((0.5, 3, 2))
    assert spectral_margins(model, center=2.0)["simple"].margin == pytest.approx(1.5)
    np.testing.assert_allclose(
        np.sort_complex(kernel_eigenvalues(model)["simple"]), [-1j, 1j, 3], atol=1e-7
    )


def test_factors():
    """What is held on the manifold, of matrices that are off it as they may be."""
    svd = SVDRNN(4, spectral_margin=0.5, dtype="float64", name="svd")
    factorized = FactorizedRNN(
        3, 0.5, dtype="float64", return_sequences=True, name="factorized"
    )
    enrnn = ENRNN(3, 2, dtype="float64", return_sequences=True, name="enrnn")
    model = model_of(factorized, enrnn, svd)
    found = manifold_distances(model)
    sides = {f"{n}/{s}" for n in ("svd", "factorized") for s in ("left", "right")}
    assert found.keys() == sides | {"enrnn/long_term"}
    assert max(found.values()) < 100 * EPS
    margins = spectral_margins(model)
    for name in ("svd", "factorized"):
        assert 0.01 < margins[name].margin < 0.5
    assert recurrent_matrices(model)["enrnn"].shape == (5, 5)
    assert margins["enrnn"].margin > 0.01


def test_what_is_frozen_has_the_whole_matrix():
    """Nothing holds it on the manifold any more."""
    layer = ScuRNN(3, return_sequences=True, name="scu")
    model = freeze(model_of(layer, ENRNN(3, 2, name="enrnn")))
    found = manifold_distances(model)
    assert found.keys() == {"scu", "enrnn"}
    assert found["scu"] < 100 * np.finfo("float32").eps
    assert found["enrnn"] > 0.1


def test_a_matrix_off_the_manifold():
    layer = FullURNN(2, dtype="float64", name="full")
    model = model_of(layer)
    matrix = np.array([[1, 2j], [0.5, -1j]])
    layer.cell.recurrent_unitary.assign(np.stack([matrix.real, matrix.imag]))
    np.testing.assert_array_equal(recurrent_matrices(model)["full"], matrix)
    np.testing.assert_array_equal(
        layer.recurrent_matrix(), reference.complex_block(matrix)
    )
    expected = np.linalg.norm(matrix.conj().T @ matrix - np.eye(2))
    assert manifold_distances(model)["full"] == pytest.approx(expected)
    np.testing.assert_allclose(
        np.sort_complex(kernel_eigenvalues(model)["full"]),
        np.sort_complex(np.linalg.eigvals(matrix)),
    )


def test_low_precision():
    """Made in float32, whatever the variables are."""
    model = model_of(
        *(
            make(4, dtype="bfloat16", return_sequences=True)
            for make in (SVDRNN, GORU, FactorizedRNN)
        )
    )
    assert 0 < max(manifold_distances(model).values()) < 1e-5
