import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ScoRNN, ScoRNNCell
from keras_ortho.activations import complex_modrelu, modrelu
from keras_ortho.initializers import HenaffSkew
from keras_ortho.optimizers import paper_optimizer
from keras_ortho.parametrizations import orthogonality_error
from tests import reference
from tests.cells.building import builder, refused, weights_of
from tests.gradients import gradients, weight_gradients

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps


built = builder(ScoRNN, 7)


def random_orthogonal(n, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]


@pytest.mark.parametrize(("n", "negative_ones"), [(1, 1), (2, 0), (7, 3), (16, 1.0)])
@pytest.mark.parametrize("masked", [False, True])
def test_against_numpy(n, negative_ones, masked):
    random = np.random.default_rng(0)
    layer = built(
        units=n,
        negative_ones=negative_ones,
        return_sequences=True,
        dtype="float64",
        kernel_initializer="glorot_uniform",
        bias_initializer=keras.initializers.RandomNormal(stddev=0.3),
    )
    x = random.normal(size=(4, 9, 3))
    mask = random.random((4, 9)) < 0.7 if masked else None
    expected = reference.scornn(x, weights_of(layer), mask=mask)
    # The recurrence preserves norms, so errors of n eps a step add up and no more.
    atol = 9 * 10 * n * EPS64 * np.abs(expected).max()
    np.testing.assert_allclose(layer(x, mask=mask), expected, atol=atol)


