"""Two replicas train as one device with the same batches."""

import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_ortho.architectures import ARCHITECTURES

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(FOLDER))
try:
    from distribution import NETWORKS, WAYS, describe, differences, trained
    from ten_updates import BATCH, STATE, STEPS, UPDATES
finally:
    sys.path.remove(str(FOLDER))

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="runs both in other processes"
)

# A gradient is a sum over the entries of all states at most, of terms of order one, in
# another order. Adam divides it by its own size, by 1e-7 at least, its epsilon, for a
# step of 1e-3 an update. A gradient that is twice as large, or has the mean or variance
# of half a batch, changes a weight by 1e-5 or more.
GRADIENT = BATCH * STEPS * STATE * np.finfo("float64").eps
WEIGHTS = UPDATES * 1e-3 * GRADIENT / 1e-7
# A loss follows its weights, some hundred whose gradients add up to a few.
LOSS = 10 * WEIGHTS
# Of dropout each replica has masks of its own.
EQUAL = [name for name in NETWORKS if name != "ScoRNN, dropout"]
# Real and complex states, and all variables that no optimizer trains.
VARIED = ["ScoRNN", "ScuRNN", "ENRNN, its flag", "ScoRNN, rebased", "BNPDense"]
ALIKE = [name for name in EQUAL if name not in VARIED]


@pytest.mark.slow
@pytest.mark.parametrize(
    "way",
    [
        pytest.param(
            way,
            id=way.name,
            marks=() if way.name == "mirrored" else pytest.mark.slowest,
        )
        for way in WAYS
    ],
)
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(VARIED, id="varied"),
        pytest.param(ALIKE, id="alike", marks=pytest.mark.slowest),
    ],
)
def test_replicas_train_as_one_device(names, way):
    networks = {name: NETWORKS[name] for name in names}
    one = trained("one", way.backend, networks, "float64")
    other = trained(way.name, way.backend, networks, "float64")
    for name in networks:
        found = differences(name, one, other)
        assert found["before"] == 0, name
        assert found["step"] > 1e-3, name  # There is something to compare.
        assert found["loss"] < LOSS, name
        assert found["after"] < WEIGHTS, name
    flags = [False, True] if "ENRNN, its flag" in names else []  # Before and after.
    for results in (one, other):
        found = [v for key, v in results.items() if v.dtype == bool and "flag" in key]
        assert sorted(found) == flags


def test_every_layer_is_among_the_networks():
    assert set(ARCHITECTURES) <= set(EQUAL)


def test_the_table():
    networks = {"ScoRNN": NETWORKS["ScoRNN"], "BNPDense": NETWORKS["BNPDense"]}
    row = {"loss": 1e-15, "before": 0.0, "after": 2e-16, "step": 0.01}
    found = {way.title: dict.fromkeys(networks, row) for way in WAYS}
    lines = describe(networks, found, "float64").splitlines()
    assert lines[0].split(" | ")[1:-1] == [way.title for way in WAYS]
    cells = " | ".join(["1e-15, 2e-16"] * 3)
    assert lines[2] == f"| `ScoRNN(n)` | {cells} | 1e-02 |"
    assert lines[3] == f"| BNPDense | {cells} | 1e-02 |"
    assert "float64, seed 0" in lines[-1]


def test_differences_are_those_of_the_network():
    one = {
        "ScoRNN/loss": np.array([1.0, 2.0]),
        "ScoRNN/before/0": np.zeros(2),
        "ScoRNN/before/1": np.array(False),
        "ScoRNN/after/0": np.array([0.5, 0.25]),
        "ScoRNN/after/1": np.array(True),
        "ScoRNN, rebased/loss": np.array([5.0]),
    }
    other = one | {
        "ScoRNN/loss": np.array([1.0, 2.5]),
        "ScoRNN/after/1": np.array(False),
        "ScoRNN, rebased/loss": np.array([9.0]),
    }
    found = differences("ScoRNN", one, other)
    assert found == {"loss": 0.5, "before": 0.0, "after": 1.0, "step": 1.0}


@pytest.mark.slow
def test_a_process_that_fails_is_reported():
    with pytest.raises(RuntimeError, match="(?s)Received: .*NoSuchLayer"):
        trained("one", "jax", {"wrong": "NoSuchLayer(n)"}, "float64")
