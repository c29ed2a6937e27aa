import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ENRNN, ENRNNCell, freeze
from keras_ortho.diagnostics import MissingRadiusGradients
from keras_ortho.initializers import ScaledRotations
from keras_ortho.parametrizations import orthogonality_error
from tests import reference
from tests.cells.building import refused, weights_of
from tests.gradients import traced, weight_gradients

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps


def built(cls=ENRNN, q=4, s=3, features=2, **kwargs):
    layer = cls(q, s, **kwargs)
    layer.build((None, None, features) if cls is ENRNN else (None, features))
    return layer


def with_radius(radius, s=3, seed=0):
    matrix = np.random.default_rng(seed).normal(size=(s, s))
    return matrix * radius / np.abs(np.linalg.eigvals(matrix)).max()


def radius_of(matrix):
    return np.abs(np.linalg.eigvals(ops.convert_to_numpy(matrix))).max()


def set_radius(layer, radius):
    cell = layer.cell if hasattr(layer, "cell") else layer
    cell.short_term_matrix.assign(with_radius(radius, cell.short_term_units))
    return cell


def short_term(layer):
    q = layer.cell.long_term_units
    return ops.convert_to_numpy(layer.cell.recurrent_matrix())[q:, q:]


def is_on(layer):
    return bool(ops.convert_to_numpy(layer.cell.normalize))


def kernel_by_definition(weights, epsilon=0.0):
    long_term = reference.scaled_cayley(
        weights["recurrent_skew"], weights["recurrent_signs"]
    )
    t = weights["short_term_matrix"]
    q, s = len(long_term), len(t)
    radius = np.abs(np.linalg.eigvals(t)).max()
    if weights["normalize"] or radius > 1:
        t = t / (radius + epsilon)
    coupling = weights.get("coupling_kernel", np.zeros((s, q)))
    return np.block([[long_term, np.zeros((q, s))], [coupling, t]])


def states_by_definition(x, weights, epsilon=0.0):
    """Long-term and short-term units by themselves, as in the paper's equations."""
    w = kernel_by_definition(weights, epsilon)
    q = len(weights["recurrent_signs"])
    u, b = weights["kernel"], weights["bias"]
    long_term, short = np.zeros((len(x), q)), np.zeros((len(x), len(w) - q))
    states = []
    for t in range(x.shape[1]):
        z_long = x[:, t] @ u[:, :q] + long_term @ w[:q, :q] + short @ w[q:, :q]
        z_short = x[:, t] @ u[:, q:] + short @ w[q:, q:]
        long_term = reference.modrelu(z_long, b[:q])
        short = reference.modrelu(z_short, b[q:])
        states.append(np.concatenate([long_term, short], axis=1))
    return np.stack(states, axis=1)


@pytest.mark.parametrize(("q", "s"), [(1, 1), (4, 3), (5, 2)])
@pytest.mark.parametrize("coupling", [True, False])
@pytest.mark.parametrize(
    ("radius", "on", "epsilon"), [(0.7, False, 0), (0.7, True, 0), (1.3, False, 0.2)]
)
def test_against_numpy(q, s, coupling, radius, on, epsilon):
    layer = built(
        q=q,
        s=s,
        coupling=coupling,
        epsilon=epsilon,
        negative_ones=1,
        return_sequences=True,
        dtype="float64",
        kernel_initializer="glorot_uniform",
        bias_initializer=keras.initializers.RandomNormal(stddev=0.3),
    )
    set_radius(layer, radius).normalize.assign(on)
    x = np.random.default_rng(0).normal(size=(4, 9, 2))
    weights = weights_of(layer)
    assert ("coupling_kernel" in weights) is coupling
    expected = states_by_definition(x, weights, epsilon)
    # Nine steps of sums of q + s products; the coupling may add up.
    atol = 9 * 100 * (q + s) * EPS64 * np.abs(expected).max()
    np.testing.assert_allclose(layer(x), expected, atol=atol)
    np.testing.assert_allclose(
        layer.recurrent_matrix(),
        kernel_by_definition(weights, epsilon),
        atol=100 * (q + s) * EPS64,
    )


