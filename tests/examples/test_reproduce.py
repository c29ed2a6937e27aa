import json
import subprocess
import sys
from pathlib import Path

import pytest

from keras_ortho.experiments.report import run_record
from tests.examples.modules import load_example


@pytest.fixture
def runs(monkeypatch):
    """The commands of the runs, each of which leaves its record and nothing else."""
    commands, original = [], subprocess.run

    def run(command, **kwargs):
        if "--out" not in command:
            return original(command, **kwargs)
        assert kwargs == {"check": True}
        commands.append(command)
        folder = Path(command[command.index("--out") + 1])
        (folder / "run").mkdir(parents=True, exist_ok=True)
        (folder / "run" / "settings.json").write_text("{}")
        record = run_record({"seed": 0, "units": 4, "model": "rnn"})
        record |= {
            "figures": {"test accuracy there": 0.5, "best test accuracy": 0.5},
            "parameters": 3,
        }
        record |= {"updates": [10], "seconds": 60.0}
        (folder / "run.json").write_text(json.dumps(record))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def reproduce(monkeypatch, folder, *arguments):
    begin = ["reproduce.py", "--set", "standard", "--out", str(folder / "report")]
    begin += ["--work", str(folder / "work")]
    monkeypatch.setattr(sys, "argv", [*begin, *arguments])
    load_example("reproduce").main()


def test_runs_what_is_not_done(monkeypatch, tmp_path, runs):
    (tmp_path / "data" / "ucr").mkdir(parents=True)
    only = ["--only", "ucr-rnn-cbf", "--data-dir", str(tmp_path / "data")]
    reproduce(monkeypatch, tmp_path, *only)
    assert [command[-1] for command in runs] == [str(tmp_path / "data" / "ucr")] * 3
    assert [command[command.index("--seed") + 1] for command in runs] == list("012")
    assert "0.5" in (tmp_path / "report" / "RESULTS.md").read_text()
    assert not any("--resume" in command for command in runs)
    reproduce(monkeypatch, tmp_path, *only)
    assert len(runs) == 3
    # Without its record a run has been broken off: it goes on.
    record = tmp_path / "report" / "results" / "ucr-rnn-cbf-seed-1.json"
    record.unlink()
    reproduce(monkeypatch, tmp_path, *only)
    assert len(runs) == 4
    assert runs[-1][-1] == "--resume"
    assert record.exists()


def test_names_what_has_no_data(monkeypatch, tmp_path, runs, capsys):
    reproduce(monkeypatch, tmp_path, "--only", "ucr-rnn-cbf-seed-0")
    assert not runs
    missing = "Left out for want of ucr in --data-dir: ucr-rnn-cbf-seed-0"
    assert missing in capsys.readouterr().out


def test_a_prefix_of_nothing(monkeypatch, tmp_path, runs, capsys):
    with pytest.raises(SystemExit):
        reproduce(monkeypatch, tmp_path, "--only", "chess")
    assert "Received: ['chess']" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
