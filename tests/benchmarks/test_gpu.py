"""The benchmark for a GPU, on whatever JAX has: its check, its rows, its tables."""

import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

from keras_ortho.architectures import ARCHITECTURES

if keras.backend.backend() != "jax":
    pytest.skip("runs on JAX", allow_module_level=True)

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(FOLDER))
try:
    import gpu
    import gpu_check
    import gpu_names
    import gpu_profile
    import gpu_report
    import gpu_rows
    import gpu_worker
finally:
    sys.path.remove(str(FOLDER))

pytestmark = pytest.mark.backends

# Even a power of two, for GORU, and not below the number of reflections.
SHAPE = (16, 8, 16)


@pytest.fixture(autouse=True)
def _settings():
    """What the check sets stays with it."""
    import jax

    policy = keras.config.dtype_policy()
    precision = jax.config.jax_default_matmul_precision
    yield
    keras.config.set_dtype_policy(policy)
    jax.config.update("jax_default_matmul_precision", precision)


# `make test` runs the last one on JAX.
@pytest.mark.parametrize("name", [*ARCHITECTURES][::-1])
def test_layers_are_right(name):
    # On a CPU TensorFloat-32 is float32.
    results = gpu_check.check(name, dict.fromkeys(("float32", "bfloat16"), SHAPE))
    assert set(results) == {"float32", "bfloat16"}
    for quantities in results.values():
        assert {"outputs", "outputs, inference", "inputs", "kernel"} < set(quantities)
        assert gpu_rows.failures(quantities) == []
    for _, allowed in results["float32"].values():
        assert allowed < 1e-4


@pytest.mark.parametrize("precision", ["bfloat16", "tf32", "float32"])
def test_wrong_states_are_found(precision, monkeypatch):
    from keras_ortho.recurrence.sequence import Segment

    after = Segment.after
    off = {"float32": 1.001, "tf32": 1.1, "bfloat16": 1.5}[precision]
    monkeypatch.setattr(
        Segment, "after", lambda own, state, *given: after(own, off * state, *given)
    )
    quantities = gpu_check.check("ScoRNN", {precision: SHAPE})[precision]
    found = gpu_rows.failures(quantities)
    assert any(line.startswith("outputs: off by ") for line in found)
    assert any(line.startswith("outputs, inference: off by ") for line in found)


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_a_wrong_gradient_is_found(precision, monkeypatch):
    from keras_ortho.recurrence.sequence import Segment

    gradients = Segment.gradients

    def planted(*given):
        to_state, to_inputs, (to_kernel, to_recurrent, to_bias) = gradients(*given)
        return to_state, to_inputs, (to_kernel, -to_recurrent, to_bias)

    monkeypatch.setattr(Segment, "gradients", planted)
    quantities = gpu_check.check("ScoRNN", {precision: SHAPE})[precision]
    (line,) = gpu_rows.failures(quantities)
    assert line.startswith("recurrent_skew: off by 2")


def test_the_reference_needs_float64(monkeypatch):
    import jax

    monkeypatch.setattr(jax.config, "read", lambda name: False)
    with pytest.raises(RuntimeError, match="set JAX_ENABLE_X64=1$"):
        gpu_check.check("ScoRNN", {"float32": SHAPE})


class Worker:
    """Stands in for the processes: measures what was planned, and counts."""

    def __init__(self, failing=(), wrong=()):
        self.tasks, self.failing, self.wrong = [], failing, wrong

    def __call__(self, script, task, environment, limit=None):
        assert script == "gpu_worker.py"
        assert environment["KERAS_BACKEND"] == "jax"
        if task["kind"] == "about":
            return {"platform": "gpu", "device": "Some GPU 9", "versions": {}}
        self.tasks.append(task)
        if task["kind"] == "check":
            assert environment["JAX_ENABLE_X64"] == "1"
            (name,) = task["names"]
            error = 1.0 if name in self.wrong else 0.1
            return {name: {p: {"outputs": [error, 0.5]} for p in task["shapes"]}}
        if set(task["names"]) & set(self.failing):
            raise RuntimeError("A measurement has failed.\nXlaRuntimeError: gone")
        return {name: self.result(name, task) for name in task["names"]}

    def result(self, name, task):
        if "cuDNN" in name:
            return {"skipped": "needs a GPU"}
        if task["kind"] == "memory":
            return {"memory_mib": 7.0}
        if name == "GRU":
            return {"failed": "out of memory"}
        seconds = {"ScoRNN": 0.003, "SimpleRNN": 0.002}.get(name, 0.001)
        seconds /= 4 if task["kind"] == "kernel" else 1
        return {"train": seconds, "infer": seconds / 2, "trace": 0.1, "compile": 2.0}