@pytest.mark.parametrize(("on", "epsilon"), [(False, 0.0), (True, 0.0), (True, 0.2)])
def test_gradient_through_the_layer(on, epsilon):
    layer = built(
        epsilon=epsilon,
        dtype="float64",
        kernel_initializer="glorot_uniform",
        bias_initializer="ones",
    )
    set_radius(layer, 0.8).normalize.assign(on)
    x = np.random.default_rng(1).normal(size=(2, 4, 2))
    upstream = np.random.default_rng(2).normal(size=(2, 7))
    _, found = weight_gradients(layer, lambda h: ops.sum(h * upstream), x)
    weights = weights_of(layer)
    for name in ("short_term_matrix", "coupling_kernel", "recurrent_skew"):
        expected = reference.central_differences(
            lambda value, name=name: np.sum(
                upstream
                * states_by_definition(x, {**weights, name: value}, epsilon)[:, -1]
            ),
            weights[name],
            EPS64 ** (1 / 3),
        )
        # Differences are exact to eps^(2/3), times third derivatives.
        np.testing.assert_allclose(
            found[name],
            expected,
            atol=1000 * EPS64 ** (2 / 3) * max(1, np.abs(expected).max()),
        )


X, Y = np.ones((2, 3, 2), "float32"), np.zeros((2, 7), "float32")


def model_of(layer, **kwargs):
    model = keras.Sequential([keras.Input((3, 2)), layer])
    # A rate of 0 leaves the matrix as it is.
    model.compile(keras.optimizers.SGD(0.0), "mse", **kwargs)
    return model


def fit(layer, **kwargs):
    model = model_of(layer, **kwargs)
    return lambda: model.fit(X, Y, verbose=0)


def train_on_batch(layer):
    model = model_of(layer)
    return lambda: model.train_on_batch(X, Y)


def call(layer):
    return lambda: layer(X, training=True)


def call_within_a_model(layer):
    inputs = keras.Input((3, 2))
    model = keras.Model(inputs, keras.layers.Dense(1)(layer(inputs)))
    return lambda: model(X, training=True)


def call_of_the_cell(layer):
    start = layer.cell.get_initial_state(2)
    return lambda: layer.cell(X[:, 0], start, training=True)


def stateless_call(layer):
    if not isinstance(layer, ENRNN):  # Has no idea of training but within a model.
        layer = keras.Sequential([keras.Input((3, 2)), layer])

    def apply(trainable, fixed, x):
        return layer.stateless_call(trainable, fixed, x, training=True)[1]

    apply = traced(apply)

    def train():
        values = apply(
            [v.value for v in layer.trainable_variables],
            [v.value for v in layer.non_trainable_variables],
            X,
        )
        for variable, value in zip(layer.non_trainable_variables, values, strict=True):
            variable.assign(value)

    return train


WAYS = {
    "fit": fit,
    "fit eagerly": lambda layer: fit(layer, run_eagerly=True),
    "fit with XLA": lambda layer: fit(layer, jit_compile=True),
    "train_on_batch": train_on_batch,
    "call": call,
    "call within a model": call_within_a_model,
    "call of the cell": call_of_the_cell,
    "stateless_call": stateless_call,
}


# Of Keras's layer around the cell the one that differs most.
OF_STOCK = ("stateless_call",)
LIKE_OTHERS = ("fit eagerly", "fit with XLA", "train_on_batch", "call within a model")


@pytest.mark.parametrize(
    ("stock", "way"),
    [
        pytest.param(False, way, marks=pytest.mark.slow if way in LIKE_OTHERS else ())
        for way in WAYS
    ]
    + [
        pytest.param(True, way, marks=() if way in OF_STOCK else pytest.mark.slow)
        for way in WAYS
    ],
)
def test_normalizes_for_ever(stock, way):
    layer = built()
    if stock:
        layer = keras.layers.RNN(layer.cell)
    train = WAYS[way](layer)
    set_radius(layer, 0.5)
    train()
    assert not is_on(layer)
    np.testing.assert_array_equal(short_term(layer), layer.cell.short_term_matrix)
    for radius in (1.5, 0.5):
        set_radius(layer, radius)
        train()
        assert is_on(layer)
        assert radius_of(short_term(layer)) == pytest.approx(1, abs=float(100 * EPS32))


