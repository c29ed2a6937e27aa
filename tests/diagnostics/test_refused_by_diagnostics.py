"""What cannot be measured, logged or drawn, and what is said about it."""

import re

import keras
import numpy as np
import pytest
from keras import layers

from keras_ortho import ScoRNN, diagnostics
from keras_ortho.diagnostics import (
    Log,
    end_to_end_jacobians,
    gradient_norms,
    input_sensitivity,
    manifold_distances,
    trajectories,
)

X = np.zeros((2, 3, 2))
Y = X[:, 0]
STARTS = np.array([[0.5, -0.25]])


class OtherOutput(keras.layers.Layer):
    """A cell whose output is no state of it."""

    state_size = 2
    output_size = 2

    def call(self, inputs, states):
        return 2 * states[0], [inputs + states[0]]


def one(*made):
    return keras.Sequential([keras.Input((3, 2)), *made])


def two(name="second"):
    return one(ScoRNN(2, return_sequences=True, name="first"), ScoRNN(2, name=name))


def same_name():
    return one(
        ScoRNN(2, return_sequences=True, name="same"), one(ScoRNN(2, name="same"))
    )


def shared():
    layer = ScoRNN(2)
    first, second = keras.Input((3, 2)), keras.Input((3, 2))
    return keras.Model([first, second], layer(first) + layer(second))


def two_outputs():
    inputs = keras.Input((3, 2))
    return keras.Model(inputs, list(ScoRNN(2, return_state=True)(inputs)))


def moving(layer, starts, steps):
    layer.build((None, None, 1))
    return trajectories(layer, starts, steps)


def fit(measure):
    model = one(ScoRNN(2))
    model.compile("sgd", "mse")
    model.fit(X, Y, callbacks=[Log("new/log.csv", measure)], verbose=0)


MEASUREMENTS = {
    "`model` must be built": lambda: gradient_norms(
        keras.Sequential([ScoRNN(2)]), X, Y
    ),
    "must contain a recurrent layer": lambda: manifold_distances(one(layers.Dense(2))),
    "with the same name": lambda: manifold_distances(same_name()),
    "`layer` must name one of": lambda: input_sensitivity(two(), X),
    "must be a recurrent layer of the model: 'first', 'second'": (
        lambda: input_sensitivity(two(), X, layer="other")
    ),
    "must call the recurrent layer once": lambda: input_sensitivity(shared(), [X, X]),
    "must not be inside `TimeDistributed`": lambda: input_sensitivity(
        keras.Sequential([keras.Input((2, 3, 2)), layers.TimeDistributed(ScoRNN(2))]),
        X[None],
    ),
    "less than 1, the number": lambda: end_to_end_jacobians(one(ScoRNN(2)), X, state=1),
    "`units` must select some of the 2": (
        lambda: end_to_end_jacobians(one(ScoRNN(2)), X, units=slice(2, 3))
    ),
    "`units` must be a slice": lambda: end_to_end_jacobians(one(ScoRNN(2)), X, units=1),
    "`loss` must be a single loss": lambda: gradient_norms(one(ScoRNN(2)), X, Y),
    "output of `model` must be one tensor": (
        lambda: gradient_norms(two_outputs(), X, [Y] * 2, loss="mse")
    ),
    "`y` must be one tensor": (
        lambda: gradient_norms(one(ScoRNN(2)), X, [Y] * 2, loss="mse")
    ),
    "same number of sequences": (
        lambda: gradient_norms(one(ScoRNN(2)), X, Y[:1], loss="mse")
    ),
    "at least one": lambda: input_sensitivity(one(ScoRNN(2)), X[:0]),
    "shapes of the model's inputs": (
        lambda: input_sensitivity(one(ScoRNN(2)), X[:, :, :1])
    ),
    "must be one of its states": lambda: gradient_norms(
        one(layers.RNN(OtherOutput())), X, Y, loss="mse"
    ),
    "must have `recurrent_matrix()`, or": (
        lambda: manifold_distances(one(layers.RNN(OtherOutput())))
    ),
    "`center`": lambda: diagnostics.spectral_margins(one(ScoRNN(2)), center=np.nan),
    "one state of two numbers": lambda: moving(layers.LSTM(2), STARTS, 3),
    "`starts` must": lambda: moving(layers.SimpleRNN(2), STARTS[0], 3),
    "`num_steps` must": lambda: moving(layers.SimpleRNN(2), STARTS, 0),
}


@pytest.mark.backends
@pytest.mark.parametrize("message", MEASUREMENTS)
def test_what_cannot_be_measured(message):
    with pytest.raises(ValueError, match=f"(?s){re.escape(message)}.*Received: "):
        MEASUREMENTS[message]()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: diagnostics.plot_gradient_norms("a.png", Y), "`norms`.* norms=array"),
        (lambda: diagnostics.plot_eigenvalues("a.png", {}), "eigenvalues={}"),
        (lambda: diagnostics.plot_gradient_norms("a.pdf", {"a": [1]}), "path=a.pdf"),
        (lambda: Log("distance", manifold_distances), "suffix .csv.*path=distance"),
        (lambda: Log("log.csv", manifold_distances, every=0), "`every`.*every=0"),
        (lambda: Log("log.csv", 1), "`measure` must be a function.*1"),
        (
            lambda: fit(lambda model: gradient_norms(model, X, Y, layer="other")),
            "layer='other'",
        ),
    ],
)
def test_nothing_is_written(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()
    assert not list(tmp_path.iterdir())
