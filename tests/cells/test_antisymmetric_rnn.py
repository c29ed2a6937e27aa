import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import AntisymmetricRNN, AntisymmetricRNNCell
from keras_ortho.initializers import AntisymmetricNormal
from keras_ortho.parametrizations import antisymmetry_error
from tests import reference
from tests.cells.building import assert_gradients, builder, weights_of
from tests.gradients import gradients

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps
# Without XLA JAX runs one operation after the other, which takes long.
XLA = [True] if keras.backend.backend() == "jax" else [False, True]
VARIANTS = [
    {},
    {"gated": True},
    {"antisymmetric": False},
    {"gated": True, "antisymmetric": False},
]


built = builder(AntisymmetricRNN, 7)


def by_definition(x, weights, step_size, diffusion, h=None, activation=np.tanh):
    """All states, one step after the other, as the equations of the paper say."""
    n = weights["kernel"].shape[1]
    m = weights.get("recurrent_kernel")
    if m is None:
        m = reference.skew(weights["recurrent_skew"], n)
    w = m - diffusion * np.eye(n)
    h = np.zeros((len(x), n)) if h is None else h
    states = []
    for t in range(x.shape[1]):
        change = activation(h @ w + x[:, t] @ weights["kernel"] + weights["bias"])
        if "gate_kernel" in weights:
            z = h @ w + x[:, t] @ weights["gate_kernel"] + weights["gate_bias"]
            change = change / (1 + np.exp(-z))
        h = h + step_size * change
        states.append(h)
    return np.stack(states, axis=1)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_against_numpy(n, variant):
    layer = built(
        units=n,
        step_size=0.3,
        diffusion=0.2,
        **variant,
        bias_initializer=keras.initializers.RandomNormal(),
        return_sequences=True,
        dtype="float64",
    )
    weights = weights_of(layer)
    x = np.random.default_rng(0).normal(size=(4, 9, 3))
    start = np.random.default_rng(1).normal(size=(4, n))
    expected = by_definition(x, weights, 0.3, 0.2, h=start)
    # Errors of n eps a step, which grow by at most 1 + step_size ||W|| in each.
    w = ops.convert_to_numpy(layer.recurrent_matrix())
    growth = (1 + 0.3 * np.linalg.norm(w, 2)) ** 9
    atol = 9 * 10 * n * EPS64 * growth * np.abs(expected).max()
    np.testing.assert_allclose(layer(x, initial_state=start), expected, atol=atol)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_gradients(variant):
    layer = built(
        units=4,
        features=2,
        step_size=0.3,
        **variant,
        bias_initializer=keras.initializers.RandomNormal(),
        return_sequences=True,
        dtype="float64",
    )
    assert_gradients(
        layer,
        lambda x, weights: by_definition(x, weights, 0.3, 0.01),
        atol=100 * EPS64 ** (2 / 3),
        shape=(2, 4, 2),
    )


def test_literal_values():
    """Two steps of one unit: with W = -0.5, h' = h + 0.5 (x - 0.5 h)."""
    layer = AntisymmetricRNN(
        1, 0.5, 0.5, activation="linear", kernel_initializer="ones"
    )
    x = np.array([[[1.0], [2.0]]], "float32")
    np.testing.assert_array_equal(layer(x), [[0.5 + 0.5 * (2 - 0.25)]])


@pytest.mark.slow
def test_the_state_keeps_its_norm_without_input():
    """What the architecture is for: the linear step is near a rotation."""
    layer = built(
        units=16, step_size=0.01, diffusion=0.0, activation="linear", dtype="float64"
    )
    start = np.random.default_rng(0).normal(size=(1, 16))
    x = np.zeros((1, 500, 3))
    upstream = np.random.default_rng(1).normal(size=(1, 16))
    (found,) = gradients(
        lambda h: ops.sum(layer(ops.convert_to_tensor(x), initial_state=h) * upstream),
        start,
    )
    w = ops.convert_to_numpy(layer.recurrent_matrix())
    # Each step multiplies an eigenvector by |1 + 0.01 i omega|, 1 at least.
    growth = (1 + 1e-4 * np.linalg.norm(w, 2) ** 2) ** 250
    ratio = np.linalg.norm(found) / np.linalg.norm(upstream)
    assert 1 - 500 * 16 * EPS64 <= ratio <= growth < 1.2