NAMES = ("ScoRNN", "SimpleRNN", "GRU", "LSTM, cuDNN", "torch LSTM")


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Runs the program with a stand-in for its processes; gives it and the rows."""

    def run(*arguments, names=NAMES, **given):
        worker = Worker(**given)
        monkeypatch.setattr(gpu, "run", worker)
        options = ["--form", "tiny", "--no-profile", "--precision", "float32"]
        options += ["--out", str(tmp_path), "--only", *names, *arguments]
        monkeypatch.setattr(sys, "argv", ["gpu.py", *options])
        gpu.main()
        stored = json.loads((tmp_path / "gpu-some-gpu-9.json").read_text())
        rows = {(row["kind"], row["name"]): row for row in stored["rows"]}
        assert len(rows) == len(stored["rows"])
        return worker, rows

    return run


def test_what_is_done_is_skipped(program):
    worker, rows = program("--no-memory")
    # JAX's candidates, the one that memory was too small for by itself, and PyTorch's.
    kinds = [task["kind"] for task in worker.tasks]
    assert kinds == ["check", "time", "time", "time", "kernel"]
    assert ("time", "ScoRNN") in rows
    again, same = program("--no-memory")
    assert again.tasks == []
    assert same == rows
    more, rows = program("--no-memory", names=(*NAMES, "LSTM"))
    assert [task["names"] for task in more.tasks] == [["LSTM"]]
    assert rows["time", "LSTM"]["train"] == 0.001


def test_a_file_of_another_device_is_refused(program, monkeypatch):
    program("--no-memory", names=["ScoRNN"])
    machine = gpu.machine()
    monkeypatch.setattr(gpu, "machine", lambda: {**machine, "processor": "another"})
    with pytest.raises(ValueError, match="`--out` must not hold .* Received: "):
        program("--no-memory", names=["ScoRNN"])


def test_a_check_holds_for_its_commit(program, monkeypatch):
    program("--no-memory", names=["ScoRNN"])
    machine = gpu.machine()
    monkeypatch.setattr(gpu, "machine", lambda: {**machine, "commit": "another"})
    worker, rows = program("--no-memory", names=["ScoRNN"])
    assert [task["kind"] for task in worker.tasks] == ["check"]
    assert rows["check", "ScoRNN"]["commit"] == "another"
    assert rows["time", "ScoRNN"]["commit"] == machine["commit"]


def test_nothing_is_measured_where_a_layer_is_wrong(program, tmp_path):
    with pytest.raises(SystemExit, match="ScoRNN, float32, outputs: off by 1, 0.5"):
        program(wrong=["ScoRNN"])
    assert not list(tmp_path.glob("*.json"))


def test_one_failure_does_not_end_the_others(program):
    worker, rows = program("--no-memory", failing=["SimpleRNN"])
    assert rows["time", "SimpleRNN"]["failed"] == "XlaRuntimeError: gone"
    assert rows["time", "GRU"]["failed"] == "out of memory"
    assert rows["time", "ScoRNN"]["train"] == 0.003
    # JAX's together; then, as that has failed, each by itself.
    names = [task["names"] for task in worker.tasks if task["kind"] == "time"]
    assert names == [list(NAMES[:4]), *([name] for name in NAMES)]
    _, rows = program("--no-memory", "--retry", failing=["GRU"])
    assert rows["time", "SimpleRNN"]["train"] == 0.002
    assert rows["time", "GRU"]["failed"] == "XlaRuntimeError: gone"


def test_tables(program, tmp_path):
    program()
    page = (tmp_path / "gpu-some-gpu-9.md").read_text()
    place = "| 16 | 12 | 3 | float32 | "
    lines = page.splitlines()
    # Milliseconds, over SimpleRNN, over cuDNN's, of which there is none, and PyTorch's.
    assert f"{place}ScoRNN | 3 | 1.50 |  |  | 3.00 |  |  |  |" in lines
    assert f"{place}ScoRNN | 1.5 | 1.50 |  |  | 3.00 |  |  |  |" in lines
    # The matrix takes a quarter of the step.
    assert f"{place}ScoRNN | 0.75 | 0.250 | 0.10 | 2.00 |  | 7 |" in lines
    assert any(x.startswith(f"{place}GRU | failed: out of memory") for x in lines)
    assert any(x.startswith(f"{place}LSTM, cuDNN | skipped: needs") for x in lines)
    assert "| 16 | 70 | 16 | float32 | ScoRNN | outputs | 0.1 | 0.5 |" in lines
    pytest.importorskip("matplotlib")
    image = tmp_path / "gpu-some-gpu-9-float32.png"
    assert image.read_bytes().startswith(b"\x89PNG")


def test_grid_is_what_was_asked_for():
    tasks = gpu_names.tasks("grid", list(gpu_names.PRECISIONS), list(gpu_names.NAMES))
    shapes = {
        (task["units"], task["steps"], task["batch"])
        for task in tasks
        if task["kind"] == "time"
    }
    assert len(shapes) == 4 * 5 * 4
    assert {n for n, _, _ in shapes} == {128, 170, 256, 512, 1_024}
    assert {t for _, t, _ in shapes} == {128, 784, 2_000, 10_000}
    assert {b for _, _, b in shapes} == {16, 64, 128, 512}


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: ")])
def test_memory_that_runs_out_is_a_result(error):
    def fail():
        raise error

    assert gpu_worker.attempt(fail) == (None, {"failed": "out of memory"})


def test_a_missing_pytorch_names_its_extra():
    def fail():
        raise ImportError('`pip install "keras-ortho[torch]"`')

    _, why = gpu_worker.attempt(fail)
    assert gpu_report.why_not(why) == 'skipped: `pip install "keras-ortho[torch]"`'


PROGRAM = """
HloModule jit_step, is_scheduled=true

