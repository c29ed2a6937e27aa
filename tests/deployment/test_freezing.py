"""A frozen model computes what the model does, from plain kernels."""

import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import layers, ops

import keras_ortho
from keras_ortho import (
    ORNN,
    BNPDense,
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
from tests.reference import complex_block
from tests.saving import reloaded

pytestmark = pytest.mark.backends

X = np.random.default_rng(0).normal(size=(2, 7, 4)).astype("float32")
MASK = np.array([[1, 1, 0, 1, 1, 1, 0], [0, 1, 1, 1, 0, 1, 1]], bool)
# Seven steps, each with sums of less than 20 products of about 1, and a kernel that was
# made once in a program and once by itself.
ATOL = 7 * 20 * np.finfo("float32").eps


def random_model(*parts):
    """A model with weights other than those it starts with."""
    model = keras.Sequential([keras.Input((None, 4)), *parts])
    random = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign_add(0.3 * random.normal(size=variable.shape))
    return model


def assert_equal(model, frozen, x=X):
    np.testing.assert_allclose(
        frozen.predict(x, verbose=0), model.predict(x, verbose=0), atol=ATOL
    )


def names(layer):
    return {weight.name for weight in layer.weights}


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_every_architecture(architecture, monkeypatch, tmp_path):
    layer = architecture.layer(**architecture.arguments, return_sequences=True)
    model = random_model(layer, layers.Dense(2))
    frozen = freeze(model)
    assert_equal(model, frozen)
    np.testing.assert_allclose(
        frozen.layers[0](X, mask=MASK), layer(X, mask=MASK), atol=ATOL
    )
    (free, *_) = layer.cell.parametrization.variables(layer.cell.units)
    assert free.name not in names(frozen)
    assert {"kernel", "recurrent_kernel", "bias"} <= names(frozen)

    def fail(*values):
        raise AssertionError("A frozen kernel was made again")

    monkeypatch.setattr(type(layer.cell.parametrization), "matrix", fail)
    reloaded(frozen, tmp_path, X)
    assert_equal(frozen, freeze(frozen))


@pytest.mark.parametrize("name", keras_ortho.architectures.ARCHITECTURES)
def test_a_plain_step_is_that_of_simple_rnn(name):
    (architecture,) = [a for a in ARCHITECTURES if str(a) == name]
    given = {"activation": "tanh", "trainable_initial_state": False}
    model = random_model(architecture.layer(**architecture.arguments, **given))
    frozen = freeze(model)
    plain = name not in ("AntisymmetricRNN", "GORU")
    kind = keras.layers.SimpleRNN if plain else architecture.layer
    assert type(frozen.layers[0]) is kind
    assert_equal(model, frozen)


@pytest.mark.parametrize("heads", [1, 2])
def test_a_frozen_matrix_is_set(heads):
    """To any, as nothing holds it, but for the zeros between heads."""
    layer = freeze(random_model(ScuRNN(4, heads=heads))).layers[0]
    real, imaginary = np.random.default_rng(0).normal(size=(2, 4, 4))
    matrix = real + 1j * imaginary
    if heads > 1:
        matrix[:2, 2:] = matrix[2:, :2] = 0
    layer.set_recurrent_matrix(matrix)
    eps = np.finfo("float32").eps
    expected = complex_block(matrix)
    np.testing.assert_allclose(layer.recurrent_matrix(), expected, rtol=eps, atol=eps)


@pytest.mark.slow
def test_a_file_that_needs_no_package(tmp_path):
    layer = ScoRNN(5, activation="relu", kernel_regularizer="l2", dropout=0.1)
    freeze(random_model(layer, SVDDense(4))).save(tmp_path / "model.keras")
    command = (
        "import sys, keras; "
        f"print(keras.saving.load_model({str(tmp_path / 'model.keras')!r}).name); "
        "sys.exit('keras_ortho' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", command], check=True)