def test_diffusion_makes_the_step_stable():
    """Proposition 3: |1 + eps lambda| <= 1 for all eigenvalues of the Jacobian."""
    w = ops.convert_to_numpy(built(diffusion=0.0, dtype="float64").recurrent_matrix())
    frequency = np.linalg.norm(w, 2)
    for diffusion, stable in [(0.0, False), (0.1 * frequency**2, True)]:
        layer = built(units=7, step_size=0.1, diffusion=diffusion, dtype="float64")
        layer.set_recurrent_matrix(w - diffusion * np.eye(7))
        jacobian = np.eye(7) + 0.1 * ops.convert_to_numpy(layer.recurrent_matrix())
        assert (np.abs(np.linalg.eigvals(jacobian)).max() <= 1) == stable


@pytest.mark.slow_on_jax
def test_starts_with_the_papers_settings():
    weights = weights_of(built(units=100, features=50, gated=True))
    for name in ("bias", "gate_bias"):
        np.testing.assert_array_equal(weights[name], 0)
    for name, deviation in [
        ("kernel", 50**-0.5),
        ("gate_kernel", 50**-0.5),
        ("recurrent_skew", 0.1),
    ]:
        # Five standard errors of the deviation of about 5 000 draws.
        assert weights[name].std() == pytest.approx(deviation, rel=5 / np.sqrt(10_000))
    assert not np.array_equal(weights["kernel"], weights["gate_kernel"])
    other = built(units=100, recurrent_initializer=AntisymmetricNormal(4.0))
    assert weights_of(other)["recurrent_skew"].std() == pytest.approx(0.4, rel=0.05)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.slow_on_jax
def test_set_recurrent_matrix(variant):
    layer = built(units=5, diffusion=0.1, dtype="float64", **variant)
    random = np.random.default_rng(0)
    matrix = reference.skew(random.normal(size=10), 5) - 0.1 * np.eye(5)
    if not variant.get("antisymmetric", True):
        matrix = random.normal(size=(5, 5))
    layer.set_recurrent_matrix(matrix)
    np.testing.assert_allclose(layer.recurrent_matrix(), matrix, atol=4 * EPS64)
    started = built(units=5, diffusion=0.1, recurrent_initializer=matrix, **variant)
    np.testing.assert_allclose(started.recurrent_matrix(), matrix, atol=4 * EPS32)


@pytest.mark.slow_on_jax
def test_matrices_that_it_cannot_have():
    cell = built(AntisymmetricRNNCell, units=4)
    before = cell.get_weights()
    with pytest.raises(ValueError, match="skew-symmetric.*Received: a matrix with"):
        cell.set_recurrent_matrix(np.eye(4))
    np.testing.assert_array_equal(cell.get_weights()[1], before[1])
    ablation = built(AntisymmetricRNNCell, units=4, antisymmetric=False)
    with pytest.raises(ValueError, match="must be finite"):
        ablation.set_recurrent_matrix(np.full((4, 4), np.inf))
    with pytest.raises(ValueError, match="skew-symmetric"):
        built(AntisymmetricRNNCell, recurrent_initializer="orthogonal")


def test_the_ablation_takes_any_matrix():
    layer = built(antisymmetric=False, recurrent_initializer="orthogonal")
    w = ops.convert_to_numpy(layer.recurrent_matrix())
    np.testing.assert_allclose(w.T @ w, np.eye(7), atol=10 * 7 * EPS32)


