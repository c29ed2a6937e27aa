"""The callbacks write a table and a figure, and leave the training as it is."""

import csv

import keras
import numpy as np
import pytest
from keras import layers

from keras_ortho import FullURNN, ScoRNN, diagnostics
from keras_ortho.diagnostics.log import DiagnosticLog

pytestmark = pytest.mark.backends

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(8, 4, 2)).astype("float32")
Y = RANDOM.normal(size=(8, 1)).astype("float32")
EPOCHS = 3


def make():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((4, 2)),
            layers.BatchNormalization(),
            ScoRNN(2, dropout=0.2, kernel_initializer="glorot_normal", name="sco"),
            layers.Dropout(0.2),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(0.05), "mse")
    return model


def make_small():
    model = keras.Sequential([keras.Input((4, 2)), layers.SimpleRNN(1, name="simple")])
    model.compile("sgd", "mse")
    return model


def fit(model, callbacks=(), **kwargs):
    model.fit(
        X,
        Y,
        batch_size=4,
        callbacks=list(callbacks),
        verbose=0,
        **{"epochs": EPOCHS, **kwargs},
    )


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def all_logs(folder):
    return {
        "distance": diagnostics.ManifoldDistanceLog(folder / "distance.csv"),
        "margin": diagnostics.SpectralMarginLog(folder / "margin.csv"),
        "kernel": diagnostics.KernelEigenvaluesLog(folder / "kernel.csv", every=2),
        "norms": diagnostics.GradientNormsLog(folder / "norms.csv", X, Y),
        "map": diagnostics.InputSensitivityLog(folder / "deep" / "map.csv", X[:2]),
        "jacobian": diagnostics.JacobianEigenvaluesLog(folder / "jacobian.csv", X[:2]),
        "plane": diagnostics.TrajectoriesLog(folder / "plane.csv", num_steps=5),
    }


def column(rows, name):
    return np.array([float(row[name]) for row in rows])


def complex_column(rows):
    return column(rows, "real") + 1j * column(rows, "imaginary")


@pytest.mark.slow
def test_all_of_them(tmp_path):
    plain = make()
    fit(plain)
    model = make()
    logs = all_logs(tmp_path)
    fit(model, logs.values())
    variables = [*model.variables, *model.optimizer.variables]
    of_plain = [*plain.variables, *plain.optimizer.variables]
    # On PyTorch, Keras draws for all layers from one generator, which calls change.
    if keras.backend.backend() != "torch":
        for value, expected in zip(variables, of_plain, strict=True):
            np.testing.assert_array_equal(np.asarray(value), np.asarray(expected))

    last = {}
    for name, log in logs.items():
        rows = table(log.path)
        epochs = [0, 2] if name == "kernel" else [0, 1, 2, 3]
        assert sorted({int(row["epoch"]) for row in rows}) == epochs
        last[name] = [row for row in rows if int(row["epoch"]) == epochs[-1]]
        picture = log.path.with_suffix(".png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 5000
    assert not list(tmp_path.rglob("tmp-*"))

    # What they say of the last epoch is what the functions say now.
    (name,) = diagnostics.manifold_distances(model)
    assert last["distance"][0]["matrix"] == name == "sco"
    expected = diagnostics.manifold_distances(model)[name]
    assert float(last["distance"][0]["distance"]) == expected
    margins = [last["margin"][0][k] for k in ("smallest", "largest", "margin")]
    assert tuple(map(float, margins)) == diagnostics.spectral_margins(model)[name]
    np.testing.assert_allclose(
        column(last["norms"], "norm"),
        diagnostics.gradient_norms(model, X, Y),
        rtol=1e-6,
    )
    assert column(last["norms"], "t").tolist() == [1, 2, 3, 4]
    found = diagnostics.input_sensitivity(model, X[:2])
    np.testing.assert_allclose(
        column(last["map"], "norm"), found[np.tril_indices(4)], rtol=1e-6
    )
    np.testing.assert_allclose(
        complex_column(last["jacobian"]),
        diagnostics.jacobian_eigenvalues(model, X[:2]).ravel(),
        rtol=1e-5,
    )
    paths = diagnostics.trajectories(model, logs["plane"].starts, 5)
    np.testing.assert_allclose(column(last["plane"], "second"), paths[..., 1].ravel())
    # They have changed: the model was measured as it was at the time.
    first = [row for row in table(tmp_path / "norms.csv") if row["epoch"] == "0"]
    start = make()
    np.testing.assert_allclose(
        column(first, "norm"), diagnostics.gradient_norms(start, X, Y), rtol=1e-6
    )
    kernel = [row for row in table(tmp_path / "kernel.csv") if row["epoch"] == "0"]
    np.testing.assert_allclose(
        complex_column(kernel), diagnostics.kernel_eigenvalues(start)[name], rtol=1e-12
    )
    assert not np.allclose(column(first, "norm"), column(last["norms"], "norm"))


@pytest.mark.slow
def test_a_run_that_goes_on(tmp_path):
    """It keeps the rows of the run before, up to where it starts."""
    log, model = (
        diagnostics.ManifoldDistanceLog(tmp_path / "distance.csv"),
        make_small(),
    )
    fit(model, [log])
    before = table(log.path)
    again = diagnostics.ManifoldDistanceLog(tmp_path / "distance.csv")
    fit(model, [again], initial_epoch=2, epochs=4)
    rows = table(again.path)
    assert [int(row["epoch"]) for row in rows] == [0, 1, 2, 3, 4]
    assert rows[:2] == before[:2]
    assert rows[2]["distance"] == before[3]["distance"]
    fit(model, [again], epochs=1)
    assert [int(row["epoch"]) for row in table(again.path)] == [0, 1]


def test_nothing_to_measure(tmp_path):
    class Nothing(DiagnosticLog):
        def measure(self):
            return []

    with pytest.raises(ValueError, match="that `Nothing` measures. Received: "):
        fit(make_small(), [Nothing(tmp_path / "nothing.csv")])


@pytest.mark.parametrize(
    "text",
    ["a,b\n1,2\n", "epoch,distance\n1\n", "epoch\nx\n", "epoch,loss\n0,2\n1,3\n"],
)
def test_a_table_of_another_kind(text, tmp_path):
    path = tmp_path / "distance.csv"
    path.write_text(text)
    log = diagnostics.ManifoldDistanceLog(path)
    with pytest.raises(ValueError, match="`path` must be a table.*Received: path="):
        fit(make_small(), [log], initial_epoch=2, epochs=4)
    assert path.read_text() == text


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="suffix .csv. Received: path=.*distance"):
        diagnostics.ManifoldDistanceLog(tmp_path / "distance")
    with pytest.raises(ValueError, match="`every` must .* Received: every=0"):
        diagnostics.ManifoldDistanceLog(tmp_path / "distance.csv", every=0)
    with pytest.raises(ValueError, match="`center` must .* Received: center='x'"):
        diagnostics.SpectralMarginLog(tmp_path / "margin.csv", center="x")
    with pytest.raises(ValueError, match="`extent` must .* Received: extent=0"):
        diagnostics.TrajectoriesLog(tmp_path / "plane.csv", extent=0)
    log = diagnostics.GradientNormsLog(tmp_path / "norms.csv", X, Y, layer="other")
    with pytest.raises(ValueError, match="Received: layer='other'"):
        fit(make_small(), [log])
    assert not list(tmp_path.iterdir())


