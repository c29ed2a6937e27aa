"""Each benchmark runs, in its shortest form, and the check for a GPU finds faults."""

import csv
import dataclasses
import importlib
import importlib.util
import os
import re

import keras
import numpy as np
import pytest
from scipy.special import expit

from experiments import smoke
from keras_ortho.architectures import ARCHITECTURES
from keras_ortho.audio import write_wav
from keras_ortho.recurrence.sequence import Segment
from tests.modules import ROOT, load_file, run_python

BENCHMARKS = ROOT / "benchmarks"
ON_TENSORFLOW = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="exports, float64"
)
ON_JAX = pytest.mark.skipif(keras.backend.backend() != "jax", reason="runs on JAX")
UNITS = 16


@pytest.fixture
def load(monkeypatch):
    """Loads a benchmark; one that runs in this process instead of in others."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    measuring = importlib.import_module("measuring")
    apart = lambda function, *tasks: [function(*task) for task in tasks]  # noqa: E731
    monkeypatch.setattr(measuring, "apart", apart)
    return lambda name: load_file(f"benchmarks/{name}.py")


@pytest.fixture
def gpu(load):
    """The benchmark for a GPU; what it sets stays with it."""
    import jax

    policy = keras.config.dtype_policy()
    precision = jax.config.jax_default_matmul_precision
    yield load("gpu")
    keras.config.set_dtype_policy(policy)
    jax.config.update("jax_default_matmul_precision", precision)


def run(module, monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", [module.__name__, *map(str, arguments)])
    module.main()


def rows(path):
    """The cells of a table below its titles."""
    lines = path.read_text().splitlines()[2:]
    return [line[2:-2].split(" | ") for line in lines if line.startswith("|")]


@pytest.mark.backends
def test_layers(load, monkeypatch, tmp_path):
    out = tmp_path / "layers.md"
    sizes = ["--state", 8, "--steps", 3, "--batch", 2, "--repeats", 1]
    options = ["--only", "ScoRNN", *sizes, "--out", out]
    run(load("layers"), monkeypatch, *options)
    ((name, *numbers),) = rows(out)
    assert name == "`ScoRNN(n)`"
    assert min(map(float, numbers)) > 0


@pytest.mark.backends
def test_recurrence(load, monkeypatch, tmp_path):
    out = tmp_path / "recurrence.md"
    names = ["SimpleRNN", "ScoRNN", "LSTM, as many parameters"]
    names += ["torch RNN, orthogonal"] if importlib.util.find_spec("torch") else []
    sizes = ["--units", 5, "--steps", 7, "--batch", 3, "--repeats", 1]
    options = [*sizes, "--only", *names, "--out", out]
    run(load("recurrence"), monkeypatch, *options)
    found = rows(out)
    assert [row[0] for row in found] == names
    assert found[0][5] == found[0][7] == "1.00"
    assert float(found[1][-1]) >= 0


@ON_JAX
@pytest.mark.backends
def test_learning_trains_each_seed_as_keras_does(load, monkeypatch, tmp_path):
    learning, table = load("learning"), tmp_path / "learning.csv"
    with pytest.raises(ValueError, match="copying-T.* Received: 'sorting-5'"):
        learning.task_of("sorting-5")
    task = dataclasses.replace(learning.task_of("adding-5"), updates=25, each=25)
    monkeypatch.setattr(learning, "task_of", lambda name: task)
    options = ["adding-5", "--layers", "ScoRNN(4)", "--rates", "adam", "--table", table]
    run(learning, monkeypatch, *options, "--seeds", 0, 1)
    text = table.read_text()
    run(learning, monkeypatch, *options, "--seeds", 1, 0)  # It has these rows.
    assert table.read_text() == text
    stream = learning.draws(task, 1)
    valid, train = next(stream), next(stream)
    keras.utils.set_random_seed(1)
    model = learning.network(task, "ScoRNN(4)", valid)
    model.compile("adam", "mse")
    model.fit(*train, batch_size=50, shuffle=False, verbose=0)
    # Roundings of float32 in 25 updates, far below the change of a wrong batch.
    expected = model.evaluate(*valid, verbose=0)
    assert float(text.split("\n")[2].split(",")[6]) == pytest.approx(expected, rel=1e-3)


# `make test` runs the last one.
@ON_JAX
@pytest.mark.backends
@pytest.mark.parametrize("name", [*ARCHITECTURES][::-1])
def test_layers_are_right(gpu, name):
    for precision in ("float32", "bfloat16"):
        found = gpu.check(name, precision, UNITS)
        assert {"outputs", "inference", "inputs", "kernel"} < set(found)
        assert [(q, *e) for q, e in found.items() if not e[0] <= e[1]] == []
        assert precision == "bfloat16" or max(e[1] for e in found.values()) < 1e-3


@ON_JAX
@pytest.mark.backends
@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_wrong_layers_are_found(gpu, monkeypatch, precision):
    after, gradients = Segment.after, Segment.gradients
    off = {"float32": 1.001, "bfloat16": 1.5}[precision]

    def states(own, state, *given):
        return after(own, off * state, *given)

    def negative(*given):
        to_state, to_inputs, (to_kernel, to_recurrent, to_bias) = gradients(*given)
        return to_state, to_inputs, (to_kernel, -to_recurrent, to_bias)

    def wrong():
        found = gpu.check("ScoRNN", precision, UNITS).items()
        return {quantity for quantity, (error, allowed) in found if error > allowed}

    with monkeypatch.context() as planted:
        planted.setattr(Segment, "after", states)
        assert {"outputs", "inference"} < wrong()
    monkeypatch.setattr(Segment, "gradients", negative)
    assert wrong() == {"recurrent_skew"}


@ON_JAX
@pytest.mark.backends
def test_gpu(gpu, monkeypatch, tmp_path):
    names = ["ScoRNN", "LSTM, loop", "LSTM, cuDNN"]
    options = ["--units", 16, "--steps", 5, "--batch", 2, "--repeats", 1]
    options += ["--precision", "float32", "--out", tmp_path, "--only", *names]
    run(gpu, monkeypatch, *options)
    first, second, cudnn = rows(tmp_path / "gpu-speed.md")
    assert min(float(number) for number in (*first[-3:-1], *second[-3:-1])) > 0
    assert "use_cudnn=True" in cudnn[-3]  # On a CPU.
    monkeypatch.setattr(gpu, "check", lambda *_: {"outputs": (1.0, 0.5)})
    with pytest.raises(SystemExit, match="ScoRNN float32 outputs 1.0e\\+00 5.0e-01"):
        run(gpu, monkeypatch, *options)


@ON_JAX
@pytest.mark.slow
def test_gpu_runs_without_tensorflow(tmp_path):
    missing = tmp_path / "missing" / "tensorflow"
    missing.mkdir(parents=True)
    (missing / "__init__.py").write_text("raise ModuleNotFoundError('tensorflow')")
    paths = [str(missing.parent), os.environ.get("PYTHONPATH", "")]
    options = ["--units", 16, "--steps", 5, "--batch", 2, "--repeats", 1]
    options += ["--precision", "float32", "--only", "ScoRNN", "--out", tmp_path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    printed = run_python(BENCHMARKS / "gpu.py", *options, env=environment)
    assert "| ScoRNN | float32 | 16 | 5 | 2 |" in printed


@ON_TENSORFLOW
@pytest.mark.slow
def test_deployment(tmp_path):
    pytest.importorskip("tf2onnx")
    names = ["ScoRNN", "GORU", "ENRNN"]
    options = ["--out", tmp_path, "--only", *names]
    run_python(BENCHMARKS / "deployment.py", *options, cwd=ROOT)
    found = [row[1:] for row in rows(tmp_path / "export.md")]
    assert max(float(error) for row in found for error in row) <= 1e-5
    assert [len(row) for row in found] == [6] * len(names)


@ON_JAX
@pytest.mark.backends
def test_the_best_rate_of_the_trials_is_reported(load, monkeypatch, tmp_path):
    comparison, table = load("comparison"), tmp_path / "comparison.csv"
    monkeypatch.setattr(comparison, "TASKS", {"adding-5": (50, 1)})
    monkeypatch.setattr(comparison, "OUT", tmp_path)
    given = ["--layers", "SimpleRNN", "--table", table]
    run(comparison, monkeypatch, *given)
    text = table.read_text()
    run(comparison, monkeypatch, *given)  # It has these rows.
    assert table.read_text() == text
    made = list(csv.DictReader(text.splitlines()))
    trials, rest, alone = made[:3], made[3:-1], made[-1]
    assert [row["rate"] for row in trials] == comparison.RATES
    best = min(trials, key=lambda row: float(row["last"]))["rate"]
    runs = [(row["rate"], int(row["seed"])) for row in rest]
    assert runs == [(best, seed) for seed in comparison.SEEDS]
    assert (alone["task"], alone["rate"]) == ("adding-5, alone", best)
    text = (tmp_path / "adding-5.md").read_text()
    shown = re.search(r"\| SimpleRNN \| (\S+) \((\S+) to (\S+)\) \|", text).groups()
    errors = [float(row["last"]) for row in rest]
    wanted = [np.median(errors), min(errors), max(errors)]
    # Two digits, and five places in the table.
    np.testing.assert_allclose([*map(float, shown)], wanted, rtol=0.05, atol=1e-5)


@ON_TENSORFLOW  # JAX has no float64 unless it is asked for it at first.
@pytest.mark.usefixtures("double")
def test_lem_is_the_paper_s_equation_3(load):
    layer = keras.layers.RNN(load("peers").LEMCell(3), return_sequences=True)
    x = np.random.default_rng(0).normal(size=(2, 5, 4))
    found = np.asarray(layer(x))
    kernel, recurrent, slow, bias = layer.get_weights()
    v, b = np.split(kernel, 4, axis=1), np.split(bias, 4)
    w = [*np.split(recurrent, 3, axis=1), slow]
    y, z = np.zeros((2, 2, 3))
    for step in range(5):
        at = lambda i, h, step=step: h @ w[i] + x[:, step] @ v[i] + b[i]  # noqa: E731
        dt, dt_bar = expit(at(0, y)), expit(at(1, y))
        z = (1 - dt) * z + dt * np.tanh(at(2, y))
        y = (1 - dt_bar) * y + dt_bar * np.tanh(at(3, z))
        # Some twenty roundings of numbers below 10 in each step.
        np.testing.assert_allclose(found[:, step], y, atol=1e-13)


@ON_TENSORFLOW  # JAX has no float64 unless it is asked for it at first.
@pytest.mark.usefixtures("double")
def test_the_recurrence_of_lru_is_its_loop(load):
    block = load("peers").LRUBlock()
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
        expected = x[:, step] + y[:, :4] * expit(y[:, 4:])
        np.testing.assert_allclose(found[:, step], expected, atol=1e-12)


@ON_JAX
@pytest.mark.backends
@pytest.mark.parametrize("name", ["ucr-Sines", "pixels-60", "speech-10"])
def test_no_recorded_sequence_is_in_both_parts(load, monkeypatch, tmp_path, name):
    smoke.ucr(tmp_path / "ucr")
    random = np.random.default_rng(0)
    (tmp_path / "mnist").mkdir()
    x, y = random.integers(256, size=(60, 28, 28)).astype("uint8"), np.arange(60) % 10
    arrays = {"x_train": x, "y_train": y, "x_test": x, "y_test": y}
    np.savez(tmp_path / "mnist" / "mnist.npz", **arrays)
    for speaker in "abcde":
        folder = tmp_path / "timit_nltk_sample" / f"dr1-{speaker}"
        folder.mkdir(parents=True)
        wave = 0.1 * random.normal(size=40_000)
        wave *= np.repeat(random.uniform(size=40), 1000)  # No two excerpts are alike.
        write_wav(folder / "sa1.wav", wave, 16_000)
    monkeypatch.setenv("KERAS_ORTHO_DATA", str(tmp_path))
    learning = load("learning")
    with pytest.raises(ValueError, match="15 excerpts of 400 .*Received: "):
        learning.task_of("speech-400")
    task = learning.task_of(name)
    stream = learning.draws(task, 3)
    valid, train = next(stream)[0], next(stream)[0]
    whole = task.generate.args[0](task.size)[0]
    assert len(valid) + task.fixed == len(whole)
    parts = [{bytes(x) for x in part} for part in (valid, train, whole)]
    assert parts[0] | parts[1] == parts[2]
    assert not parts[0] & parts[1]
    # Of speech, a speaker is heard in one of the parts only.
    speakers = whole.reshape(-1, 15 if name == "speech-10" else 1, *whole.shape[1:])
    for one in speakers:
        assert len({bytes(x) in parts[0] for x in one}) == 1
