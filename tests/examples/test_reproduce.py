import json
import sys

import pytest

from experiments import engine
from experiments.records import add_record, read_records, run_record
from tests.examples.modules import load_example


@pytest.fixture
def runs(monkeypatch):
    """The commands of the runs, each of which leaves its record and nothing else."""
    commands = []

    def run(command, folder):
        assert command[command.index("--out") + 1] == str(folder)
        begun = (folder / "run" / "settings.json").exists()
        commands.append([*command, "--resume"] if begun else command)
        (folder / "run").mkdir(parents=True, exist_ok=True)
        (folder / "run" / "settings.json").write_text("{}")
        record = run_record({"seed": 0, "units": 4, "model": "rnn"})
        record |= {
            "figures": {"test accuracy there": 0.5, "best test accuracy": 0.5},
            "monitor": "error_rate",
            "parameters": 3,
            "curves": {},
        }
        record |= {"updates": [10], "seconds": 60.0}
        (folder / "run.json").write_text(json.dumps(record))

    monkeypatch.setattr(engine, "_run_here", run)
    return commands


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data" / "ucr").mkdir(parents=True)
    return str(tmp_path / "data")


def reproduce(monkeypatch, folder, *arguments):
    begin = ["reproduce.py", "--set", "standard", "--out", str(folder / "report")]
    begin += ["--work", str(folder / "work")]
    monkeypatch.setattr(sys, "argv", [*begin, *arguments])
    load_example("reproduce").main()


ADIAC = ["--only", "ucr-rnn-adiac", "--data-dir"]


def test_runs_what_is_not_done(monkeypatch, tmp_path, runs, data, capsys):
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    assert [command[-1] for command in runs] == [f"{data}/ucr"] * 3
    assert [command[command.index("--seed") + 1] for command in runs] == list("012")
    assert "0.5" in (tmp_path / "report" / "RESULTS.md").read_text()
    assert not any("--resume" in command for command in runs)
    path = tmp_path / "report/results/ucr.json"
    records = read_records(path)
    assert [*records] == [f"ucr-rnn-adiac-seed-{seed}" for seed in range(3)]
    assert "curves" not in records["ucr-rnn-adiac-seed-1"]
    capsys.readouterr()
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    assert "3 of 3 runs have their record" in capsys.readouterr().out
    assert len(runs) == 3
    # Without its record a run has been broken off: it goes on.
    rows = path.read_text().splitlines(keepends=True)
    path.write_text(rows[0] + rows[2])
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    assert len(runs) == 4
    assert runs[-1][-1] == "--resume"
    assert "ucr-rnn-adiac-seed-1" in read_records(path)
    path.write_text(rows[0])
    with pytest.raises(SystemExit):
        reproduce(monkeypatch, tmp_path, *ADIAC, data)
    assert f"is damaged, or has another format. Received: {path}" in (
        capsys.readouterr().err
    )


def test_trains_anew_when_asked(monkeypatch, tmp_path, runs, data):
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    # A record that came with the checkout is not of a run that lies here.
    path, name = tmp_path / "report/results/ucr.json", "ucr-rnn-adiac-seed-1"
    came = json.loads((tmp_path / "work" / name / "run.json").read_text())
    add_record(path, name, {**came, "commit": "1234567890"})
    assert read_records(path)[name]["commit"] == "1234567890"
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    assert len(runs) == 3
    for _ in range(2):  # What was trained anew is not trained once more.
        reproduce(monkeypatch, tmp_path, *ADIAC, data, "--fresh")
        (again,) = runs[3:]
    assert again[again.index("--seed") + 1] == "1"
    assert read_records(path)[name]["commit"] == came["commit"]


def test_lists_without_running(monkeypatch, tmp_path, runs, capsys, data):
    reproduce(monkeypatch, tmp_path, *ADIAC, data, "--list")
    lines = capsys.readouterr().out.splitlines()
    assert not runs
    assert not (tmp_path / "report").exists()
    assert lines[1:] == [f"ucr-rnn-adiac-seed-{seed}: to do" for seed in range(3)]
    reproduce(monkeypatch, tmp_path, "--only", "ucr-rnn-adiac", "--list")
    assert "needs ucr" in capsys.readouterr().out


def test_names_what_has_no_data(monkeypatch, tmp_path, runs, capsys):
    reproduce(monkeypatch, tmp_path, "--only", "ucr-rnn-adiac-seed-0")
    assert not runs
    missing = "Left out for want of ucr in --data-dir: ucr-rnn-adiac-seed-0"
    assert missing in capsys.readouterr().out


def test_a_prefix_of_nothing(monkeypatch, tmp_path, runs, capsys):
    with pytest.raises(SystemExit):
        reproduce(monkeypatch, tmp_path, "--only", "chess")
    assert "Received: ['chess']" in capsys.readouterr().err
