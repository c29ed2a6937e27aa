import numpy as np
import pytest
from keras import layers

from keras_ortho import ENRNN, SVDRNN, FactorizedRNN, FullURNN, ScoRNNCell, ScuRNN
from keras_ortho.deployment import freeze
from keras_ortho.diagnostics import manifold_distances, matrices, spectral_margins
from tests.diagnostics.networks import model_of

pytestmark = pytest.mark.backends


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
    kernel = np.array([[3.0, 0, 0], [0, 0, 0.5], [0, -2.0, 0]])
    for name, value in {"lstm": gates, "gru": gates[:, :6], "simple": kernel}.items():
        model.get_layer(name).cell.recurrent_kernel.assign(value)
    found = manifold_distances(model)
    expected = {"simple": np.linalg.norm([8, 3, -0.75])}
    lstm = ["lstm/input", "lstm/forget", "lstm/cell", "lstm/output"]
    for names in (lstm, ["gru/update", "gru/reset", "gru/candidate"]):
        for k, name in enumerate(names, 1):
            expected[name] = (k * k - 1) * 2**0.5  # ||(k^2 - 1) I||_F
    assert {n: found[n] for n in expected} == pytest.approx(expected)
    assert found["stack/b"] < 1e-6
    assert found.keys() - expected.keys() == {"stack/a", "stack/b"}
    np.testing.assert_allclose(matrices.singular_values(model)["simple"], [3, 2, 0.5])
    assert spectral_margins(model)["simple"] == pytest.approx((0.5, 3, 2))
    assert spectral_margins(model, center=2.0)["simple"].margin == pytest.approx(1.5)
    values = np.sort_complex(matrices.kernel_eigenvalues(model)["simple"])
    np.testing.assert_allclose(values, [-1j, 1j, 3], atol=1e-7)


def test_factors():
    """What is held on the manifold, of matrices that are off it as they may be."""
    given = {"dtype": "float64", "return_sequences": True}
    model = model_of(
        SVDRNN(4, spectral_margin=0.5, name="svd", **given),
        FactorizedRNN(3, 0.5, name="factorized", **given),
        ENRNN(3, 2, name="enrnn", **given),
    )
    found = manifold_distances(model)
    sides = {f"{n}/{s}" for n in ("svd", "factorized") for s in ("left", "right")}
    assert found.keys() == sides | {"enrnn/long_term"}
    # The bound of `orthogonality_error`, for ||A|| of order one.
    assert 0 < max(found.values()) < 100 * np.finfo("float64").eps
    margins = spectral_margins(model)
    assert all(0.01 < margins[name].margin < 0.5 for name in ("svd", "factorized"))
    assert matrices.recurrent_matrices(model)["enrnn"].shape == (5, 5)
    # Nothing holds a frozen matrix on the manifold any more.
    frozen = manifold_distances(freeze(model))
    assert frozen.keys() == {"svd", "factorized", "enrnn"}
    assert frozen["enrnn"] > 0.1


def test_a_complex_matrix_off_the_manifold():
    layer = FullURNN(2, dtype="float64", name="full")
    model = model_of(ScuRNN(3, return_sequences=True), layer)
    matrix = np.array([[1, 2j], [0.5, -1j]])
    layer.cell.recurrent_unitary.assign(np.stack([matrix.real, matrix.imag]))
    for each in (model, layer):
        np.testing.assert_array_equal(matrices.recurrent_matrices(each)["full"], matrix)
    near, far = manifold_distances(model).values()
    assert far == pytest.approx(np.linalg.norm(matrix.conj().T @ matrix - np.eye(2)))
    assert near < 1e-5