@pytest.mark.parametrize("activation", ["modrelu", "elu"])
def test_masks_of_numbers(activation):
    """What is not zero counts, in the gradient, too, and in Keras's loop."""
    x = np.random.default_rng(0).normal(size=(4, 9, 3)).astype("float32")
    mask = np.random.default_rng(1).random((4, 9)) < 0.7
    layer = built(activation=activation)
    expected, gradients = weight_gradients(layer, ops.sum, x, mask=mask, training=True)
    for numbers in (255 * mask.astype("uint8"), -0.5 * mask.astype("float32")):
        found, each = weight_gradients(layer, ops.sum, x, mask=numbers, training=True)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        for name, gradient in gradients.items():
            np.testing.assert_allclose(each[name], gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", ["relu", "tanh", None])
def test_other_activations(activation):
    layer = built(
        activation=activation,
        bias_initializer="ones",
        return_sequences=True,
        dtype="float64",
    )
    numpy_activation = {
        "relu": lambda z, b: np.maximum(z + b, 0),
        "tanh": lambda z, b: np.tanh(z + b),
        None: lambda z, b: z + b,
    }[activation]
    x = np.random.default_rng(0).normal(size=(2, 6, 3))
    expected = reference.scornn(x, weights_of(layer), activation=numpy_activation)
    # Keras's tanh gives float32 on JAX, whatever it gets.
    single = activation == "tanh" and keras.backend.backend() == "jax"
    atol = 100 * EPS32 if single else 1000 * EPS64
    np.testing.assert_allclose(layer(x), expected, atol=atol)


@pytest.mark.parametrize("name", ["scornn_n16_rho6", "scornn_n17_rho0"])
def test_parity_with_the_authors_code(data_dir, name):
    data = np.load(data_dir / "parity" / f"{name}.npz")
    n, m = data["W"].shape[0], data["U"].shape[0]
    layer = built(units=n, features=m, return_sequences=True)
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


@pytest.mark.slow_on_jax
def test_starts_with_the_papers_settings():
    layer = built(units=170, features=2, **ScoRNNCell.paper_arguments)
    weights = weights_of(layer)
    assert sum(w.size for w in layer.get_weights()) - 170 == 14_365 + 2 * 170 + 170
    assert np.abs(weights["kernel"]).max() <= 0.01
    np.testing.assert_array_equal(weights["bias"], 0)
    np.testing.assert_array_equal(weights["recurrent_signs"], [1] * 85 + [-1] * 85)
    assert np.count_nonzero(weights["recurrent_skew"]) == 85


@pytest.mark.parametrize("n", [1, 2, 9, 60])
@pytest.mark.slow_on_jax
def test_set_recurrent_matrix(n):
    layer = built(units=n, dtype="float64")
    for matrix in (random_orthogonal(n), -np.eye(n), np.eye(n)[::-1]):
        layer.set_recurrent_matrix(matrix)
        np.testing.assert_allclose(
            layer.recurrent_matrix(), matrix, atol=10 * n * n * EPS64
        )


def test_set_recurrent_matrix_that_is_not_orthogonal():
    cell = built(ScoRNNCell, units=4)
    with refused(cell, "must be orthogonal"):
        cell.set_recurrent_matrix(2 * np.eye(4))


def test_the_authors_weights_need_a_built_cell():
    with pytest.raises(ValueError, match="Received: sco_rnn_cell.* with built=False"):
        ScoRNNCell(3).set_author_weights(np.eye(3), np.eye(3))


@pytest.mark.parametrize(
    ("initializer", "expected"),
    [
        ("identity", np.eye(5)),
        (random_orthogonal(5), random_orthogonal(5)),
        (random_orthogonal(5).astype("float32"), random_orthogonal(5)),
        ("orthogonal", None),
        (keras.initializers.Orthogonal(seed=keras.random.SeedGenerator(0)), None),
    ],
)
@pytest.mark.slow_on_jax
def test_recurrent_initializer_that_yields_a_matrix(initializer, expected):
    cell = built(ScoRNNCell, units=5, recurrent_initializer=initializer)
    kernel = ops.convert_to_numpy(cell.recurrent_matrix())
    assert orthogonality_error(kernel) <= 5 * 5 * EPS32
    if expected is not None:
        np.testing.assert_allclose(kernel, expected, atol=50 * EPS32)
    assert np.abs(weights_of(cell)["recurrent_skew"]).max() <= 1 + 5 * EPS32
    model = keras.Sequential([keras.Input((None, 3)), keras.layers.RNN(cell)])
    clone = keras.models.clone_model(model)
    assert clone(np.ones((1, 2, 3))).shape == (1, 5)


@pytest.mark.parametrize("initializer", ["zeros", "glorot_uniform", np.eye(4)[:2]])
def test_recurrent_initializer_that_is_not_orthogonal(initializer):
    with pytest.raises(ValueError, match=r"Received: .*(distance|shape)"):
        built(ScoRNNCell, units=4, recurrent_initializer=initializer)


def test_other_henaff_angles():
    zero = HenaffSkew(0.0, 0.0)
    cell = built(ScoRNNCell, units=6, negative_ones=2, recurrent_initializer=zero)
    np.testing.assert_array_equal(
        cell.recurrent_matrix(), np.diag([1, 1, 1, 1, -1, -1])
    )


def test_author_weights():
    random = np.random.default_rng(0)
    a = reference.skew(random.normal(size=10), 5)
    d = np.array([1.0, -1, 1, -1, -1])
    cell = built(ScoRNNCell, units=5, dtype="float64")
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
        ({"A": np.full((5, 5), np.nan)}, "`A` must be finite. Received: NaN"),
        ({"U": np.full((3, 5), np.inf)}, "`U` must be finite. Received: NaN"),
        ({"D": np.zeros(5)}, "entries of `D` must be 1 or -1. Received: D="),
        ({"D": np.ones((5, 5))}, r"Received: D.shape=\(5, 5\)"),
        ({"U": np.zeros((5, 3))}, r"Received: U.shape=\(5, 3\)"),
        ({"b": np.zeros(4)}, r"Received: b.shape=\(4,\)"),
    ],
)
def test_author_weights_that_do_not_fit(change, message):
    cell = built(ScoRNNCell, units=5)
    good = {"A": np.zeros((5, 5)), "D": np.ones(5), "U": np.ones((3, 5))}
    with refused(cell, message):
        cell.set_author_weights(**{**good, **change})


