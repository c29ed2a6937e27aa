"""Heads: blocks on their own, in layers of every kind that a user makes of them."""

import keras
import numpy as np
import pytest
import scipy.linalg
from keras import ops

import keras_ortho
from keras_ortho import OrthoRNN, OrthoRNNCell, ScoRNN, ScoRNNCell, ScuRNN
from keras_ortho import parametrizations as sets
from keras_ortho.parametrizations import orthogonality_error, random_orthogonal
from keras_ortho.training_callbacks import Rebase
from tests import reference
from tests.gradients import gradients, weight_gradients
from tests.saving import reloaded

pytestmark = [
    pytest.mark.backends,
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]

EPS, EPS32 = np.finfo("float64").eps, np.finfo("float32").eps


@pytest.mark.parametrize("stock", [False, True])
@pytest.mark.parametrize("mix_inputs", [True, False])
@pytest.mark.parametrize("cls", [ScoRNN, ScuRNN])
def test_a_layer_against_numpy(cls, mix_inputs, stock):
    layer = cls(
        6,
        heads=2,
        mix_inputs=mix_inputs,
        dtype="float64",
        kernel_initializer="glorot_uniform",
        bias_initializer="small_uniform",
    )
    run = keras.layers.RNN(layer.cell, dtype="float64") if stock else layer
    x = np.random.default_rng(0).normal(size=(3, 5, 4))
    found = run(x)
    weights = {w.name: ops.convert_to_numpy(w) for w in layer.cell.weights}

    def block(head):
        own = {
            name.removeprefix(f"head_{head}_recurrent_"): value
            for name, value in weights.items()
        }
        if cls is ScoRNN:
            return reference.scaled_cayley(own["skew"], own["signs"])
        return reference.unitary_cayley(
            own["skew_real"], own["skew_imag"], own["phases"]
        )

    blocks = [block(0), block(1)]
    assert np.abs(blocks[0] - blocks[1]).max() > 0.01  # Each starts by itself.
    matrix, parts = scipy.linalg.block_diag(*blocks), 1
    activation = reference.modrelu
    if cls is ScuRNN:
        matrix, parts = reference.complex_block(matrix), 2
        activation = reference.complex_reals(reference.complex_modrelu)
    np.testing.assert_allclose(layer.recurrent_matrix(), matrix, atol=100 * EPS)
    kernel = weights["kernel"]
    if not mix_inputs:
        assert kernel.shape == (2, 2, 3 * parts)
        assert np.abs(kernel[0] - kernel[1]).max() > 0.01

    def last_state(kernel, x):
        if not mix_inputs:
            each = [scipy.linalg.block_diag(*k) for k in np.split(kernel, parts, -1)]
            kernel = np.concatenate(each, axis=1)
        state = np.zeros((3, 6 * parts)) + weights.get("initial_state", 0)
        for t in range(5):
            state = activation(x[:, t] @ kernel + state @ matrix, weights["bias"])
        return state

    state = last_state(kernel, x)
    np.testing.assert_allclose(found, state, atol=1e3 * EPS * np.abs(state).max())
    random = np.random.default_rng(1)
    upstream, direction = (random.normal(size=y.shape) for y in (state, kernel))
    _, of = weight_gradients(run, lambda h: ops.sum(h * upstream), x)
    (to_x,) = gradients(lambda x: ops.sum(run(x) * upstream), x)
    along, step = random.normal(size=x.shape), 1e-6
    for gradient, ahead, behind in (
        (
            np.sum(of["kernel"] * direction),
            *(last_state(kernel + s * direction, x) for s in (step, -step)),
        ),
        (
            np.sum(to_x * along),
            *(last_state(kernel, x + s * along) for s in (step, -step)),
        ),
    ):
        # Third derivatives of order one, and rounding of sums, over their distance.
        size = np.abs(upstream).sum() * np.abs(state).max()
        wanted = np.sum(upstream * (ahead - behind)) / (2 * step)
        np.testing.assert_allclose(gradient, wanted, atol=1e3 * EPS * size / step)


