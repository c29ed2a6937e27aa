import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ScoRNN, ScoRNNCell
from keras_ortho.optimizers import paper_optimizer
from keras_ortho.parametrizations import orthogonality_error
from tests import reference
from tests.cells.building import built, refused, weights_of
from tests.gradients import weight_gradients

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps


@pytest.mark.parametrize("name", ["scornn_n16_rho6", "scornn_n17_rho0"])
def test_parity_with_the_authors_code(data_dir, name):
    data = np.load(data_dir / "parity" / f"{name}.npz")
    n, m = data["W"].shape[0], data["U"].shape[0]
    layer = built(ScoRNN, n, features=m, return_sequences=True)
    layer.cell.set_author_weights(data["A"], data["D"], data["U"], data["b"])
    np.testing.assert_allclose(layer.recurrent_matrix(), data["W"], atol=n * EPS32)

    # Float32 rounding: of the sums of n products in each of the steps.
    atol = data["x"].shape[1] * n * EPS32
    np.testing.assert_allclose(layer(data["x"]), data["h"], atol=atol)

    value, found = weight_gradients(
        layer, lambda h: ops.mean(ops.square(h - data["y"])), data["x"]
    )
    assert value == pytest.approx(float(data["loss"]), rel=float(10 * n * EPS32))
    upper = np.triu_indices(n, 1)
    expected = {
        "kernel": data["grad_U"],
        "bias": data["grad_b"],
        "recurrent_skew": data["grad_A"][upper],
    }
    assert set(found) == set(expected)
    for key, gradient in expected.items():
        np.testing.assert_allclose(
            found[key], gradient, atol=atol * np.abs(gradient).max(), err_msg=key
        )

    model = keras.Sequential([keras.Input((None, m)), layer])
    rate = float(data["sgd_lr"])
    model.compile(keras.optimizers.SGD(rate), "mse")
    model.train_on_batch(data["x"], data["y"])
    skew = weights_of(layer)["recurrent_skew"]
    step = rate * np.abs(data["grad_A"]).max()
    np.testing.assert_allclose(
        skew, data["A_next"][upper], atol=EPS32 * np.abs(skew).max() + atol * step
    )
    np.testing.assert_allclose(
        layer.recurrent_matrix(), data["W_next"], atol=n * EPS32 + atol * step
    )


def test_author_weights():
    random = np.random.default_rng(0)
    a = reference.skew(random.normal(size=10), 5)
    d = np.array([1.0, -1, 1, -1, -1])
    cell = built(ScoRNNCell, 5, dtype="float64")
    kernel, bias = random.normal(size=(3, 5)), random.normal(size=5)
    cell.set_author_weights(a, np.diag(d), kernel, bias)
    weights = weights_of(cell)
    np.testing.assert_array_equal(weights["kernel"], kernel)
    np.testing.assert_array_equal(weights["bias"], bias)
    np.testing.assert_allclose(
        cell.recurrent_matrix(),
        reference.scaled_cayley(a[np.triu_indices(5, 1)], d),
        atol=1000 * EPS64,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.eye(5)}, r"`A` must be skew.*Received: .* = 2.0"),
        ({"A": np.zeros((4, 4))}, r"Received: A.shape=\(4, 4\)"),
        ({"A": np.full((5, 5), np.nan)}, "`A` must be skew"),
        ({"D": np.zeros(5)}, "entries of `D` must be 1 or -1. Received: D="),
        ({"D": np.ones((4, 4))}, r"Received: D.shape=\(4,\)"),
        ({"U": np.ones((1, 4))}, r"Received: U.shape=\(1, 4\)"),
        ({"b": np.ones(4)}, r"Received: b.shape=\(4,\)"),
    ],
)
def test_author_weights_that_do_not_fit(change, message):
    cell = built(ScoRNNCell, 5)
    good = {"A": np.zeros((5, 5)), "D": np.ones(5), "U": np.ones((3, 5))}
    with refused(cell, message):
        cell.set_author_weights(**{**good, **change})
    a = np.zeros((5, 5))
    a[0, 4], a[4, 0] = 1, -1
    with pytest.raises(ValueError, match="zero outside of its 5 blocks"):
        built(ScoRNNCell, 5, heads=5).set_author_weights(a, np.ones(5))


@pytest.mark.slow
def test_stays_orthogonal_over_a_thousand_steps():
    """At n = 512 in float32, with the norm of A that the bound speaks of."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((20, 8)), ScoRNN(512), keras.layers.Dense(8)])
    model.compile(paper_optimizer(), "mse")
    random = np.random.default_rng(0)
    x = random.normal(size=(32_000, 20, 8)).astype("float32")
    before = weights_of(model.layers[0])["recurrent_skew"]
    model.fit(x, x.sum(axis=1), batch_size=32, verbose=0)
    assert int(model.optimizer.iterations) == 1000
    skew = weights_of(model.layers[0])["recurrent_skew"]
    assert np.abs(skew - before).max() > 0.01
    norm = np.linalg.norm(reference.skew(skew, 512), 2)
    error = orthogonality_error(model.layers[0].recurrent_matrix())
    print(f"||W^T W - I||_F = {error:.2e} at ||A||_2 = {norm:.2f}")
    assert error <= 512 * EPS32 * np.hypot(1, norm)