def test_author_weights_across_heads():
    cell = built(ScoRNNCell, units=4, heads=2)
    a = np.zeros((4, 4))
    a[0, 3], a[3, 0] = 1, -1
    with refused(cell, "zero outside of its 2 blocks"):
        cell.set_author_weights(a, np.ones(4), np.ones((3, 4)), np.ones(4))


def test_author_bias_needs_a_bias():
    cell = built(ScoRNNCell, units=2, activation="tanh", use_bias=False)
    with pytest.raises(ValueError, match="Received: use_bias=False"):
        cell.set_author_weights(np.zeros((2, 2)), np.ones(2), b=np.zeros(2))


def test_signs_are_saved(tmp_path):
    """A model that started from a matrix keeps its signs when loaded."""
    layer = built(units=4, negative_ones=0)
    model = keras.Sequential([keras.Input((None, 3)), layer])
    layer.set_recurrent_matrix(-np.eye(4))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        loaded.layers[0].recurrent_matrix(), -np.eye(4), atol=4 * EPS32
    )


@pytest.mark.parametrize("negative_ones", [-1, 8, 1.1, "half"])
def test_negative_ones_out_of_range(negative_ones):
    with pytest.raises(ValueError, match="`negative_ones` must .*Received: negative"):
        ScoRNN(7, negative_ones=negative_ones)


@pytest.mark.slow
def test_gradient_reaches_the_far_past():
    """What the architecture is for: the gradient keeps its norm over 1 000 steps."""
    layer = built(units=16, bias_initializer="zeros", dtype="float64")
    x = np.random.default_rng(0).normal(size=(1, 1000, 3))
    start = np.ones((1, 16))
    upstream = np.random.default_rng(1).normal(size=(1, 16))
    (gradient,) = gradients(
        lambda h: ops.sum(layer(ops.convert_to_tensor(x), initial_state=h) * upstream),
        start,
    )
    # modReLU with a zero bias is the identity: the Jacobian is W^1000 exactly.
    assert np.linalg.norm(gradient) == pytest.approx(
        np.linalg.norm(upstream), rel=1000 * 16 * EPS64
    )


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


def test_the_functions_of_modrelu_name_the_activation():
    """Their bias is the cell's."""
    for function in (modrelu, complex_modrelu):
        assert ScoRNNCell(2, activation=function).activation == "modrelu"


def test_an_initializer_of_no_orthogonal_matrix_is_named():
    with pytest.raises(ValueError, match="`recurrent_initializer` returned a matrix"):
        ScoRNNCell(3, recurrent_initializer="ones").build((None, 1))


@pytest.mark.parametrize("recompute", [0, -1, 2.5, "yes", None])
def test_recompute_must_be_a_boolean_or_a_count(recompute):
    message = f"`recompute` must be a boolean or .* Received: recompute={recompute!r}"
    with pytest.raises(ValueError, match=message):
        ScoRNN(3, recompute=recompute)


@pytest.mark.parametrize("of_cell", [False, True])
def test_the_precision_may_be_changed(of_cell):
    """As that of Keras's own layers: the cell computes in its own, whatever theirs."""
    x = np.random.default_rng(0).normal(size=(2, 5, 3))
    # Keras rounds the inputs to the precision of a layer.
    x = ops.convert_to_numpy(ops.cast(ops.cast(x, "bfloat16"), "float32"))
    layer, mixed = ScoRNN(4), ScoRNN(4, dtype="mixed_bfloat16")
    whole, _ = layer(x, training=True), mixed(x)
    mixed.set_weights(layer.get_weights())
    (layer.cell if of_cell else layer).dtype_policy = "mixed_bfloat16"
    found = layer(x, training=True)
    dtype = "float32" if of_cell else "bfloat16"
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    expected = mixed(x, training=True) if of_cell else ops.cast(whole, "bfloat16")
    np.testing.assert_array_equal(
        ops.cast(found, "float32"), ops.cast(expected, "float32")
    )
