"""Any model with a recurrent layer can be observed, and stays as it is."""

import keras
import numpy as np
import pytest
from keras import layers, ops

from keras_ortho import EURNN, ScoRNN, ScoRNNCell
from keras_ortho.diagnostics import (
    end_to_end_jacobians,
    gradient_norms,
    input_sensitivity,
    manifold_distances,
    recurrent_matrices,
)
from keras_ortho.diagnostics.probe import Probe
from tests.cells.architectures import ARCHITECTURES
from tests.diagnostics.networks import randomize

pytestmark = pytest.mark.backends

# Of float32, over some steps of numbers of order one.
TOLERANCE = 1e-5


def data(batch=3, time=5, m=2, seed=0):
    return np.random.default_rng(seed).normal(size=(batch, time, m)).astype("float32")


def output(model, x, layer=None):
    """What the model gives while its layer is observed."""
    return Probe(model, layer, lambda probe, x: probe.observe(x, lambda *_: None)[0])(x)


LAYERS = {
    **{str(a): lambda a=a, **kw: a.layer(**a.arguments, **kw) for a in ARCHITECTURES},
    "SimpleRNN": lambda **kw: layers.SimpleRNN(4, **kw),
    "LSTM": lambda **kw: layers.LSTM(4, **kw),
    "GRU": lambda **kw: layers.GRU(4, **kw),
    "StackedRNNCells": lambda **kw: layers.RNN(
        [layers.LSTMCell(3), ScoRNNCell(4), layers.GRUCell(2)], **kw
    ),
}


# One of each way: the plain step, gates, a read-out, nested states.
FAST = {"ScoRNN", "GORU", "EURNN", "LSTM", "StackedRNNCells"}


@pytest.mark.parametrize(
    "name",
    [
        name if name in FAST else pytest.param(name, marks=pytest.mark.slow)
        for name in LAYERS
    ],
)
def test_observed_output_is_the_layers(name):
    layer = LAYERS[name](return_sequences=True)
    model = keras.Sequential([keras.Input((5, 2)), layer])
    randomize(model)
    x = data()
    np.testing.assert_allclose(
        output(model, x), model.predict(x, verbose=0), rtol=0, atol=TOLERANCE
    )


