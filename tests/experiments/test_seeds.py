"""`--seeds` and `--jobs`: several runs, what they come to, and going on with them."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from keras_ortho.files import locked
from tests.examples.modules import run_example
from tests.executors.clusters import cluster
from tests.waiting import until

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "adding.py"
SMALL = ["--smoke", "--model", "rnn", "--units", "4"]


def record(folder):
    return json.loads((folder / "run.json").read_text())


def outcome(folder):
    """What a run came to, without when and how fast."""
    found = record(folder)
    return {name: found[name] for name in ("curves", "figures", "updates")}


def command(out, *arguments):
    return [sys.executable, str(EXAMPLE), *SMALL, "--out", str(out), *arguments]


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    out = tmp_path_factory.mktemp("seeds") / "out"
    arguments = command(out, "--seed", "1", "--seeds", "2", "--jobs", "2")
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return out, done.stdout


@pytest.mark.slow
def test_each_is_the_run_of_its_seed(seeds, tmp_path):
    out, _ = seeds
    run_example("adding", *SMALL, "--seed", "2", "--out", tmp_path / "alone")
    alone, among = outcome(tmp_path / "alone"), outcome(out / "seed-2")
    assert alone["updates"] == among["updates"]
    # The number of threads may change the order of sums.
    for name, curve in alone["curves"].items():
        np.testing.assert_allclose(among["curves"][name], curve, rtol=1e-3)
    assert outcome(out / "seed-1")["curves"] != among["curves"]
    assert not (out / "seed-0").exists()


@pytest.mark.slow
def test_the_table_has_mean_and_deviation(seeds):
    out, printed = seeds
    table = (out / "comparison.md").read_text()
    assert table in printed
    head, _, row = (line.strip("| ").split(" | ") for line in table.splitlines())
    cells = dict(zip(head, row, strict=True))
    values = [
        record(out / f"seed-{seed}")["figures"]["test mse there"] for seed in (1, 2)
    ]
    mean, deviation = map(float, cells["test"].split(" ± "))
    assert mean == pytest.approx(np.mean(values), rel=1e-3)
    assert deviation == pytest.approx(np.std(values, ddof=1), rel=0.05)
    assert cells["seeds"] == "2"
    assert (out / "comparison.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slowest
def test_on_a_cluster_that_loses_a_worker_they_are_the_same(seeds, tmp_path):
    whole, _ = seeds
    out = tmp_path / "out"
    given = command(out, "--seed", "1", "--seeds", "2")
    with cluster(tmp_path / "dask") as (address, workers):
        process = subprocess.Popen([*given, "--scheduler", address])
        until(lambda: list(out.glob("seed-*/run/settings.json")))
        begun, *_ = out.glob("seed-*/run/settings.json")
        worker = next(
            w
            for w in workers
            for child in psutil.Process(w.pid).children()
            if begun.parents[1].name in " ".join(child.cmdline())
        )
        worker.kill()
        assert process.wait(120) == 0
    assert worker.returncode == -signal.SIGKILL
    for seed in (1, 2):
        assert outcome(out / f"seed-{seed}") == outcome(whole / f"seed-{seed}")
    assert (out / "comparison.md").exists()


@pytest.mark.slowest
def test_what_is_done_is_left_and_more_seeds_are_added(seeds, tmp_path, capfd):
    out = tmp_path / "out"
    shutil.copytree(seeds[0], out)
    before = {n: (out / f"seed-{n}/run.json").stat().st_mtime_ns for n in (1, 2)}
    given = ["--seed", "1", "--seeds", "3", "--resume", "--out", out]
    run_example("adding", *SMALL, *given)
    assert capfd.readouterr().out.count("Nothing was left to train.") == 2
    for n, time_of in before.items():
        assert (out / f"seed-{n}/run.json").stat().st_mtime_ns == time_of
    assert record(out / "seed-3")["settings"]["seed"] == 3
    # Other settings are no continuation, and spoil nothing.
    with pytest.raises(SystemExit, match="seed-1: .*status 2"):
        run_example(
            "adding", *SMALL, *given[:-3], "--out", out, "--resume", "--rate", "sgd 1"
        )
    assert (out / "seed-1/run.json").stat().st_mtime_ns == before[1]


@pytest.mark.parametrize("arguments", [["--seeds", "2"], []])
def test_a_folder_that_holds_a_run_is_left(arguments, tmp_path, capsys):
    (tmp_path / "run").mkdir(parents=True)
    (tmp_path / "run" / "settings.json").touch()
    with pytest.raises(SystemExit):
        run_example("adding", *SMALL, *arguments, "--out", tmp_path)
    assert "resume it with --resume" in capsys.readouterr().err


@pytest.mark.slow
def test_a_second_command_is_told_who_is_at_it(seeds, tmp_path, capsys):
    with locked(tmp_path), pytest.raises(SystemExit):
        run_example("adding", *SMALL, "--seeds", "2", "--out", tmp_path)
    assert "Another process is using this folder" in capsys.readouterr().err


@pytest.mark.slowest
def test_killed_and_resumed_to_the_same_figures(tmp_path):
    arguments = "--epochs", "12", "--seeds", "2", "--jobs", "2"
    whole = tmp_path / "whole"
    subprocess.run(command(whole, *arguments), check=True)
    out = tmp_path / "killed"
    process = subprocess.Popen(command(out, *arguments))
    # As soon as one has come some way.
    end = time.monotonic() + 120
    while not any(out.glob("seed-*/run/state.weights.h5")):
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while _held(out / "seed-0") or _held(out / "seed-1"):  # Until its runs end, too.
        assert time.monotonic() < end
        time.sleep(0.05)
    assert not (out / "comparison.md").exists()
    subprocess.run(command(out, *arguments, "--resume"), check=True)
    for seed in (0, 1):
        assert outcome(out / f"seed-{seed}") == outcome(whole / f"seed-{seed}")


def _held(folder):
    try:
        with locked(folder), locked(folder / "run"):
            return False
    except BlockingIOError:
        return True