@pytest.mark.slow
def test_leaves_the_switch_to_a_cell_around_it():
    """Which makes the kernel at each step, in the loop."""

    class Around(keras.layers.Layer):
        def __init__(self, cell):
            super().__init__()
            self.cell = cell
            self.state_size = cell.state_size

        def build(self, input_shape):
            self.cell.build(input_shape)

        def call(self, inputs, states, training=False):
            return self.cell(inputs, states, training=training)

    cell = ENRNNCell(4, 3)
    train = fit(keras.layers.RNN(Around(cell)))
    set_radius(cell, 1.5)
    train()
    assert not bool(ops.convert_to_numpy(cell.normalize))


@pytest.mark.slow
@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="a tape is TensorFlow's"
)
@pytest.mark.parametrize("jit_compile", [None, False, True])
def test_training_step_of_the_users_own(jit_compile):
    import tensorflow as tf

    layer = built()
    set_radius(layer, 1.5)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(X, training=True) ** 2)
        return tape.gradient(loss, layer.trainable_variables)

    if jit_compile is not None:
        step = tf.function(step, jit_compile=jit_compile)
    assert all(np.isfinite(g).all() for g in step())
    assert is_on(layer)


@pytest.mark.slow_on_jax
def test_inference_divides_and_writes_nothing():
    layer = built(kernel_initializer="ones", return_sequences=True)
    model = keras.Sequential([keras.Input((3, 2)), layer])
    set_radius(layer, 1.5)
    expected = states_by_definition(X, weights_of(layer))
    assert radius_of(short_term(layer)) == pytest.approx(1, abs=float(100 * EPS32))
    for outputs in (
        layer(X),
        layer(X, training=False),
        model.predict(X, verbose=0),
        model(X),
    ):
        np.testing.assert_allclose(outputs, expected, atol=1000 * EPS32)
    assert not is_on(layer)


@pytest.mark.slow
def test_no_update_is_the_last_without_being_normalized():
    """One step over 1: what it leaves behind is divided from then on."""
    layer = built(kernel_initializer="ones", short_term_initializer=0.99 * np.eye(3))
    model = keras.Sequential([keras.Input((3, 2)), layer])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.train_on_batch(X, np.full((2, 7), 1e3, "float32"))
    assert radius_of(layer.cell.short_term_matrix) > 1
    assert not is_on(layer)
    assert radius_of(short_term(layer)) == pytest.approx(1, abs=float(100 * EPS32))
    expected = states_by_definition(X, weights_of(layer))[:, -1]
    np.testing.assert_allclose(
        model.predict(X, verbose=0), expected, rtol=1000 * EPS32, atol=1000 * EPS32
    )


@pytest.mark.parametrize("stock", [False, True])
def test_the_switch_is_saved(stock, tmp_path):
    layer = keras.layers.RNN(ENRNNCell(4, 3)) if stock else ENRNN(4, 3)
    model = keras.Sequential([keras.Input((3, 2)), layer])
    set_radius(layer, 1.5)
    model(X, training=True)
    set_radius(layer, 0.5)
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    clone = keras.models.clone_model(model)
    assert not is_on(clone.layers[0])
    clone.load_weights(tmp_path / "model.weights.h5")
    for other in (loaded, clone):
        assert is_on(other.layers[0])
        np.testing.assert_array_equal(short_term(other.layers[0]), short_term(layer))


@pytest.mark.slow_on_jax
def test_starts_with_the_papers_settings():
    layer = built(q=96, s=64, negative_ones=29, **ENRNNCell.paper_arguments)
    weights = weights_of(layer)
    assert np.abs(weights["kernel"]).max() <= 0.01
    np.testing.assert_array_equal(weights["bias"], 0)
    np.testing.assert_array_equal(weights["recurrent_signs"], [1] * 67 + [-1] * 29)
    assert np.count_nonzero(weights["recurrent_skew"]) == 48
    assert np.count_nonzero(weights["short_term_matrix"]) == 128
    assert not weights["normalize"]
    assert np.abs(weights["coupling_kernel"]).max() <= np.sqrt(6 / 160)
    np.testing.assert_array_equal(
        layer.cell.get_initial_state(2)[0], np.zeros((2, 160))
    )


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_scaled_rotations(n):
    matrix = ops.convert_to_numpy(ScaledRotations(seed=1)((n, n), dtype="float64"))
    assert matrix.dtype == "float64"
    for start in range(0, n, 2):
        block = matrix[start : start + 2, start : start + 2]
        radius = np.sqrt(abs(np.linalg.det(block))) if len(block) == 2 else abs(block)
        assert 0 < radius < 1
        if len(block) == 2:
            # A rotation by less than a right angle, or its negative.
            np.testing.assert_allclose(
                block.T @ block, radius**2 * np.eye(2), atol=10 * EPS64
            )
            assert np.linalg.det(block) > 0
            assert block[0, 0] * block[1, 0] > 0
        matrix[start : start + 2, start : start + 2] = 0
    np.testing.assert_array_equal(matrix, 0)


