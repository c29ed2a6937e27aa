"""The comparison of all layers: what it chooses, and its peers."""

import csv
import importlib

import keras
import numpy as np
import pytest

from tests.benchmarks.test_benchmarks import BENCHMARKS, ON_JAX, ON_TENSORFLOW, run


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("peers")


@ON_JAX
@pytest.mark.backends
def test_the_best_rate_of_the_trials_is_reported(peers, monkeypatch, tmp_path):
    comparison = importlib.import_module("comparison")
    table = tmp_path / "comparison.csv"
    monkeypatch.setattr(comparison, "TASKS", {"adding-5": 50})
    monkeypatch.setattr(comparison, "OUT", tmp_path)
    given = ["--layers", "SimpleRNN", "--table", table]
    run(comparison, monkeypatch, *given)
    text = table.read_text()
    run(comparison, monkeypatch, *given)  # It has these rows.
    assert table.read_text() == text
    rows = list(csv.DictReader(text.splitlines()))
    trials, rest = rows[:3], rows[3:]
    assert [row["rate"] for row in trials] == comparison.RATES
    best = min(trials, key=lambda row: float(row["last"]))["rate"]
    runs = [(row["rate"], int(row["seed"])) for row in rest]
    assert runs == [(best, seed) for seed in comparison.SEEDS]
    errors = [float(row["last"]) for row in rest]
    shown = f"| SimpleRNN | {np.median(errors):.3g} ({min(errors):.3g} to"
    assert shown in (tmp_path / "adding-5.md").read_text()


@ON_TENSORFLOW  # JAX has no float64 unless it is asked for it at first.
@pytest.mark.usefixtures("double")
def test_lem_is_the_paper_s_equation_3(peers):
    layer = keras.layers.RNN(peers.LEMCell(3), return_sequences=True)
    x = np.random.default_rng(0).normal(size=(2, 5, 4))
    found = np.asarray(layer(x))
    kernel, recurrent, slow, bias = layer.get_weights()
    v, b = np.split(kernel, 4, axis=1), np.split(bias, 4)
    w = [*np.split(recurrent, 3, axis=1), slow]
    y, z = np.zeros((2, 2, 3))
    for step in range(5):
        at = lambda i, h, step=step: h @ w[i] + x[:, step] @ v[i] + b[i]  # noqa: E731
        dt, dt_bar = sigmoid(at(0, y)), sigmoid(at(1, y))
        z = (1 - dt) * z + dt * np.tanh(at(2, y))
        y = (1 - dt_bar) * y + dt_bar * np.tanh(at(3, z))
        # Some twenty roundings of numbers below 10 in each step.
        np.testing.assert_allclose(found[:, step], y, atol=1e-13)


@ON_TENSORFLOW  # JAX has no float64 unless it is asked for it at first.
@pytest.mark.usefixtures("double")
def test_the_recurrence_of_lru_is_its_loop(peers):
    block = peers.LRUBlock()
    x = np.random.default_rng(0).normal(size=(2, 5, 4))
    found = np.asarray(block(x))
    decay, phase, gain, into, out, direct, *_, gate, bias = block.get_weights()
    values = np.exp(-np.exp(decay) + 1j * np.exp(phase))
    # Equation 7: with this factor white noise gives states of the same variance.
    np.testing.assert_allclose(np.exp(gain) ** 2 + np.abs(values) ** 2, 1, atol=1e-14)
    seen = x - x.mean(axis=-1, keepdims=True)
    seen /= np.sqrt(seen.var(axis=-1, keepdims=True) + 1e-3)
    h = np.zeros((2, 4), complex)
    for step in range(5):
        u = seen[:, step]
        h = values * h + np.exp(gain) * (u @ (into[:, :4] + 1j * into[:, 4:]))
        y = np.concatenate([h.real, h.imag], axis=-1) @ out + u * direct
        y = np.asarray(keras.activations.gelu(y)) @ gate + bias
        expected = x[:, step] + y[:, :4] * sigmoid(y[:, 4:])
        np.testing.assert_allclose(found[:, step], expected, atol=1e-12)