def test_a_log_that_cannot_be_written_leaves_the_one_before(tmp_path, monkeypatch):
    callback, model = (
        diagnostics.ManifoldDistanceLog(tmp_path / "distance.csv"),
        make_small(),
    )
    fit(model, [callback], epochs=1)
    before = callback.path.read_text()

    def fail(*_):
        raise OSError("full")

    monkeypatch.setattr(csv.DictWriter, "writerows", fail)
    with pytest.raises(OSError, match="full"):
        fit(model, [callback], epochs=1)
    assert callback.path.read_text() == before


def test_a_run_that_goes_on_measures_when_an_unbroken_one_does(tmp_path):
    log = diagnostics.ManifoldDistanceLog(tmp_path / "distance.csv", every=2)
    fit(make_small(), [log], epochs=1)
    fit(make_small(), [log], initial_epoch=1, epochs=4)
    assert [int(row["epoch"]) for row in table(log.path)] == [0, 2, 4]


@pytest.mark.slow_on_jax
def test_a_run_that_diverges_is_logged(tmp_path):
    model = make_small()
    model.set_weights([np.full(w.shape, np.nan) for w in model.get_weights()])
    logs = [
        diagnostics.ManifoldDistanceLog(tmp_path / "distance.csv"),
        diagnostics.SpectralMarginLog(tmp_path / "margin.csv"),
        diagnostics.KernelEigenvaluesLog(tmp_path / "kernel.csv"),
        diagnostics.JacobianEigenvaluesLog(tmp_path / "jacobian.csv", X[:2]),
    ]
    fit(model, logs)
    for log, name in zip(logs, ("distance", "margin", "real", "real"), strict=True):
        assert np.isnan(column(table(log.path), name)).all()
        assert log.path.with_suffix(".png").stat().st_size > 1000


def test_a_complex_network_that_has_diverged_is_measured():
    model = keras.Sequential([keras.Input((4, 2)), FullURNN(3)])
    model.set_weights([np.full(w.shape, np.nan) for w in model.get_weights()])
    (distance,) = diagnostics.manifold_distances(model).values()
    assert np.isnan(distance)
    assert np.isnan(diagnostics.input_sensitivity(model, X[:2])).all()