OPTIONS = [
    {"go_backwards": True},
    {"return_sequences": True, "zero_output_for_mask": True},
    {"return_sequences": True, "go_backwards": True, "zero_output_for_mask": True},
    {"unroll": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: " ".join(o))
@pytest.mark.parametrize(
    "make", [ScoRNN, pytest.param(layers.LSTM, marks=pytest.mark.slow)]
)
def test_observed_output_with_a_mask(make, options):
    layer = make(4, **options)
    model = keras.Sequential([keras.Input((5, 2)), layers.Masking(), layer])
    randomize(model)
    x = data()
    x[0, 3:] = 0  # At the end, at the beginning, between.
    x[1, :2] = 0
    x[2, 2] = 0
    np.testing.assert_allclose(
        output(model, x), model.predict(x, verbose=0), rtol=0, atol=TOLERANCE
    )


@pytest.mark.slow_on_jax
def test_steps_that_are_masked_do_not_count():
    model = keras.Sequential(
        [
            keras.Input((None, 2)),
            layers.Masking(),
            layers.SimpleRNN(3),
            layers.Dense(1),
        ]
    )
    randomize(model)
    x, y = data(1, 6), np.ones((1, 1))
    x[0, 4:] = 0
    x[0, 1] = 0
    without = x[:, [0, 2, 3]]
    norms = gradient_norms(model, x, y, loss="mse")
    expected = gradient_norms(model, without, y, loss="mse")
    np.testing.assert_allclose(norms[[0, 2, 3]], expected, rtol=TOLERANCE)
    assert not norms[[1, 4, 5]].any()
    np.testing.assert_allclose(
        end_to_end_jacobians(model, x),
        end_to_end_jacobians(model, without),
        rtol=0,
        atol=TOLERANCE,
    )
    found = input_sensitivity(model, x)
    np.testing.assert_allclose(
        found[np.ix_([0, 2, 3], [0, 2, 3])],
        input_sensitivity(model, without),
        rtol=0,
        atol=TOLERANCE,
    )
    assert not found[:, [1, 4, 5]].any()
    np.testing.assert_array_equal(found[5], found[3])
    # Nor do they count in the mean over sequences.
    both = gradient_norms(
        model, np.concatenate([x, data(1, 6, seed=1)]), np.ones((2, 1)), loss="mse"
    )
    alone = gradient_norms(model, data(1, 6, seed=1), np.ones((1, 1)), loss="mse")
    np.testing.assert_allclose(both[4:], alone[4:], rtol=TOLERANCE)


def functional():
    """Of several inputs, with an embedding, a way around, a model within, two outputs.

    The layer that is observed has others before and after it.
    """
    words, numbers = keras.Input((4,), dtype="int32"), keras.Input((4, 2))
    both = layers.Concatenate()([layers.Embedding(5, 3)(words), numbers])
    before = ScoRNN(3, return_sequences=True, name="before")(both)
    inner_input = keras.Input((4, 3))
    inner = keras.Model(
        inner_input, layers.LSTM(2, return_sequences=True, name="inside")(inner_input)
    )
    joined = layers.Concatenate()([inner(before), both])
    after = layers.GRU(3, name="after")(joined)
    model = keras.Model([words, numbers], layers.Dense(1)(after))
    randomize(model)
    return model


def two_classes():
    model = keras.Sequential([keras.Input((4, 2)), layers.GRU(3), layers.Dense(2)])
    model.add(layers.Softmax())
    randomize(model)
    return model


def distances(y, output):
    """A loss of a user's, which wants one dtype and one shape."""
    assert y.dtype == output.dtype
    return ops.sum((y - output) ** 2, axis=-1)


@pytest.mark.parametrize(
    ("given", "y", "known", "known_y"),
    [
        (["mse"], np.ones((2, 2)), "mse", np.ones((2, 2))),
        (distances, np.ones((2, 2), "int32"), distances, np.ones((2, 2), "float32")),
        ("crossentropy", [[0], [1]], "sparse_categorical_crossentropy", [0, 1]),
        ("ce", np.eye(2), "categorical_crossentropy", np.eye(2)),
    ],
)
def test_losses_as_compile_takes_them(given, y, known, known_y):
    model, x = two_classes(), data(2, 4)
    expected = gradient_norms(model, x, np.array(known_y), loss=known)
    model.compile("sgd", given)
    np.testing.assert_allclose(
        gradient_norms(model, x, np.array(y)), expected, rtol=TOLERANCE
    )
    assert expected.min() > 1e-4


@pytest.mark.slow_on_jax
def test_targets_without_the_axis_of_the_output():
    model = keras.Sequential([keras.Input((4, 2)), layers.GRU(3), layers.Dense(1)])
    randomize(model)
    for loss in ("mse", keras.losses.mean_squared_error):
        flat, column = (
            gradient_norms(model, data(2, 4), y, loss=loss)
            for y in (np.ones(2), np.ones((2, 1)))
        )
        np.testing.assert_allclose(flat, column, rtol=TOLERANCE)


@pytest.mark.slow_on_jax
def test_inputs_by_name():
    """In another order than the model has them, and of other widths."""
    one, two = keras.Input((4, 2), name="one"), keras.Input((4, 3), name="two")
    joined = layers.Concatenate()([two, one])
    model = keras.Model([two, one], layers.GRU(3)(joined))
    randomize(model)
    x = [data(2, 4, 3), data(2, 4)]
    by_name = dict(zip(["two", "one"], x, strict=True))
    expected = gradient_norms(model, x, np.ones((2, 3)), loss="mse")
    for given in (by_name, dict(reversed(by_name.items()))):
        found = gradient_norms(model, given, np.ones((2, 3)), loss="mse")
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE)
    wrong = {**by_name, "one": x[0]}
    with pytest.raises(ValueError, match="shapes of the model's inputs.*Received: "):
        gradient_norms(model, wrong, np.ones((2, 3)), loss="mse")


def test_a_layer_within_a_model():
    """Against a model that is cut open: its layer's outputs are inputs."""
    model = functional()
    words = np.array([[0, 1, 4, 2], [3, 3, 0, 1]])
    x, y = [words, data(2, 4)], np.ones((2, 1))
    found = gradient_norms(model, x, y, layer="inside", loss="mse")
    # `h_t` moves all later states of the layer: a shift of the sum of its effects is
    # measured by central differences of the loss.
    moved = central_norms(model, x, y, 4)
    np.testing.assert_allclose(found, moved, rtol=0.02)
    assert found.min() > 1e-3


def central_norms(model, x, y, time, step=0.03):
    """By moving each entry of each state, with the model run as it is observed."""

    def measure(probe, words, numbers, shift):
        shift = keras.ops.swapaxes(shift, 0, 1)
        moved = probe.observe([words, numbers], lambda *_: None, shift)[0]
        return moved

    probe = Probe(model, "inside", measure)
    norms = np.zeros((time, 2))
    for t in range(time):
        slopes = np.zeros((2, 2))
        for unit in range(2):
            losses = []
            for sign in (1, -1):
                shift = np.zeros((2, time, 4), "float32")
                shift[:, t, unit] = sign * step
                losses.append(np.mean((probe(*x, shift) - y) ** 2, axis=1))
            slopes[:, unit] = (losses[0] - losses[1]) / (2 * step)
        norms[t] = np.linalg.norm(slopes, axis=1)
    return norms.mean(axis=1)