@pytest.mark.slow
@pytest.mark.parametrize("rebase_every", [None, 3])
def test_trains_saves_loads_and_freezes(tmp_path, rebase_every):
    """Two layers, of which the first mixes."""
    keras.utils.set_random_seed(0)
    layer = ScoRNN(8, heads=2, rebase_every=rebase_every, return_sequences=True)
    rest = ScuRNN(6, heads=2, mix_inputs=False), keras.layers.Dense(1)
    model = keras.Sequential([keras.Input((10, 1)), layer, *rest])
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=True)
    x = np.random.default_rng(0).normal(size=(64, 10, 1)).astype("float32")
    history = model.fit(x, x.sum(axis=1), batch_size=16, epochs=15, verbose=0)
    losses = history.history["loss"]
    assert losses[-1] < 0.5 * losses[0]
    matrix = ops.convert_to_numpy(layer.recurrent_matrix())
    assert orthogonality_error(matrix) <= 8 * 10 * EPS32
    np.testing.assert_array_equal(matrix[:4, 4:], 0)
    np.testing.assert_array_equal(matrix[4:, :4], 0)
    reloaded(model, tmp_path, x)
    expected = ops.convert_to_numpy(model(x))
    atol = 1e3 * EPS32 * np.abs(expected).max()
    np.testing.assert_allclose(keras_ortho.freeze(model)(x), expected, atol=atol)


def test_parts_of_the_inputs_must_be_whole():
    layer = ScoRNN(6, heads=3, mix_inputs=False)
    with pytest.raises(ValueError, match="multiple of `heads`.*Received: .*4.*heads=3"):
        layer.build((None, None, 4))
    kind = sets.Heads(sets.Householder(2), 2, mix_inputs=False)
    with pytest.raises(
        ValueError, match="the recurrent matrix of `RecurrentCell`.*Received: Doubled"
    ):
        Doubled(6, kind).build((None, 4))


@pytest.mark.parametrize("cls", [ScoRNN, ScuRNN])
def test_inputs_that_the_blocks_would_take_for_others_are_refused(cls):
    """Two of four features of two sequences are as many numbers as of one."""
    layer = cls(6, heads=2, mix_inputs=False, return_sequences=True)
    stock = keras.layers.RNN(layer.cell)
    x = np.zeros((2, 5, 4), "float32")
    layer(x), stock(x)
    for call in (layer, stock):
        with pytest.raises(ValueError, match="(batch, 4|value 4)"):
            call(x[..., :2])
    with pytest.raises(ValueError, match=r"Received: inputs of shape \(2, 2\)"):
        layer.cell(x[:, 0, :2], [np.zeros((2, layer.cell.state_size), "float32")])


class Halved(ScoRNNCell):
    def recurrent_matrix(self):
        return 0.5 * super().recurrent_matrix()


class HalvedRNN(ScoRNN):
    cell_class = Halved


@pytest.mark.parametrize("heads", [1, 2])
def test_a_matrix_of_a_class_is_used(heads):
    layer = HalvedRNN(6, heads=heads, activation="linear", dtype="float64")
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    found = layer(x)
    kernel, matrix = map(np.asarray, (layer.cell.kernel, layer.recurrent_matrix()))
    h = np.zeros((2, 6))
    for t in range(3):
        h = x[:, t] @ kernel + h @ matrix
    np.testing.assert_allclose(found, h, atol=100 * EPS)
    with pytest.raises(ValueError, match="the recurrent matrix of.*Received: Halved"):
        HalvedRNN(6, heads=2, mix_inputs=False).build((None, None, 4))


def test_a_seed_makes_all_heads():
    def start(seed):
        keras.utils.set_random_seed(1)
        layer = ScoRNN(
            8,
            heads=4,
            recurrent_initializer=keras_ortho.initializers.HenaffSkew(seed=seed),
        )
        layer.build((None, None, 1))
        return ops.convert_to_numpy(layer.recurrent_matrix())

    np.testing.assert_array_equal(start(3), start(3))
    assert np.abs(start(3) - start(4)).max() > 0.01


