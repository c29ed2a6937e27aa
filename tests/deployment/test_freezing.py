"""A frozen model computes what the model does, from plain kernels."""

import keras
import numpy as np
import pytest
from keras import layers, ops

from keras_ortho import (
    ORNN,
    BNPDense,
    ORNNCell,
    OrthoDense,
    ScoRNN,
    ScoRNNCell,
    ScuRNN,
    SVDDense,
    freeze,
)
from keras_ortho.layers import TrainedInitialState
from keras_ortho.parametrizations import ScaledCayley
from tests.cells.architectures import ARCHITECTURES
from tests.saving import reloaded

pytestmark = pytest.mark.backends

X = np.random.default_rng(0).normal(size=(2, 7, 4)).astype("float32")
MASK = np.array([[1, 1, 0, 1, 1, 1, 0], [0, 1, 1, 1, 0, 1, 1]], bool)
# Seven steps, each with sums of less than 20 products of about 1, and a kernel that was
# made once in a program and once by itself.
ATOL = 7 * 20 * np.finfo("float32").eps


def sequential(*parts):
    return keras.Sequential([keras.Input((None, 4)), *parts])


def random_model(*parts):
    """A model with weights other than those it starts with."""
    model = sequential(*parts)
    random = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign_add(0.3 * random.normal(size=variable.shape))
    return model


def assert_freezes(model):
    frozen = freeze(model)
    found, expected = (each.predict(X, verbose=0) for each in (frozen, model))
    np.testing.assert_allclose(found, expected, atol=ATOL)
    return frozen


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_every_architecture(architecture, monkeypatch, tmp_path):
    layer = architecture.layer(**architecture.arguments, return_sequences=True)
    frozen = assert_freezes(random_model(layer, layers.Dense(2)))
    masked = frozen.layers[0](X, mask=MASK)
    np.testing.assert_allclose(masked, layer(X, mask=MASK), atol=ATOL)

    def fail(*values):
        raise AssertionError("A frozen kernel was made again")

    monkeypatch.setattr(type(layer.cell.parametrization), "matrix", fail)
    reloaded(frozen, tmp_path, X)
    assert_freezes(frozen)


@pytest.mark.parametrize("name", ["ScoRNN", "ENRNN", "SVDRNN", "EURNN", "GORU"])
def test_a_plain_step_is_that_of_simple_rnn(name):
    (architecture,) = [a for a in ARCHITECTURES if str(a) == name]
    given = {"activation": "tanh", "trainable_initial_state": False}
    model = random_model(architecture.layer(**architecture.arguments, **given))
    kind = architecture.layer if name == "GORU" else keras.layers.SimpleRNN
    assert type(assert_freezes(model).layers[0]) is kind


@keras.saving.register_keras_serializable(package="tests")
class DampedCell(ScoRNNCell):
    """A cell of a user's."""

    def step(self, inputs, state, recurrent_kernel):
        return 0.9 * state + 0.1 * super().step(inputs, state, recurrent_kernel)


def adapted():
    normalization = layers.Normalization()
    normalization.adapt(10 + 3 * X.reshape(-1, 4))
    return layers.TimeDistributed(normalization)


@pytest.mark.parametrize(
    "part",
    [
        adapted,
        lambda: layers.Bidirectional(
            ScoRNN(5, activation="tanh", return_sequences=True),
            backward_layer=ORNN(5, return_sequences=True, go_backwards=True),
        ),
        lambda: layers.RNN([ScoRNNCell(5), layers.LSTMCell(4)], return_sequences=True),
        lambda: layers.RNN(ScoRNNCell(5, activation="tanh"), return_sequences=True),
        lambda: layers.RNN(DampedCell(5), return_sequences=True),
        lambda: TrainedInitialState(ScoRNN(5, return_sequences=True)),
        lambda: layers.TimeDistributed(OrthoDense(4, ScaledCayley(1))),
        lambda: keras.Sequential([SVDDense(5), layers.BatchNormalization()]),
        lambda: BNPDense(4, activation="relu"),
        lambda: OrthoDense(4, ScaledCayley(0), use_bias=False),
    ],
)
def test_wherever_a_layer_may_be(part):
    assert_freezes(random_model(part(), ScoRNN(4)))