def test_stacked_cells():
    """The first cell's state acts on the second one's at the same step."""
    cells = [layers.SimpleRNNCell(2), layers.SimpleRNNCell(2)]
    stacked = keras.Sequential([keras.Input((4, 2)), layers.RNN(cells)])
    one, two = (layers.SimpleRNN(2, return_sequences=i == 0) for i in range(2))
    apart = keras.Sequential([keras.Input((4, 2)), one, two])
    randomize(stacked)
    randomize(apart)
    x, y = data(2, 4), np.ones((2, 2))
    for state, layer in enumerate([one, two]):
        np.testing.assert_allclose(
            gradient_norms(stacked, x, y, loss="mse", state=state),
            gradient_norms(apart, x, y, loss="mse", layer=layer),
            rtol=TOLERANCE,
        )


def test_an_output_made_of_the_state():
    """EURNN's may be the real part; held against a model that takes it itself."""
    real = EURNN(2, real_output=True, return_sequences=True)
    whole = EURNN(2, return_sequences=True)
    model = keras.Sequential([keras.Input((4, 2)), real, layers.Dense(1)])
    other = keras.Sequential([keras.Input((4, 2)), whole, layers.Dense(1)])
    randomize(model)
    kernel, bias = model.layers[1].get_weights()
    whole.set_weights(real.get_weights())
    other.layers[1].set_weights([np.concatenate([kernel, 0 * kernel]), bias])
    x, y = data(2, 4), np.ones((2, 4, 1))
    norms = gradient_norms(model, x, y, loss="mse")
    np.testing.assert_allclose(
        norms, gradient_norms(other, x, y, loss="mse"), rtol=TOLERANCE
    )
    assert norms.min() > 1e-3


def test_both_directions():
    both = layers.Bidirectional(layers.LSTM(3), merge_mode="concat")
    model = keras.Sequential([keras.Input((4, 2)), both, layers.Dense(1)])
    randomize(model)
    x, y = data(2, 4), np.ones((2, 1))
    with pytest.raises(ValueError, match="must name one of"):
        gradient_norms(model, x, y, loss="mse")
    forward = gradient_norms(model, x, y, loss="mse", layer=both.forward_layer)
    # Turned around, the directions change places.
    turned = layers.Bidirectional(layers.LSTM(3), merge_mode="concat")
    other = keras.Sequential([keras.Input((4, 2)), turned, layers.Dense(1)])
    forward_weights = both.forward_layer.get_weights()
    turned.forward_layer.set_weights(both.backward_layer.get_weights())
    turned.backward_layer.set_weights(forward_weights)
    kernel, bias = model.layers[-1].get_weights()
    other.layers[-1].set_weights([np.roll(kernel, 3, axis=0), bias])
    name = turned.backward_layer.name
    np.testing.assert_allclose(
        gradient_norms(other, x[:, ::-1], y, loss="mse", layer=name),
        forward,
        rtol=TOLERANCE,
    )


@pytest.mark.slow
def test_the_model_stays_as_it_is():
    inputs = keras.Input(batch_shape=(3, 5, 2))
    first = ScoRNN(3, dropout=0.3, seed=1, return_sequences=True, stateful=True)
    last = layers.LSTM(2, stateful=True, recurrent_dropout=0.2, seed=2)
    normed = layers.BatchNormalization()(first(inputs))
    model = keras.Model(inputs, last(layers.Dropout(0.5, seed=3)(normed)))
    model.compile("adam", "mse")
    x, y = data(), np.ones((3, 2), "float32")
    model.fit(x, y, batch_size=3, verbose=0)

    def everything():
        variables = [*model.variables, *model.optimizer.variables]
        for layer in (first, last):
            variables += layer.states or []
        return [np.array(keras.ops.convert_to_numpy(v)) for v in variables]

    before = everything()
    attributes = [dict(vars(layer)).keys() for layer in (first, last)]
    norms = gradient_norms(model, x, y, layer=last)
    input_sensitivity(model, x, layer=first)
    end_to_end_jacobians(model, x, layer=last)
    manifold_distances(model)
    for value, expected in zip(everything(), before, strict=True):
        np.testing.assert_array_equal(value, expected)
    assert [vars(layer).keys() for layer in (first, last)] == attributes
    assert last.use_cudnn == "auto"
    np.testing.assert_array_equal(gradient_norms(model, x, y, layer=last), norms)