@pytest.mark.parametrize("cls", [ScoRNN, ScuRNN])
@pytest.mark.slow_on_jax
def test_starts_from_a_matrix(cls):
    order = 3
    layer = cls(2 * order, heads=2, recurrent_initializer="orthogonal", dtype="float64")
    layer.build((None, None, 1))
    matrix = ops.convert_to_numpy(layer.recurrent_matrix())
    assert orthogonality_error(matrix) <= 100 * len(matrix) * EPS
    blocks = [random_orthogonal(order, seed) for seed in (0, 1)]
    given = scipy.linalg.block_diag(*blocks)
    layer = cls(2 * order, heads=2, recurrent_initializer=given, dtype="float64")
    layer.build((None, None, 1))
    expected = given if cls is ScoRNN else reference.complex_block(given)
    atol = 100 * len(matrix) * EPS
    np.testing.assert_allclose(layer.recurrent_matrix(), expected, atol=atol)
    layer.set_recurrent_matrix(np.eye(2 * order))
    np.testing.assert_allclose(layer.recurrent_matrix(), np.eye(len(matrix)), atol=atol)


@pytest.mark.slow_on_jax
def test_author_weights():
    skew = np.zeros((4, 4))
    skew[0, 1], skew[1, 0], skew[2, 3], skew[3, 2] = 0.5, -0.5, 2.0, -2.0
    cell = ScoRNNCell(4, heads=2, dtype="float64")
    cell.build((None, 1))
    cell.set_author_weights(skew, D=np.array([1, -1, 1, 1]))
    np.testing.assert_allclose(
        cell.recurrent_matrix(),
        np.linalg.solve(np.eye(4) + skew, np.eye(4) - skew) @ np.diag([1, -1, 1, 1]),
        atol=100 * EPS,
    )


def test_another_matrix_is_refused():
    layer = ScoRNN(4, heads=2)
    layer.build((None, None, 1))
    before = ops.convert_to_numpy(layer.recurrent_matrix())
    with pytest.raises(ValueError, match="zero outside of its 2 blocks.*Received"):
        layer.set_recurrent_matrix(random_orthogonal(4, 0))
    np.testing.assert_array_equal(layer.recurrent_matrix(), before)


def test_constraint_and_regularizer_of_heads_that_read_their_inputs():
    """As if each head were a layer by itself."""
    layer = ScoRNN(
        6,
        heads=2,
        mix_inputs=False,
        kernel_constraint=keras.constraints.UnitNorm(),
        kernel_regularizer=keras.regularizers.OrthogonalRegularizer(0.1),
    )
    layer.build((None, None, 4))
    kernel = layer.cell.kernel
    blocks = ops.convert_to_numpy(kernel)
    (loss,) = layer.losses
    whole = 0
    for block in blocks:  # The cosine of the angle between its two rows.
        rows = block / np.linalg.norm(block, axis=1, keepdims=True)
        whole += 0.1 * np.abs(rows[0] @ rows[1])
    np.testing.assert_allclose(loss, whole, atol=20 * EPS32)
    # Of what each unit reads; Keras adds 1e-7 to the norm.
    norms = np.sqrt(np.sum(blocks**2, axis=1, keepdims=True))
    constrained = kernel.constraint(kernel)
    np.testing.assert_allclose(constrained, blocks / (norms + 1e-7), atol=10 * EPS32)


