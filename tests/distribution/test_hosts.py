"""Several processes train as one, and go on after one of them was killed."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="runs JAX in other processes"
    ),
]
SCRIPT = Path(__file__).with_name("hosts.py")
# A process that waits for one that is gone would end after 100 s without its beat.
SECONDS = 240


def addresses():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]},127.0.0.1"


def start(folder, out, processes, kill=None, kill_at=-1):
    """Runs all processes; gives how each ended, and what each said."""
    hosts = addresses() if processes > 1 else "alone"
    environment = os.environ | {
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_PLATFORMS": "cpu",
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": str(SCRIPT.parents[2]),
    }
    running = []
    try:
        for process in range(processes):
            own = kill_at if process == kill else -1
            arguments = map(str, (folder, out, hosts, process, own))
            running.append(
                subprocess.Popen(
                    [sys.executable, SCRIPT, *arguments],
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
        said = [process.communicate(timeout=SECONDS)[0] for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    return [process.returncode for process in running], said


def weights(out, process=0):
    with np.load(f"{out}-{process}.npz") as file:
        return [file[name] for name in file.files]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    ended, said = start(folder / "run", folder / "out", 2)
    assert ended == [0, 0], said
    return folder


def test_two_processes_train_as_one(unbroken, tmp_path):
    ended, said = start(tmp_path / "run", tmp_path / "out", 1)
    assert ended == [0], said
    figures, *alone = weights(tmp_path / "out")
    found, *together = weights(unbroken / "out")
    # The loss of the training counts the repeated last batch, of one, as one of two.
    np.testing.assert_allclose(found[:, 1], figures[:, 1], rtol=1e-5)
    for value, expected in zip(together, alone, strict=True):
        # Float32, after 24 updates of Adam and RMSprop.
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-5)


def test_all_have_the_same_weights_and_one_has_the_folder(unbroken):
    first, second = (weights(unbroken / "out", process) for process in range(2))
    for value, expected in zip(first, second, strict=True):
        np.testing.assert_array_equal(value, expected)
    assert (unbroken / "run" / "best.keras").is_file()
    assert not list((unbroken / "run").glob("tmp-*"))


@pytest.mark.slowest
@pytest.mark.parametrize("kill", [0, 1])
def test_a_run_goes_on_after_a_kill(kill, unbroken, tmp_path):
    run, out = tmp_path / "run", tmp_path / "out"
    ended, said = start(run, out, 2, kill, kill_at=2)
    assert ended[kill] == -signal.SIGKILL, said
    assert ended[1 - kill] != 0, said  # It ended, too.
    assert list(run.glob("epoch-*"))
    assert not (run / "best.keras").exists()
    ended, said = start(run, out, 2)
    assert ended == [0, 0], said
    for process in range(2):
        found = weights(out, process)
        for value, expected in zip(found, weights(unbroken / "out"), strict=True):
            np.testing.assert_array_equal(value, expected)