@pytest.mark.parametrize(
    "part",
    [
        lambda: layers.Bidirectional(ScoRNN(5, return_sequences=True)),
        lambda: layers.Bidirectional(
            ScoRNN(5, activation="tanh"), backward_layer=ORNN(4, go_backwards=True)
        ),
        lambda: layers.RNN(ScoRNNCell(5)),
        lambda: layers.RNN([ScoRNNCell(5), layers.LSTMCell(4)], return_sequences=True),
        lambda: layers.RNN(ScoRNNCell(5, activation="tanh")),
        lambda: TrainedInitialState(ScoRNN(5)),
        lambda: layers.TimeDistributed(OrthoDense(4, ScaledCayley(1))),
        lambda: keras.Sequential([ScoRNN(5), layers.BatchNormalization()]),
        lambda: SVDDense(4, activation="relu"),
        lambda: BNPDense(4, activation="relu"),
        lambda: OrthoDense(4, ScaledCayley(0), use_bias=False),
    ],
)
def test_wherever_a_layer_may_be(part):
    model = random_model(part())
    frozen = freeze(model)
    assert_equal(model, frozen)
    assert not {"recurrent_skew", "reflectors"} & names(frozen)


def test_a_functional_model_with_shared_layers():
    first, second = keras.Input((None, 4), name="a"), keras.Input((None, 4), name="b")
    shared = ScoRNN(5, return_sequences=True, return_state=True)
    (a, state), (b, _) = shared(first), shared(second)
    last = ORNN(5)(layers.Add()([a, b]) + 1, initial_state=state)
    model = keras.Model({"a": first, "b": second}, [last, a])
    # The copy is not compiled, and needs no loss of one's own.
    model.compile("sgd", halved)
    frozen = freeze(model)
    # The shared layer's once, and one more of the other, its trained initial state.
    assert len(frozen.weights) == 3 + 4
    given = {"a": X, "b": X[:, ::-1]}
    for found, expected in zip(frozen(given), model(given), strict=True):
        np.testing.assert_allclose(found, expected, atol=ATOL)


@pytest.mark.parametrize(
    "make",
    [
        ScoRNN,
        ORNN,
        lambda *args, **kwargs: layers.RNN(keras_ortho.ORNNCell(*args), **kwargs),
    ],
    ids=["ScoRNN", "ORNN", "RNN(ORNNCell)"],
)
def test_states_that_are_carried_on(make):
    """Also from an initial state that is trained, as two of them have."""
    layer = make(5, stateful=True)
    model = keras.Sequential([keras.Input((7, 4), batch_size=2), layer])
    model(X)
    frozen = freeze(model)
    layer.reset_state()  # A copy begins anew.
    for _ in range(2):
        assert_equal(model, frozen)


def test_what_was_adapted_to_data():
    normalization = layers.Normalization()
    normalization.adapt(10 + 3 * X.reshape(-1, 4))
    model = random_model(layers.TimeDistributed(normalization), ScoRNN(6))
    assert_equal(model, freeze(model), 10 + 3 * X)


@pytest.mark.slow
def test_a_quantized_layer():
    model = random_model(ScoRNN(6), layers.Dense(2))
    model.quantize("int8")
    assert_equal(model, freeze(model))


def test_a_vocabulary():
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras reads text on TensorFlow")
    words = layers.TextVectorization(output_mode="tf_idf")
    words.adapt(["a b c", "b d e"])
    text = keras.Input((1,), dtype="string")
    # Of about 1, as the tolerance has it.
    sequence = layers.Rescaling(0.2)(layers.Reshape((-1, 1))(words(text)))
    model = keras.Model(text, ScoRNN(6)(sequence))
    assert_equal(model, freeze(model), ops.convert_to_tensor([["a b c"], ["e e b"]]))


@pytest.mark.parametrize("stock", [False, True])
@pytest.mark.parametrize(
    ("policy", "eps"),
    [("mixed_bfloat16", 2**-7), ("float64", 2**-52), ("bfloat16", 2**-7)],
)
def test_other_precisions(policy, eps, stock):
    """Of half of which Keras's twin could not draw its own orthogonal matrix."""
    given = {"activation": "tanh", "dtype": policy}
    model = random_model(
        layers.RNN(ScoRNNCell(5, **given)) if stock else ScoRNN(5, **given)
    )
    frozen = freeze(model)
    assert frozen.layers[0].dtype_policy == model.layers[0].dtype_policy
    # Of a step with states of at most 1, the sum of a few products.
    np.testing.assert_allclose(frozen(X), model(X), rtol=0, atol=35 * eps)


