"""The callback writes a table, and leaves the training as it is."""

import csv

import keras
import numpy as np
import pytest
from keras import layers

from keras_ortho import FullURNN, ScoRNN, diagnostics
from keras_ortho.diagnostics import Log, manifold_distances
from tests.diagnostics.networks import model_of

pytestmark = pytest.mark.backends

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(8, 4, 2)).astype("float32")
Y = RANDOM.normal(size=(8, 1)).astype("float32")

MEASURES = {
    "distance": diagnostics.manifold_distances,
    "margin": diagnostics.spectral_margins,
    "kernel": diagnostics.kernel_eigenvalues,
    "map": lambda model: diagnostics.input_sensitivity(model, X[:2]),
    "jacobian": lambda model: diagnostics.jacobian_eigenvalues(model, X[:2]),
    "norms": lambda model: diagnostics.gradient_norms(model, X, Y),
}


def make():
    keras.utils.set_random_seed(0)
    rnn = ScoRNN(2, kernel_initializer="glorot_normal", dropout=0.2, name="sco")
    around = layers.BatchNormalization(), rnn, layers.Dropout(0.2), layers.Dense(1)
    model = keras.Sequential([keras.Input((4, 2)), *around])
    model.compile(keras.optimizers.Adam(0.05), "mse")
    return model


def fit(model, *callbacks, **kwargs):
    given = {"batch_size": 4, "epochs": 3, "verbose": 0, **kwargs}
    model.fit(X, Y, callbacks=list(callbacks), **given)


def table(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [{name: float(text) for name, text in row.items()} for row in rows]


@pytest.mark.slow
def test_training_stays_as_it_is(tmp_path):
    logs = [Log(tmp_path / "new" / n, measure) for n, measure in MEASURES.items()]
    fit(plain := make())
    fit(model := make(), *logs)  # Each from its seed: JAX's shuffling draws from it.
    # On PyTorch, Keras draws for all layers from one generator, which calls change.
    if keras.backend.backend() != "torch":
        both = ([*m.variables, *m.optimizer.variables] for m in (plain, model))
        for expected, value in zip(*both, strict=True):
            np.testing.assert_array_equal(np.asarray(value), np.asarray(expected))
    # The model was measured as it was at the time.
    norms = table(logs[-1].path)
    assert [row["epoch"] for row in norms] == [0, 1, 2, 3]
    assert len({row["4"] for row in norms}) == 4
    expected = list(MEASURES["norms"](model))
    assert [norms[-1][f"{t}"] for t in range(1, 5)] == pytest.approx(expected)


def test_columns(tmp_path):
    margin = diagnostics.SpectralMargin(0.5, 2.0, 1.0)
    nested = {"a": 1.5, "b": np.array([2, 4j]), "c": [[3]], "m": margin}
    expected = {"a": 1.5, "b/1/real": 2, "b/1/imag": 0, "b/2/real": 0, "b/2/imag": 4}
    expected |= {"c/1/1": 3, "m/smallest": 0.5, "m/largest": 2, "m/margin": 1}
    for value, columns in ((nested, expected), (3, {"value": 3})):
        log = Log(tmp_path / "log.csv", lambda model, value=value: value)
        fit(make(), log, epochs=1)
        assert table(log.path)[1] == {"epoch": 1, **columns}


def test_what_is_compiled_is_compiled_once():
    model = model_of(layers.SimpleRNN(2), layers.Dense(1))
    found = [
        diagnostics.gradient_norms(model, X, Y, units=units, loss=loss)
        for units in (slice(0, 1), None)
        for loss in ("mse", "mae")
    ]
    assert len({norms[-1] for norms in found}) == 4
    model.compile("sgd", "mae")
    np.testing.assert_array_equal(diagnostics.gradient_norms(model, X, Y), found[-1])
    assert len(vars(model)["_measurements"]) == 4


def test_a_run_that_goes_on(tmp_path):
    """It keeps the rows of the run before, up to where it starts."""
    path, model = tmp_path / "distance.csv", make()
    fit(model, Log(path, manifold_distances))
    before = table(path)
    again = Log(path, manifold_distances)
    fit(model, again, initial_epoch=2, epochs=4)
    rows = table(path)
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[:2] == before[:2]
    assert rows[2]["sco"] == before[3]["sco"]
    fit(model, again, epochs=1)
    assert [row["epoch"] for row in table(path)] == [0, 1]
    # It measures when an unbroken one does.
    log = Log(path, manifold_distances, every=2)
    fit(model, log, epochs=1)
    fit(model, log, initial_epoch=1, epochs=4)
    assert log.history["epoch"] == [0, 2, 4]


def test_what_cannot_be_logged(tmp_path):
    path = tmp_path / "distance.csv"
    path.write_text(table := "epoch,loss\n0,2\n1,3\n")
    with pytest.raises(ValueError, match="`path` must be a table.*Received: path="):
        fit(make(), Log(path, manifold_distances), initial_epoch=2, epochs=4)
    assert path.read_text() == table


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("kind", [layers.SimpleRNN, FullURNN])
def test_a_network_that_has_diverged_is_measured(kind):
    model = model_of(kind(2))
    model.set_weights([np.full(w.shape, np.nan) for w in model.get_weights()])
    for name in ("distance", "margin", "kernel", "map", "jacobian"):
        found = MEASURES[name](model)
        values = list(found.values()) if isinstance(found, dict) else found
        assert np.isnan(np.asarray(values)).any(), name