def test_of_a_matrix_in_heads_the_blocks_alone_are_left():
    mixing = ScoRNN(8, heads=2, rebase_every=3, return_sequences=True)
    frozen = assert_freezes(random_model(mixing, ScuRNN(6, heads=2, mix_inputs=False)))
    kernel, _ = (w for w in frozen.weights if w.name == "recurrent_kernel")
    assert tuple(kernel.shape) == (2, 4, 4)


def test_mixed_precision():
    model = random_model(ScoRNN(5, activation="softsign", dtype="mixed_bfloat16"))
    frozen = freeze(model)
    # Of a step with states of at most 1, the sum of a few products.
    np.testing.assert_allclose(frozen(X), model(X), rtol=0, atol=35 * 2**-7)
    assert frozen.layers[0].dtype_policy == model.layers[0].dtype_policy


def halved(x):
    """An activation of a user's, which Keras finds in the scope."""
    return x / 2


def test_a_functional_model_with_shared_layers():
    first, second = keras.Input((None, 4), name="a"), keras.Input((None, 4), name="b")
    shared = ScoRNN(5, return_sequences=True, return_state=True)
    (a, state), (b, _) = shared(first), shared(second)
    last = ORNN(5, activation=halved)(a + b + 1, initial_state=state)
    model = keras.Model({"a": first, "b": second}, [last, a])
    # The copy is not compiled, and needs no loss of one's own.
    model.compile("sgd", assert_freezes)
    with keras.saving.custom_object_scope({"halved": halved}):
        frozen = freeze(model)
    # The shared layer's once, and one more of the other, its trained initial state.
    assert len(frozen.weights) == 3 + 4
    given = {"a": X, "b": X[:, ::-1]}
    for found, expected in zip(frozen(given), model(given), strict=True):
        np.testing.assert_allclose(found, expected, atol=ATOL)


def test_states_that_are_carried_on():
    """Also from an initial state that is trained."""
    layer = layers.RNN(ORNNCell(5), stateful=True)
    model = keras.Sequential([keras.Input((7, 4), batch_size=2), layer])
    model(X)
    frozen = freeze(model)
    layer.reset_state()  # A copy begins anew.
    for _ in range(2):
        np.testing.assert_allclose(frozen(X), model(X), atol=ATOL)


def test_regularizers_and_constraints():
    """All but those of free variables."""
    given = {"kernel_regularizer": "l2", "bias_regularizer": "l2"}
    given |= {"return_sequences": True, "bias_initializer": "ones"}
    model = sequential(
        ScoRNN(5, activation="tanh", activity_regularizer="l1", **given),
        ScoRNN(5, activation="tanh", kernel_constraint="max_norm", **given),
        OrthoDense(5, ScaledCayley(), bias_regularizer="l2"),
    )
    frozen = freeze(model)
    model(X)
    frozen(X)
    assert len(model.losses) == len(frozen.losses) == 6
    np.testing.assert_allclose(sum(frozen.losses), sum(model.losses), rtol=1e-5)
    assert isinstance(frozen.layers[1].kernel_constraint, keras.constraints.MaxNorm)


class Doubled(OrthoDense):
    def call(self, inputs):
        return 2.0 * super().call(inputs)


class Hidden(layers.Layer):
    def build(self, input_shape):
        self.rnn = ScoRNN(5)
        self.rnn.build(input_shape)

    def call(self, x):
        return self.rnn(x)


class Subclassed(keras.Model):
    def call(self, x):
        return ops.copy(x)


def shared():
    cell, x = ScoRNNCell(5), keras.Input((None, 4))
    both = [layers.RNN(cell, go_backwards=back)(x) for back in (False, True)]
    return keras.Model(x, both)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (shared, "a layer or cell inside several"),
        (lambda: keras.Sequential([ScoRNN(5)]), "must be a built Keras layer"),
        (lambda: sequential(Subclassed()), "overrides `call`"),
        (lambda: sequential(Doubled(4, ScaledCayley())), "overrides `call`"),
        (lambda: sequential(Hidden()), "not in the config of the layer that contains"),
        (lambda: sequential(*[layers.Dense(4)] * 2), "has a layer twice"),
    ],
)
def test_what_cannot_be_frozen(make, words):
    with pytest.raises(ValueError, match=f"(?s){words}.*Received: "):
        freeze(make())
