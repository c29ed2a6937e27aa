"""What single architectures keep, and steps of one's own."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import (
    EURNN,
    GORU,
    AntisymmetricRNN,
    EURNNCell,
    FullURNN,
    GORUCell,
    RecurrentLayer,
    ScoRNN,
)
from keras_ortho.initializers import UnitaryComposition
from tests.cells.building import builder, weights_of
from tests.gradients import gradients, weight_gradients

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps
built = builder(ScoRNN, 16)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "steps", "growth"),
    [
        # modReLU with a zero bias is the identity: the Jacobian is W^1000 exactly.
        (ScoRNN(16, dtype="float64"), 1000, 0),
        # Each step multiplies an eigenvector by |1 + 0.01 i omega|, 1 at least.
        (
            AntisymmetricRNN(16, 0.01, 0.0, activation="linear", dtype="float64"),
            500,
            0.2,
        ),
    ],
)
def test_gradient_reaches_the_far_past(layer, steps, growth):
    """What the architectures are for: it keeps its norm."""
    x = np.random.default_rng(0).normal(size=(1, steps, 3))
    layer.build(x.shape)
    upstream = np.random.default_rng(1).normal(size=(1, 16))
    (found,) = gradients(
        lambda h: ops.sum(layer(ops.convert_to_tensor(x), initial_state=h) * upstream),
        np.ones((1, 16)),
    )
    ratio = np.linalg.norm(found) / np.linalg.norm(upstream)
    rounding = steps * 16 * EPS64
    assert 1 - rounding <= ratio <= 1 + growth + rounding


@pytest.mark.parametrize("gated", [False, True])
def test_recurrent_dropout_leaves_the_sum_alone(gated):
    """Masked and scaled up at every step, the state itself would double each time."""
    layer = built(
        AntisymmetricRNN, gated=gated, recurrent_dropout=0.5, activation="linear"
    )
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
    x = np.random.default_rng(0).normal(size=(3, 6, 3))
    # Without a bias, modReLU is the identity.
    kwargs = {"units": 4, "dtype": "float64", "bias_initializer": "zeros"}
    whole, half = (built(FullURNN, half_gradient=h, **kwargs) for h in (False, True))
    half.set_weights(whole.get_weights())
    np.testing.assert_array_equal(half(x), whole(x))
    found = [
        weight_gradients(layer, lambda h: ops.sum(h * h), x)[1]["recurrent_unitary"]
        for layer in (whole, half)
    ]
    # The gradient for all four quarters of the real matrix, backwards through time.
    weights, w = weights_of(whole), ops.convert_to_numpy(whole.recurrent_matrix())
    states = [np.tile(weights["initial_state"], (len(x), 1))]
    for t in range(x.shape[1]):
        states.append(x[:, t] @ weights["kernel"] + states[-1] @ w)
    delta, quarters = 2 * states.pop(), np.zeros_like(w)
    for state in reversed(states):
        quarters += state.T @ delta
        delta = delta @ w.T
    upper = np.stack(np.split(quarters[:4], 2, axis=1))
    lower = np.stack([quarters[4:, 4:], -quarters[4:, :4]])
    np.testing.assert_allclose(found[0], upper + lower, rtol=0, atol=1e4 * EPS64)
    np.testing.assert_allclose(found[1], upper, rtol=0, atol=1e4 * EPS64)
    assert np.abs(lower).max() > 1e-3


@pytest.mark.parametrize("shape", [(3, 6), (2, 6), (2, 5, 5), (6,)])
def test_unitary_composition(shape):
    dtype = "int32" if len(shape) == 1 else "float32"
    first, other = (UnitaryComposition(seed=seed)(shape, dtype) for seed in (1, 2))
    again = UnitaryComposition.from_config(UnitaryComposition(seed=1).get_config())
    np.testing.assert_array_equal(first, again(shape, dtype))
    assert not np.array_equal(first, other)
    with pytest.raises(ValueError, match=r"Received: shape=.*, dtype=float32"):
        UnitaryComposition()((*shape[:-1], 7, 8), "float32")


@pytest.mark.parametrize("zero_output_for_mask", [False, True])
def test_real_output_in_keras_loop(zero_output_for_mask):
    """With a mask, and an activation of which the derivative is not known."""
    x = np.random.default_rng(0).normal(size=(3, 5, 3)).astype("float32")
    mask = np.ones((3, 5), bool)
    mask[0, 3:] = mask[1, 0] = mask[1, 2] = False
    settings = {"units": 6, "real_output": True, "activation": "softsign"}
    settings |= {"zero_output_for_mask": zero_output_for_mask, "return_sequences": True}
    loop, unrolled = built(EURNN, **settings), built(EURNN, **settings, unroll=True)
    unrolled.set_weights(loop.get_weights())
    outputs = loop(x, mask=mask)
    assert outputs.shape == (3, 5, 6)
    np.testing.assert_allclose(outputs, unrolled(x, mask=mask), atol=100 * EPS32)


class Doubled(EURNNCell):
    """One with an output of its own."""

    def call(self, inputs, states, training=False):
        output, new = super().call(inputs, states, training=training)
        return 2 * output, new


class DoubledRNN(RecurrentLayer):
    cell_class = Doubled


def test_a_cell_with_an_output_of_its_own():
    x = np.random.default_rng(0).normal(size=(3, 5, 3))
    settings = {"real_output": True, "return_sequences": True, "dtype": "float64"}
    layer, plain = DoubledRNN(6, **settings), built(EURNN, units=6, **settings)
    expected = np.asarray(plain(x))
    layer.build(x.shape)
    layer.set_weights(plain.get_weights())
    # In float64, far above the rounding of five steps and far below a factor of two.
    np.testing.assert_allclose(layer(x), 2 * expected, atol=100 * EPS32)


@pytest.mark.parametrize("name", ["call", "step", "activate"])
def test_a_method_of_a_users_own_is_called(name):
    """The loop over the whole sequence would not know of it."""
    calls = []

    class OwnCell(GORUCell):
        pass

    def own(self, *args, **kwargs):
        calls.append(name)
        return getattr(super(OwnCell, self), name)(*args, **kwargs)

    setattr(OwnCell, name, own)

    class Own(GORU):
        cell_class = OwnCell

    layer, plain = built(Own, units=8), built(GORU, units=8)
    layer.set_weights(plain.get_weights())
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    np.testing.assert_allclose(layer(x), plain(x), atol=100 * 8 * EPS32)
    assert calls


@pytest.mark.parametrize("activation", ["modrelu", "elu"])
def test_masks_of_numbers(activation):
    """What is not zero counts, in the gradient, too, and in Keras's loop."""
    x = np.random.default_rng(0).normal(size=(4, 9, 3)).astype("float32")
    mask = np.random.default_rng(1).random((4, 9)) < 0.7
    layer = built(activation=activation)
    expected, gradients = weight_gradients(layer, ops.sum, x, mask=mask, training=True)
    numbers = -0.5 * mask.astype("float32")
    found, each = weight_gradients(layer, ops.sum, x, mask=numbers, training=True)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(each[name], gradient, rtol=1e-5, atol=1e-6)