def test_scaled_rotations_have_both_signs_and_settings():
    initializer = ScaledRotations(max_angle=0.0, max_radius=2.0, seed=3)
    matrix = ops.convert_to_numpy(initializer((40, 40)))
    diagonal = np.diag(matrix)
    np.testing.assert_array_equal(matrix, np.diag(diagonal))
    assert diagonal.min() < 0
    assert 1 < np.abs(diagonal).max() <= 2
    again = ScaledRotations.from_config(initializer.get_config())
    np.testing.assert_array_equal(again((40, 40)), matrix)
    with pytest.raises(ValueError, match=r"Received: shape=\(2, 3\)"):
        initializer((2, 3))
    for arguments in ({"max_angle": 4.0}, {"max_radius": 0}, {"max_radius": np.nan}):
        (name,) = arguments
        with pytest.raises(ValueError, match=f"`{name}` must.*Received: {name}="):
            ScaledRotations(**arguments)


@pytest.mark.parametrize("coupling", [True, False])
@pytest.mark.parametrize("on", [True, False])
@pytest.mark.slow_on_jax
def test_set_recurrent_matrix(coupling, on):
    layer = built(coupling=coupling, dtype="float64", return_sequences=True)
    other = built(coupling=coupling, dtype="float64", return_sequences=True)
    set_radius(other, 1.5 if on else 0.5).normalize.assign(on)
    layer.cell.normalize.assign(True)
    matrix = ops.convert_to_numpy(other.recurrent_matrix())
    layer.set_recurrent_matrix(matrix)
    np.testing.assert_allclose(layer.recurrent_matrix(), matrix, atol=100 * 7 * EPS64)
    assert not is_on(layer)


def test_set_recurrent_matrix_that_it_does_not_reach():
    layer = built(coupling=False)
    coupled = np.eye(7)
    coupled[4, 0] = 1
    upper = np.eye(7)
    upper[0, 4] = 1
    infinite = np.eye(7)
    infinite[5, 5] = np.inf
    for matrix, message in [
        (np.eye(6), r"Received: matrix.shape=\(6, 6\)"),
        (coupled, r"Received: .*coupling=False"),
        (upper, r"must be of the form \[\[W_L, 0\]"),
        (infinite, "must be finite"),
        (np.diag([1, 1, 1, 1, 0.5, 1.5, 0.5]), "at most 1. Received: 1.5"),
        (np.diag([2, 1, 1, 1, 0.5, 0.5, 0.5]), "must be orthogonal"),
    ]:
        with refused(layer, message):
            layer.set_recurrent_matrix(matrix)


