"""The callback writes a table, and leaves the training as it is."""

import csv

import keras
import numpy as np
import pytest
from keras import layers

from keras_ortho import FullURNN, ScoRNN, diagnostics
from keras_ortho.diagnostics import Log, manifold_distances

pytestmark = pytest.mark.backends

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(8, 4, 2)).astype("float32")
Y = RANDOM.normal(size=(8, 1)).astype("float32")
STARTS = [[0.5, -0.25], [1.0, 2.0]]

MEASURES = {
    "distance": diagnostics.manifold_distances,
    "margin": diagnostics.spectral_margins,
    "kernel": diagnostics.kernel_eigenvalues,
    "norms": lambda model: diagnostics.gradient_norms(model, X, Y),
    "map": lambda model: diagnostics.input_sensitivity(model, X[:2]),
    "jacobian": lambda model: diagnostics.jacobian_eigenvalues(model, X[:2]),
    "plane": lambda model: diagnostics.trajectories(model, STARTS, 5),
}


def make():
    keras.utils.set_random_seed(0)
    rnn = ScoRNN(2, dropout=0.2, kernel_initializer="glorot_normal", name="sco")
    around = layers.BatchNormalization(), rnn, layers.Dropout(0.2), layers.Dense(1)
    model = keras.Sequential([keras.Input((4, 2)), *around])
    model.compile(keras.optimizers.Adam(0.05), "mse")
    return model


def make_small():
    model = keras.Sequential([keras.Input((4, 2)), layers.SimpleRNN(1, name="simple")])
    model.compile("sgd", "mse")
    return model


def fit(model, *callbacks, **kwargs):
    given = {"batch_size": 4, "epochs": 3, "verbose": 0, **kwargs}
    model.fit(X, Y, callbacks=list(callbacks), **given)


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def numbers(row):
    return [float(text) for name, text in row.items() if name != "epoch"]


@pytest.mark.slow
def test_what_the_functions_measure(tmp_path):
    plain = make()
    fit(plain)
    model = make()
    logs = {
        name: Log(tmp_path / "new" / f"{name}.csv", measure)
        for name, measure in MEASURES.items()
    }
    fit(model, *logs.values())
    variables = [*model.variables, *model.optimizer.variables]
    of_plain = [*plain.variables, *plain.optimizer.variables]
    # On PyTorch, Keras draws for all layers from one generator, which calls change.
    if keras.backend.backend() != "torch":
        for value, expected in zip(variables, of_plain, strict=True):
            np.testing.assert_array_equal(np.asarray(value), np.asarray(expected))
    assert not list(tmp_path.rglob("tmp-*"))
    start = make()
    for name, log in logs.items():
        rows = table(log.path)
        assert [row["epoch"] for row in rows] == ["0", "1", "2", "3"]
        assert {
            key: [float(row[key]) for row in rows] for key in rows[0]
        } == log.history
        # The model was measured as it was at the time.
        for row, measured in ((rows[0], start), (rows[-1], model)):
            expected = MEASURES[name](measured)
            if isinstance(expected, dict):
                expected = expected["sco"]
            wide = np.ravel(expected)
            if np.iscomplexobj(wide):
                wide = np.stack([wide.real, wide.imag], axis=-1).ravel()
            np.testing.assert_allclose(numbers(row), wide, rtol=1e-5, atol=1e-12)
    assert logs["norms"].history["4"][0] != logs["norms"].history["4"][-1]


def test_columns(tmp_path):
    margin = diagnostics.SpectralMargin(0.5, 2.0, 1.0)
    for value, columns in (
        (3, {"value": 3}),
        ({"a": 1.5, "b": np.array([2, 4j])}, {"a": 1.5, "b/1/real": 2, "b/1/imag": 0}),
        ([[1, 2], [3, 4]], {"1/1": 1, "1/2": 2, "2/1": 3, "2/2": 4}),
        ({"m": margin}, {"m/smallest": 0.5, "m/largest": 2, "m/margin": 1}),
    ):
        log = Log(tmp_path / "log.csv", lambda model, value=value: value)
        fit(make_small(), log, epochs=1)
        assert log.history["epoch"] == [0, 1]
        assert {name: log.history[name][1] for name in columns} == columns


def test_what_is_compiled_is_compiled_once(tmp_path, monkeypatch):
    made = []
    probe = diagnostics.gradient_norms.__globals__["Probe"]

    def count(*args):
        made.append(args)
        return probe(*args)

    monkeypatch.setitem(diagnostics.gradient_norms.__globals__, "Probe", count)

    def measure(model):
        return [
            diagnostics.gradient_norms(model, X, Y, units=units, loss=loss)
            for units in (None, slice(0, 1))
            for loss in ("mse", "mae")
        ]

    model = make_small()
    log = Log(tmp_path / "log.csv", measure)
    fit(model, log)
    assert len(made) == 4
    assert len({log.history[name][-1] for name in ("1/4", "2/4")}) == 2
    expected = np.ravel(measure(model))
    assert len(made) == 8
    np.testing.assert_allclose(numbers(table(log.path)[-1]), expected, rtol=1e-6)


def test_a_run_that_goes_on(tmp_path):
    """It keeps the rows of the run before, up to where it starts."""
    path, model = tmp_path / "distance.csv", make_small()
    fit(model, Log(path, manifold_distances))
    before = table(path)
    again = Log(path, manifold_distances)
    fit(model, again, initial_epoch=2, epochs=4)
    rows = table(path)
    assert [int(row["epoch"]) for row in rows] == [0, 1, 2, 3, 4]
    assert rows[:2] == before[:2]
    assert rows[2]["simple"] == before[3]["simple"]
    fit(model, again, epochs=1)
    assert [int(row["epoch"]) for row in table(path)] == [0, 1]
    # It measures when an unbroken one does.
    log = Log(path, manifold_distances, every=2)
    fit(model, log, epochs=1)
    fit(model, log, initial_epoch=1, epochs=4)
    assert log.history["epoch"] == [0, 2, 4]


@pytest.mark.parametrize(
    "text",
    ["a,b\n1,2\n", "epoch,simple\n1\n", "epoch\nx\n", "epoch,loss\n0,2\n1,3\n"],
)
def test_a_table_of_another_kind(text, tmp_path):
    path = tmp_path / "distance.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="`path` must be a table.*Received: path="):
        fit(make_small(), Log(path, manifold_distances), initial_epoch=2, epochs=4)
    assert path.read_text() == text


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("make", [layers.SimpleRNN, FullURNN])
def test_a_network_that_has_diverged_is_measured(make):
    model = keras.Sequential([keras.Input((4, 2)), make(2)])
    model.set_weights([np.full(w.shape, np.nan) for w in model.get_weights()])
    for name in ("distance", "margin", "kernel", "map", "jacobian"):
        found = MEASURES[name](model)
        values = list(found.values()) if isinstance(found, dict) else found
        assert np.isnan(np.asarray(values)).any(), name