@pytest.mark.parametrize("name", ["step_size", "diffusion"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), "0.1", None, True])
def test_step_size_and_diffusion_must_be_numbers(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must .*Received: {name}={value!r}"):
        AntisymmetricRNN(7, **{name: value})


def test_a_step_of_no_size():
    with pytest.raises(ValueError, match="Received: step_size=0"):
        AntisymmetricRNNCell(7, step_size=0)
    assert AntisymmetricRNNCell(7, diffusion=0).diffusion == 0.0


@pytest.mark.parametrize("jit_compile", XLA)
@pytest.mark.parametrize("variant", VARIANTS[1:3], ids=str)
def test_trains_saves_and_loads(variant, jit_compile, tmp_path):
    keras.utils.set_random_seed(0)
    layer = AntisymmetricRNN(
        6, step_size=0.5, return_sequences=True, recurrent_dropout=0.1, **variant
    )
    model = keras.Sequential([keras.Input((5, 3)), layer, keras.layers.Dense(2)])
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=jit_compile)
    x = np.random.default_rng(0).normal(size=(64, 5, 3)).astype("float32")
    y = np.cumsum(x, axis=1)[:, :, :2]
    before = weights_of(layer)
    losses = model.fit(x, y, batch_size=16, epochs=8, verbose=0).history["loss"]
    assert losses[-1] < 0.9 * losses[0]
    for name, value in weights_of(layer).items():
        assert not np.array_equal(value, before[name]), name
    if variant.get("antisymmetric", True):
        # Whatever the training, to the rounding of the diagonal.
        matrix = layer.recurrent_matrix()
        assert antisymmetry_error(matrix, 0.01) <= 6 * EPS32
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(x), model(x))


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16", "bfloat16"])
def test_low_precision_with_a_gate(dtype):
    layer = built(gated=True, step_size=0.5, dtype=dtype, return_sequences=True)
    exact = built(gated=True, step_size=0.5, return_sequences=True)
    exact.set_weights([np.asarray(w, "float32") for w in layer.get_weights()])
    x = np.random.default_rng(0).normal(size=(2, 6, 3)).astype("float32")
    outputs = layer(x)
    compute = dtype.removeprefix("mixed_")
    assert keras.backend.standardize_dtype(outputs.dtype) == compute
    # Rounding of some products and the state in each of six steps.
    eps = 2.0 ** (-7 if compute == "bfloat16" else -10)
    np.testing.assert_allclose(
        ops.convert_to_numpy(ops.cast(outputs, "float32")), exact(x), atol=6 * 4 * eps
    )


@pytest.mark.parametrize("gated", [False, True])
def test_recurrent_dropout_leaves_the_sum_alone(gated):
    """Masked and scaled up at every step, the state itself would double each time."""
    layer = built(
        units=16, gated=gated, recurrent_dropout=0.5, activation="linear", seed=0
    )
    layer.set_recurrent_matrix(-0.01 * np.eye(16))
    start = np.ones((1, 16), "float32")
    x = np.zeros((1, 50, 3), "float32")
    for each in (layer, keras.layers.RNN(layer.cell)):
        state = ops.convert_to_numpy(each(x, initial_state=start, training=True))
        # At most 50 steps by -0.001 of the state, twice that where it was not dropped.
        assert np.all((state > 1 - 0.1) & (state < 1 + 100 * EPS32))
        assert len(np.unique(np.round(state, 4))) == 2

    def total(start):
        return ops.sum(layer(x, initial_state=start, training=True))

    (gradient,) = gradients(total, start)
    assert np.all((gradient > 0.8) & (gradient < 1 + 100 * EPS32))


def test_without_a_bias():
    layer = built(gated=True, use_bias=False)
    names = {"kernel", "recurrent_skew", "gate_kernel"}
    assert set(weights_of(layer)) == names
    x = np.random.default_rng(0).normal(size=(2, 4, 3)).astype("float32")
    zeros = {"bias": 0.0, "gate_bias": 0.0}
    expected = by_definition(x, {**weights_of(layer), **zeros}, 0.1, 0.01)[:, -1]
    np.testing.assert_allclose(layer(x), expected, atol=100 * EPS32)


def test_the_gate_is_regularized_and_constrained_like_the_rest():
    layer = built(
        gated=True,
        kernel_regularizer="l2",
        bias_regularizer="l1",
        kernel_constraint="max_norm",
        bias_constraint="non_neg",
        bias_initializer="ones",
    )
    assert len(layer.losses) == 4
    for name in ("kernel", "bias"):
        gate = getattr(layer.cell, f"gate_{name}")
        assert gate.constraint is getattr(layer.cell, name).constraint is not None
    np.testing.assert_array_equal(layer.cell.gate_bias, 1)