def test_the_callback_moves_every_base():
    layer = OrthoRNN(
        4, sets.Heads(sets.Rebased(sets.ScaledCayley(1)), heads=2), dtype="float64"
    )
    model = keras.Sequential([keras.Input((3, 1)), layer, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.random.default_rng(0).normal(size=(8, 3, 1))
    model.fit(x, x[:, 0], batch_size=4, verbose=0, callbacks=[Rebase(every=2)])
    matrix = ops.convert_to_numpy(layer.recurrent_matrix())
    layer.rebase()
    np.testing.assert_allclose(layer.recurrent_matrix(), matrix, atol=100 * EPS)
    for head in range(2):
        base = getattr(layer.cell, f"head_{head}_recurrent_base")
        assert np.abs(ops.convert_to_numpy(base) - np.eye(2)).max() > 1e-4
        skew = getattr(layer.cell, f"head_{head}_recurrent_skew")
        np.testing.assert_array_equal(skew, 0)


class Doubled(OrthoRNNCell):
    """A step of one's own, that knows of no heads."""

    def step(self, inputs, state, recurrent_kernel):
        assert len(recurrent_kernel.shape) == 2
        return self.activate(
            ops.matmul(inputs, self.kernel) + 2 * ops.matmul(state, recurrent_kernel)
        )


@pytest.mark.parametrize("activation", ["modrelu", "tanh"])
@pytest.mark.parametrize(
    "make",
    [
        lambda **kwargs: ScoRNN(6, heads=2, return_sequences=True, **kwargs),
        lambda **kwargs: ScuRNN(6, heads=2, return_sequences=True, **kwargs),
        lambda **kwargs: keras.layers.RNN(
            Doubled(6, sets.Heads(sets.Householder(2), 2), **kwargs),
            return_sequences=True,
        ),
    ],
    ids=["real", "complex", "own-step"],
)
def test_freezing(make, activation):
    keras.utils.set_random_seed(0)
    layer = make(
        activation=activation, kernel_initializer="glorot_uniform", dtype="float64"
    )
    model = keras.Sequential([keras.Input((None, 2), dtype="float64"), layer])
    frozen = keras_ortho.freeze(model)
    x = np.random.default_rng(0).normal(size=(3, 7, 2))
    np.testing.assert_allclose(frozen(x), model(x), atol=1e3 * EPS)
    names = [weight.name for weight in frozen.weights]
    assert "recurrent_kernel" in names
    assert not any(name.startswith("head") for name in names)


def test_a_frozen_layer_has_the_blocks_alone():
    """And no product with the zeros: it keeps n^2 / heads numbers."""
    layer = ScoRNN(12, heads=3, activation="tanh")
    model = keras.Sequential([keras.Input((None, 2)), layer])
    frozen = keras_ortho.freeze(model)
    (kernel,) = [w for w in frozen.weights if w.name == "recurrent_kernel"]
    assert tuple(kernel.shape) == (3, 4, 4)
    np.testing.assert_allclose(
        frozen.layers[-1].recurrent_matrix(), layer.recurrent_matrix(), atol=EPS32
    )


@pytest.mark.slow_on_jax
def test_diagnostics_tell_the_heads_apart():
    layer = OrthoRNN(6, sets.Heads(sets.ScaledCayleyUnitary(), 3))
    layer.build((None, None, 1))
    parts = layer.cell.parametrization.parts(*layer.cell.free_values())
    assert list(parts) == ["head_0", "head_1", "head_2"]
    assert all(part.shape == (4, 4) for part in parts.values())


def test_distance():
    """Of the blocks from orthogonal ones, and of the rest from zero."""
    kind = sets.Heads(sets.ScaledCayley(), 2)
    matrix = np.diag([1.0, 1.0, 1.0, 2.0])
    assert kind.distance(matrix) == pytest.approx(3.0)  # ||W^T W - I||_F
    matrix[0, 3] = 4.0
    assert kind.distance(matrix) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("within", "initializer"),
    [
        (sets.SVD(), keras_ortho.initializers.UniformReflectors(seed=7)),
        (sets.GivensUnitary(), keras_ortho.initializers.UniformPhases(seed=7)),
    ],
    ids=["reflectors", "phases"],
)
def test_no_two_variables_of_seeded_heads_are_alike(within, initializer):
    layer = OrthoRNN(8, sets.Heads(within, 2), recurrent_initializer=initializer)
    layer.build((None, None, 3))
    values = [
        ops.convert_to_numpy(weight).ravel()
        for weight in layer.trainable_weights
        if weight.name.startswith("head_")
    ]
    for index, value in enumerate(values):
        for other in values[:index]:
            size = min(len(value), len(other))
            # Those that start all alike, such as singular values, are constant.
            if np.ptp(value) and np.ptp(other):
                assert np.abs(value[:size] - other[:size]).max() > 1e-3


def test_a_head_begins_beyond_the_seeds_of_the_one_before():
    """One matrix of `UnitaryComposition` takes three in a row."""
    initializer = keras_ortho.initializers.UnitaryComposition(seed=7)
    for within in (sets.FullUnitary(), sets.RestrictedUnitary()):
        variables = sets.Heads(within, 2).variables(8, initializer)
        assert {variable.initializer.seed for variable in variables} == {7, 10}