def test_initializers_that_yield_matrices():
    long_term = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    layer = built(
        recurrent_initializer=long_term,
        short_term_initializer=with_radius(0.5),
        coupling_initializer=np.ones((3, 4)),
    )
    kernel = ops.convert_to_numpy(layer.recurrent_matrix())
    np.testing.assert_allclose(kernel[:4, :4], long_term, atol=100 * EPS32)
    np.testing.assert_allclose(kernel[4:, 4:], with_radius(0.5), atol=EPS32)
    np.testing.assert_array_equal(kernel[4:, :4], 1)
    layer = built(recurrent_initializer="orthogonal", short_term_initializer="zeros")
    kernel = ops.convert_to_numpy(layer.recurrent_matrix())
    assert orthogonality_error(kernel[:4, :4]) <= 4 * 4 * EPS32
    np.testing.assert_array_equal(kernel[4:, 4:], 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recurrent_initializer", np.eye(7)),
        ("short_term_initializer", np.ones((1, 3))),
        ("coupling_initializer", np.ones((4, 3))),
    ],
)
def test_initializers_of_another_shape(name, value):
    with pytest.raises(
        ValueError, match=f"`{name}` must have .*Received: {name}.shape"
    ):
        built(**{name: value})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"short_term_units": 0}, "Received: short_term_units=0"),
        ({"long_term_units": -2}, "Received: long_term_units=-2"),
        ({"negative_ones": 5}, "Received: negative_ones=5"),
        ({"epsilon": -0.1}, "Received: epsilon=-0.1"),
        ({"epsilon": None}, "Received: epsilon=None"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        ENRNNCell(**{"long_term_units": 4, "short_term_units": 3, **arguments})


def test_units_are_the_sum_of_the_two():
    assert ENRNNCell(4, 3).units == 7
    with pytest.raises(TypeError, match="units"):
        ENRNNCell(4, 3, units=7)


def test_the_layer_has_all_units():
    assert ENRNN(4, 3).units == 7


@pytest.mark.slow
def test_counts_the_gradients_that_are_missing():
    """Of an orthogonal `T` all eigenvalues tie, far more than can be parted."""
    random = np.random.default_rng(0)
    orthogonal = np.linalg.qr(random.normal(size=(40, 40)))[0]
    counts = {}
    for name, matrix in {"tied": orthogonal, "apart": 0.9 * np.eye(40)}.items():
        layer = ENRNN(2, 40, short_term_initializer=matrix)
        model = keras.Sequential([keras.Input((3, 2)), layer])
        model.compile(keras.optimizers.SGD(0.0), "mse")
        callback = MissingRadiusGradients(every=2)
        x, y = np.ones((8, 3, 2), "float32"), np.zeros((8, 42), "float32")
        history = model.fit(
            x, y, batch_size=2, epochs=2, callbacks=[callback], verbose=0
        )
        counts[name] = callback.count
        assert layer.cell.eigenpair_report()["gradient_found"] is (name == "apart")
        # Two looks an epoch.
        of_epochs = history.history["missing_radius_gradients"]
        assert of_epochs == [callback.count / 2] * 2
    assert counts == {"tied": 4, "apart": 0}


@pytest.mark.slow_on_jax
def test_what_is_frozen_misses_none():
    frozen = freeze(keras.Sequential([keras.Input((3, 2)), ENRNN(2, 2)]))
    with pytest.raises(ValueError, match="Received: .* with frozen=True"):
        frozen.layers[0].cell.eigenpair_report()
    with pytest.raises(ValueError, match="Received: .* with frozen=True"):
        frozen.layers[0].cell.short_term_kernel()
    callback = MissingRadiusGradients()
    callback.set_model(frozen)
    callback.act()
    assert callback.count == 0


@pytest.mark.slow
def test_another_model_is_counted_from_its_beginning():
    """Each fourth update of each, of three in a fit."""
    x, y = np.ones((6, 3, 2), "float32"), np.zeros((6, 4), "float32")
    callback = MissingRadiusGradients(every=4)
    looks = []
    callback.act = lambda: looks.append(callback.model)
    models = [keras.Sequential([keras.Input((3, 2)), ENRNN(2, 2)]) for _ in range(2)]
    for model in (models[0], models[1], models[1]):
        model.compile(keras.optimizers.SGD(0.0), "mse")
        model.fit(x, y, batch_size=2, callbacks=[callback], verbose=0)
    assert looks == [models[1]]


@pytest.mark.slow
def test_the_missing_gradients_are_looked_for_by_updates():
    """Four updates an epoch, two in a call: every second and every third one."""
    tied = np.linalg.qr(np.random.default_rng(0).normal(size=(40, 40)))[0]
    layer = ENRNN(2, 40, short_term_initializer=tied)
    model = keras.Sequential([keras.Input((3, 2)), layer])
    x, y = np.ones((8, 3, 2), "float32"), np.zeros((8, 42), "float32")
    in_a_call = 1 if keras.backend.backend() == "torch" else 2
    model.compile(keras.optimizers.SGD(0.0), "mse", steps_per_execution=in_a_call)
    for every, looks in ((2, 4), (3, 2)):
        callback = MissingRadiusGradients(every)
        model.fit(x, y, batch_size=2, epochs=2, callbacks=[callback], verbose=0)
        assert callback.count == looks