def halved(x):
    """An activation of a user's, which is not registered."""
    return x / 2


@keras.saving.register_keras_serializable(package="tests")
class DampedCell(ScoRNNCell):
    """A cell of a user's, with a step of its own."""

    def step(self, inputs, state, recurrent_kernel):
        return 0.9 * state + 0.1 * super().step(inputs, state, recurrent_kernel)


def test_a_cell_of_ones_own():
    """And an activation, which is found where Keras finds it, in the scope."""
    model = random_model(layers.RNN(DampedCell(5, activation=halved)))
    with keras.saving.custom_object_scope({"halved": halved}):
        frozen = freeze(model)
    assert frozen.layers[0].cell.activation is halved
    assert type(frozen.layers[0].cell) is DampedCell
    assert "recurrent_kernel" in names(frozen)
    assert_equal(model, frozen)


def test_regularizers_and_constraints():
    """All but those of free variables."""
    given = dict.fromkeys(("kernel_regularizer", "bias_regularizer"), "l2")
    given |= {"kernel_constraint": "max_norm", "bias_constraint": "non_neg"}
    rnn = given | {"bias_initializer": "ones", "return_sequences": True}
    model = keras.Sequential(
        [
            keras.Input((None, 4)),
            ScoRNN(5, activation="tanh", **rnn),
            ScoRNN(5, activation="tanh", activity_regularizer="l1", **rnn),
            ScoRNN(5, activity_regularizer="l1", **rnn),
            BNPDense(3, activity_regularizer="l1", **given),
        ]
    )
    frozen = freeze(model)
    assert type(frozen.layers[0]) is layers.SimpleRNN
    model(X)
    frozen(X)
    assert len(model.losses) == len(frozen.losses) == 11
    np.testing.assert_allclose(sum(frozen.losses), sum(model.losses), rtol=1e-5)
    for before, after in zip(model.layers, frozen.layers, strict=True):
        for name in ("kernel_constraint", "bias_constraint"):
            old, new = (
                getattr(getattr(x, "cell", x), name, None) for x in (before, after)
            )
            assert type(old) is type(new)


class Doubled(OrthoDense):
    """A dense layer that does more."""

    def call(self, inputs, training=False):
        return 2.0 * super().call(inputs, training)


class Hidden(layers.Layer):
    """A layer that holds another which its config does not have."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.rnn = ScoRNN(5)

    def build(self, input_shape):
        self.rnn.build(input_shape)

    def call(self, x):
        return self.rnn(x)


class Subclassed(keras.Model):
    """A model with a `call` of its own."""

    def call(self, x):
        return ops.copy(x)


def test_what_cannot_be_frozen():
    subclassed = Subclassed()
    subclassed(X)
    hidden = keras.Sequential([keras.Input((None, 4)), Hidden()])
    cell = ScoRNNCell(5)
    twice = layers.Dense(4)
    inputs = keras.Input((None, 4))
    each = [layers.RNN(cell, go_backwards=back)(inputs) for back in (False, True)]
    cases = {
        "must not contain one layer or cell inside several": keras.Model(inputs, each),
        "has no weights yet": keras.Sequential([ScoRNN(5)]),
        "overrides `call` cannot": subclassed,
        "overrides `call`": keras.Sequential(
            [keras.Input((4,)), Doubled(4, ScaledCayley())]
        ),
        "that contains it creates it": hidden,
        "contain a layer twice": keras.Sequential([keras.Input((4,)), twice, twice]),
        "copied from its config.* lambda": keras.Sequential(
            [keras.Input((None, 4)), ScoRNN(5, activation=lambda x: 0.9 * x)]
        ),
        "must be a Keras model": ScoRNNCell,
    }
    for words, model in cases.items():
        with pytest.raises(ValueError, match=f"(?s){words}.*Received: "):
            freeze(model)
    with pytest.raises(ValueError, match="before it is built.*Received: "):
        hidden.layers[0].rnn.cell.freeze()