def test_a_state_that_is_carried_on_is_the_one_before_the_first_step():
    """At every call the one of that time, on JAX, too, where constants are compiled."""
    layer = layers.SimpleRNN(2, stateful=True)
    model = keras.Sequential([keras.Input(batch_shape=(1, 1, 1)), layer])
    model.set_weights([np.ones((1, 2)), np.eye(2), np.zeros(2)])
    probe = Probe(
        model, None, lambda probe, x: probe.observe(x, lambda s, x, row, mask: row)[1]
    )
    x = np.ones((1, 1, 1))
    for start in (0.25, 0.5):
        layer.states[0].assign(np.full((1, 2), start))
        np.testing.assert_array_equal(probe(x), np.full((1, 1, 2), start))


def test_a_trained_initial_state_is_the_one_before_the_first_step_until_it_is_left():
    layer = ScoRNN(3, stateful=True, trainable_initial_state=True)
    model = keras.Sequential([keras.Input(batch_shape=(1, 2, 2)), layer])
    randomize(model)
    probe = Probe(
        model, None, lambda probe, x: probe.observe(x, lambda s, x, row, mask: row)[1]
    )
    x = data(1, 2)
    np.testing.assert_array_equal(probe(x)[0, 0], layer.cell.initial_state)
    model(x)
    np.testing.assert_array_equal(probe(x)[0], layer.states[0])


class OtherOutput(keras.layers.Layer):
    """A cell whose output is no state of it."""

    state_size = 2
    output_size = 2

    def call(self, inputs, states):
        return 2 * states[0], [inputs + states[0]]


def shared():
    layer = ScoRNN(2)
    first, second = keras.Input((3, 2)), keras.Input((3, 2))
    return keras.Model([first, second], layer(first) + layer(second))


def two_outputs():
    inputs = keras.Input((3, 2))
    return keras.Model(inputs, list(ScoRNN(2, return_state=True)(inputs)))


X = np.zeros((2, 3, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: gradient_norms(keras.Sequential([ScoRNN(2)]), X, X),
            "`model` must be built.*Received: .* with built=False",
        ),
        (
            lambda: manifold_distances(
                keras.Sequential([keras.Input((2,)), layers.Dense(2)])
            ),
            "must contain a recurrent layer.*Received: .* with none",
        ),
        (
            lambda: input_sensitivity(functional(), X),
            "`layer` must name one of.*'before'.*Received: layer=None",
        ),
        (
            lambda: input_sensitivity(functional(), X, layer="other"),
            "must be a recurrent layer of the model.*Received: layer='other'",
        ),
        (
            lambda: input_sensitivity(shared(), [X, X]),
            "must call the recurrent layer once",
        ),
        (
            lambda: end_to_end_jacobians(one(ScoRNN(2)), X, state=1),
            "`state` must be .* less than 1.*Received: state=1",
        ),
        (
            lambda: end_to_end_jacobians(one(ScoRNN(2)), X, state=True),
            "Received: state=True",
        ),
        (
            lambda: end_to_end_jacobians(one(ScoRNN(2)), X, units=slice(2, 3)),
            "`units` must select some of the 2 units.*Received: units=",
        ),
        (
            lambda: end_to_end_jacobians(one(ScoRNN(2)), X, units=1),
            "`units` must be a slice.*Received: units=1",
        ),
        (
            lambda: gradient_norms(one(ScoRNN(2)), X, X[:, 0]),
            "`loss` must be a single loss.*Received: loss=None",
        ),
        (
            lambda: gradient_norms(two_outputs(), X, [X[:, 0]] * 2, loss="mse"),
            "output of `model` must be one tensor.*Received: 2 tensors",
        ),
        (
            lambda: gradient_norms(one(ScoRNN(2)), X, [X[:, 0]] * 2, loss="mse"),
            "`y` must be one tensor.*Received: 2 tensors",
        ),
        (
            lambda: gradient_norms(one(ScoRNN(2)), X, X[:1, 0], loss="mse"),
            r"same number of sequences.*Received: shapes=\[\(2, 3, 2\), \(1, 2\)\]",
        ),
        (
            lambda: input_sensitivity(one(ScoRNN(2)), X[:0]),
            "at least one",
        ),
        (
            lambda: input_sensitivity(one(ScoRNN(2)), X[:, :, :1]),
            r"shapes of the model's inputs.*Received: x.shape=\[\(2, 3, 1\)\]",
        ),
        (
            lambda: gradient_norms(
                one(layers.RNN(OtherOutput())), X, X[:, 0], loss="mse"
            ),
            "must be one of its states",
        ),
        (
            lambda: recurrent_matrices(one(layers.RNN(OtherOutput()))),
            r"must have `recurrent_matrix\(\)`, or",
        ),
        (
            lambda: input_sensitivity(
                keras.Sequential(
                    [keras.Input((2, 3, 2)), layers.TimeDistributed(ScoRNN(2))]
                ),
                np.zeros((1, 2, 3, 2)),
            ),
            "must not be inside `TimeDistributed`",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def one(layer):
    return keras.Sequential([keras.Input((3, 2)), layer])
