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


def start(folder, processes, kill=None):
    """Runs all processes; gives how each ended, and what all said."""
    hosts = "alone"
    if processes > 1:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            hosts = f"127.0.0.1:{listener.getsockname()[1]}"
    environment = os.environ | {
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_PLATFORMS": "cpu",
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": str(SCRIPT.parents[2]),
    }
    running = []
    try:
        for process in range(processes):
            kill_at = "2" if process == kill else "-1"
            arguments = folder / "run", folder / "out", hosts, str(process), kill_at
            command = [sys.executable, SCRIPT, *arguments]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            running.append(
                subprocess.Popen(command, env=environment, text=True, **pipes)
            )
        said = [process.communicate(timeout=SECONDS)[0] for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    return [process.returncode for process in running], said


def train(folder, processes):
    """Returns the figures and the weights of each process."""
    ended, said = start(folder, processes)
    assert ended == [0] * processes, said
    found = []
    for process in range(processes):
        with np.load(folder / f"out-{process}.npz") as file:
            found.append([file[name] for name in file.files])
    return found


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    return folder, train(folder, 2)


def assert_equal(found, expected):
    for value, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value, other)


def test_two_processes_train_as_one(unbroken, tmp_path):
    folder, (together, second) = unbroken
    (alone,) = train(tmp_path, 1)
    # The loss of the training counts the repeated last batch, of one, as one of two.
    np.testing.assert_allclose(together[0][:, 1], alone[0][:, 1], rtol=1e-5)
    for value, expected in zip(together[1:], alone[1:], strict=True):
        # Float32, after 24 updates of Adam and RMSprop.
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-5)
    assert_equal(second, together)
    assert (folder / "run" / "best.keras").is_file()
    assert not list((folder / "run").glob("tmp-*"))


@pytest.mark.slowest
@pytest.mark.parametrize("kill", [0, 1])
def test_a_run_goes_on_after_a_kill(kill, unbroken, tmp_path):
    ended, said = start(tmp_path, 2, kill)
    assert ended[kill] == -signal.SIGKILL, said
    assert ended[1 - kill] != 0, said  # It ended, too.
    assert not (tmp_path / "run" / "best.keras").exists()
    for found in train(tmp_path, 2):
        assert_equal(found, unbroken[1][0])