%body (p: (s32[], f32[2,2])) -> (s32[], f32[2,2]) {
  %p = (s32[], f32[2,2]{1,0}) parameter(0)
  %x = f32[2,2]{1,0} get-tuple-element(%p), index=1
  %dot.1 = f32[2,2]{1,0} dot(%x, %x), metadata={op_name="jit(step)/while/body/dot"}
  %call.1 = (f32[2,2]{1,0}) call(%dot.1), to_apply=%called
  ROOT %tuple.1 = (s32[], f32[2,2]{1,0}) tuple(%i, %dot.1)
}

%called (q: f32[2,2]) -> f32[2,2] {
  %q = f32[2,2]{1,0} parameter(0)
  ROOT %add_fusion = f32[2,2]{1,0} fusion(%q), kind=kLoop, calls=%fused
}

ENTRY %main (x: f32[2,2]) -> f32[2,2] {
  %while.1 = (s32[], f32[2,2]{1,0}) while(%t), condition=%c, body=%body, \
metadata={op_name="jit(step)/while"}, \
backend_config={"known_trip_count":{"n":"9"}}
}
"""


def test_operations_of_a_turn_are_counted():
    assert gpu_profile.loops(PROGRAM) == [
        {
            "source": "jit(step)/while",
            "turns": 9,
            "operations": {"dot": 1, "fusion": 1},
        }
    ]


def test_events_of_a_device_are_taken_once():
    def named(pid, tid, kind, name):
        place = {"ph": "M", "pid": pid, "name": kind, "args": {"name": name}}
        return place | ({} if tid is None else {"tid": tid})

    def event(pid, tid):
        return {
            "ph": "X",
            "pid": pid,
            "tid": tid,
            "dur": 2.0,
            "args": {"hlo_op": "dot.1"},
        }

    host = [named(7, None, "process_name", "/host:CPU"), event(7, 1)]
    device = [
        named(1, None, "process_name", "/device:GPU:0"),
        named(1, 5, "thread_name", "Stream #13(Compute)"),
        named(1, 6, "thread_name", "XLA Ops"),
        event(1, 5),
        event(1, 6),
    ]
    assert gpu_profile._of_device(host) == [event(7, 1)]
    assert gpu_profile._of_device(host + device) == [event(1, 5)]


@pytest.mark.slow
def test_the_program_runs_without_tensorflow(tmp_path):
    missing = tmp_path / "missing" / "tensorflow"
    missing.mkdir(parents=True)
    (missing / "__init__.py").write_text("raise ModuleNotFoundError('tensorflow')")
    paths = [str(missing.parent), os.environ.get("PYTHONPATH", "")]
    names = ["ScoRNN", "LSTM", "torch RNN", "matrix products"]
    options = ["--form", "tiny", "--repeats", "1", "--precision", "bfloat16"]
    options += ["--out", str(tmp_path / "out"), "--only", *names]
    done = subprocess.run(
        [sys.executable, str(FOLDER / "gpu.py"), *options],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (file,) = (tmp_path / "out").glob("*.json")
    rows = json.loads(file.read_text())["rows"]
    for row in rows:
        if row["name"] == "torch RNN" and "skipped" in row:
            assert 'pip install "keras-ortho[torch]"' in row["skipped"]
        else:
            assert not gpu_rows.why_not(row), row
    kinds = {row["kind"] for row in rows if row["name"] == "ScoRNN"}
    assert kinds == {"check", "time", "kernel", "memory", "profile"}
    (profile,) = [row for row in rows if row["kind"] == "profile"]
    assert profile["busy"] > 0
    assert {loop["turns"] for loop in profile["loops"]} >= {12}
    assert list(Path(profile["folder"]).rglob("*.trace.json.gz"))
