"""What single architectures keep, and cells and parametrizations of one's own."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_ortho as ko
from keras_ortho.activations import complex_modrelu, modrelu, smoothed_modrelu
from keras_ortho.optimizers import group_of
from keras_ortho.parametrizations import ScaledCayleyUnitary
from tests.cells.building import built, weights_of
from tests.gradients import gradients, weight_gradients

pytestmark = pytest.mark.backends

BACKEND = keras.backend.backend()
EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3, 5, 3)).astype("float32")


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("stock", [False, True])
def test_a_complex_state_of_zero_has_a_gradient(dtype, stock):
    """Blank inputs, no initial state, and biases of either sign."""
    layer = ko.ScuRNN(3, trainable_initial_state=False, dtype=dtype)
    x = np.zeros((2, 4, 2), "float32")
    x[:, 3] = 1e-3
    x = x.astype(dtype)
    layer.build(x.shape)
    layer.cell.bias.assign([0.5, 0.0, -0.5])
    layer = keras.layers.RNN(layer.cell, dtype=dtype) if stock else layer
    layer.build(x.shape)
    _, found = weight_gradients(layer, lambda h: ops.sum(ops.cast(h, "float32")), x)
    for name, gradient in found.items():
        assert np.isfinite(gradient).all(), name


@pytest.mark.parametrize("cls", [ko.ScuRNNCell, ko.ScuRNN])
def test_names_of_modrelu(cls):
    for given, known in {
        "modrelu": "modrelu",
        "exact_modrelu": "modrelu",
        "smoothed_modrelu": "smoothed_modrelu",
        complex_modrelu: "modrelu",
        modrelu: "modrelu",
        smoothed_modrelu: "smoothed_modrelu",
    }.items():
        made = cls(4, activation=given)
        config = made.get_config()
        assert made.activation == cls.from_config(config).activation == known
        if known == "modrelu":
            cell = ko.ScoRNNCell(2, activation=given)
            assert cell.get_config()["activation"] == cell.activation == known
    # As it was saved when there was one form, the smoothed one.
    config["activation"] = "modrelu"
    assert cls.from_config(config).activation == "smoothed_modrelu"
    other = ko.OrthoRNN(4, ScaledCayleyUnitary(), activation="smoothed_modrelu")
    again = ko.OrthoRNN.from_config(other.get_config())
    assert again.activation == "smoothed_modrelu"


@pytest.mark.parametrize("gated", [False, True])
def test_recurrent_dropout_leaves_the_sum_alone(gated):
    """Masked and scaled up at every step, the state itself would double each time."""
    options = {"gated": gated, "recurrent_dropout": 0.5, "activation": "linear"}
    layer = built(ko.AntisymmetricRNN, 16, **options)
    layer.set_recurrent_matrix(-0.01 * np.eye(16))
    start = np.ones((1, 16), "float32")
    x = np.zeros((1, 50, 3), "float32")
    for each in (layer, keras.layers.RNN(layer.cell)):
        state = ops.convert_to_numpy(each(x, initial_state=start, training=True))
        # At most 50 steps by -0.001 of the state, twice that where it was not dropped.
        assert np.all((state > 1 - 0.1) & (state < 1 + 100 * EPS32))
        assert len(np.unique(np.round(state, 4))) == 2
    (gradient,) = gradients(
        lambda start: ops.sum(layer(x, initial_state=start, training=True)), start
    )
    assert np.all((gradient > 0.8) & (gradient < 1 + 100 * EPS32))


def test_half_gradient_is_that_of_the_upper_rows():
    x = RANDOM.normal(size=(3, 6, 3))
    # Without a bias, modReLU is the identity.
    kwargs = {"dtype": "float64", "bias_initializer": "zeros"}
    layer = built(ko.FullURNN, 4, half_gradient=True, **kwargs)
    weights, w = weights_of(layer), ops.convert_to_numpy(layer.recurrent_matrix())

    def loss(upper, lower):
        matrix = ops.concatenate([upper, lower])
        state = np.tile(weights["initial_state"], (len(x), 1))
        for t in range(x.shape[1]):
            state = x[:, t] @ weights["kernel"] + ops.matmul(state, matrix)
        return ops.sum(state * state)

    upper, lower = gradients(loss, w[:4], w[4:])
    value, found = weight_gradients(layer, lambda h: ops.sum(h * h), x)
    assert value == pytest.approx(float(loss(w[:4], w[4:])), rel=1e4 * EPS64)
    real_and_imaginary = np.stack(np.split(upper, 2, axis=1))
    np.testing.assert_allclose(
        found["recurrent_unitary"], real_and_imaginary, rtol=0, atol=1e4 * EPS64
    )
    assert np.abs(lower).max() > 1e-3


@pytest.mark.skipif(BACKEND != "jax", reason="TensorFlow has none in training")
@pytest.mark.parametrize("cls", [ko.ScuRNN, ko.EURNN])
def test_second_derivatives_where_units_are_zero(cls):
    from jax import grad

    bias, x = keras.initializers.Constant(-0.5), X.astype("float64")
    layer = cls(4, bias_initializer=bias, dtype="float64")
    assert np.any(np.asarray(layer(x)) == 0)

    def penalty(apply, **given):
        slope = grad(lambda x: ops.sum(apply(x, **given) ** 2))
        return np.asarray(grad(lambda x: ops.sum(slope(x) ** 2))(x))

    expected = penalty(keras.layers.RNN(layer.cell, dtype="float64"))
    atol = 1e4 * EPS64 * np.abs(expected).max()
    np.testing.assert_allclose(penalty(layer, training=True), expected, atol=atol)


@pytest.mark.parametrize("zero_output_for_mask", [False, True])
def test_real_output_in_keras_loop(zero_output_for_mask):
    """With a mask, and an activation of which the derivative is not known."""
    mask = np.ones((3, 5), bool)
    mask[0, 3:] = mask[1, 0] = mask[1, 2] = False
    settings = {"real_output": True, "activation": "softsign"}
    settings |= {"zero_output_for_mask": zero_output_for_mask, "return_sequences": True}
    loop, unrolled = (built(ko.EURNN, 6, **settings, unroll=u) for u in (False, True))
    unrolled.set_weights(loop.get_weights())
    outputs = loop(X, mask=mask)
    assert outputs.shape == (3, 5, 6)
    np.testing.assert_allclose(outputs, unrolled(X, mask=mask), atol=100 * EPS32)


class Doubled(ko.EURNNCell):
    """One with an output of its own."""

    def call(self, inputs, states, training=False):
        output, new = super().call(inputs, states, training=training)
        return 2 * output, new


class DoubledRNN(ko.RecurrentLayer):
    cell_class = Doubled


def test_a_cell_with_an_output_of_its_own():
    settings = {"real_output": True, "return_sequences": True}
    layer, plain = built(DoubledRNN, 6, **settings), built(ko.EURNN, 6, **settings)
    layer.set_weights(plain.get_weights())
    np.testing.assert_allclose(layer(X), 2 * plain(X), atol=100 * EPS32)


@pytest.mark.parametrize("name", ["call", "step", "activate"])
def test_a_method_of_a_users_own_is_called(name):
    """The loop over the whole sequence would not know of it."""
    calls = []

    def own(self, *args, **kwargs):
        calls.append(name)
        return getattr(super(OwnCell, self), name)(*args, **kwargs)

    OwnCell = type("OwnCell", (ko.GORUCell,), {name: own})
    Own = type("Own", (ko.GORU,), {"cell_class": OwnCell})
    layer, plain = built(Own, 8), built(ko.GORU, 8)
    layer.set_weights(plain.get_weights())
    np.testing.assert_allclose(layer(X), plain(X), atol=100 * 8 * EPS32)
    assert calls


@pytest.mark.parametrize(
    "layer",
    [
        ko.ScuRNN(4),
        ko.ENRNN(4, 2),
        ko.FullURNN(4),
        ko.FactorizedRNN(4, activation="modrelu"),
    ],
    ids=lambda layer: layer.name,
)
def test_ortho_rnn_equals_the_class(layer):
    cell = layer.cell
    trained = {"trainable_initial_state": cell.trainable_initial_state}
    other = built(ko.OrthoRNN, cell.units, cell.parametrization, **trained)
    expected = ops.convert_to_numpy(layer(X))
    assert [w.name for w in other.weights] == [w.name for w in layer.weights]
    assert list(map(group_of, other.weights)) == list(map(group_of, layer.weights))
    other.set_weights(layer.get_weights())
    # The same program, compiled at another time.
    np.testing.assert_allclose(other(X), expected, rtol=1e-5, atol=1e-6)


def test_an_array_for_the_kernel_is_for_the_candidate():
    array = np.ones((X.shape[-1], 4), "float32")
    layer = built(ko.GORU, 4, kernel_initializer=array)
    np.testing.assert_array_equal(layer.cell.kernel, array)


@pytest.mark.parametrize("stock", [False, True])
def test_an_open_reset_gate_learns_in_low_precision(stock):
    """In bfloat16, the sigmoid of 10 is 1, from which no derivative can be had."""
    given = {"reset_bias_initializer": keras.initializers.Constant(10.0)}
    layers = [
        built(ko.GORU, 4, dtype=dtype, **given)
        for dtype in ("float64", "mixed_bfloat16")
    ]
    layers[1].set_weights(layers[0].get_weights())
    found = []
    for layer in layers:
        if stock:
            layer = keras.layers.RNN(layer.cell, dtype=layer.dtype_policy)
            layer.build(X.shape)
        _, gradient = weight_gradients(layer, lambda y: ops.sum(ops.square(y)), X)
        found.append(gradient["reset_bias"].astype("float64"))
    exact, rounded = found
    # Five steps round to eight bits: a hundred roundings would be 0.4 of it.
    error = np.linalg.norm(rounded - exact)
    assert error < 0.4 * np.linalg.norm(exact)


NO_BIAS = {"bias_initializer": "zeros", "trainable_initial_state": False}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "growth"),
    [
        # modReLU with a zero bias is the identity: the Jacobian is W^500 exactly.
        (ko.ScoRNN(16, dtype="float64"), 0),
        (ko.ScuRNN(8, **NO_BIAS, dtype="float64"), 0),
        # Each step multiplies an eigenvector by |1 + 0.01 i omega|, 1 at least.
        (ko.AntisymmetricRNN(16, 0.01, 0.0, activation="linear", dtype="float64"), 0.2),
    ],
)
def test_gradient_reaches_the_far_past(layer, growth):
    """What the architectures are for: it keeps its norm."""
    steps = 500
    x = np.zeros((1, steps, 3))
    layer.build(x.shape)
    upstream = np.random.default_rng(1).normal(size=(1, 16))
    (found,) = gradients(
        lambda h: ops.sum(layer(ops.convert_to_tensor(x), initial_state=h) * upstream),
        np.ones((1, 16)),
    )
    ratio = np.linalg.norm(found) / np.linalg.norm(upstream)
    rounding = steps * 16 * EPS64
    assert 1 - rounding <= ratio <= 1 + growth + rounding
