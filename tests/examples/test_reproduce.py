import json
import subprocess
import sys

import pytest

from experiments import engine
from experiments.records import run_record
from keras_ortho.files import read_json, write_json
from keras_ortho.locks import locked
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


def reproduce(monkeypatch, folder, *arguments):
    begin = ["reproduce.py", "--set", "standard", "--out", str(folder / "report")]
    begin += ["--work", str(folder / "work")]
    monkeypatch.setattr(sys, "argv", [*begin, *arguments])
    load_example("reproduce").main()


def test_runs_what_is_not_done(monkeypatch, tmp_path, runs):
    (tmp_path / "data" / "ucr").mkdir(parents=True)
    only = ["--only", "ucr-rnn-adiac", "--data-dir", str(tmp_path / "data")]
    reproduce(monkeypatch, tmp_path, *only)
    assert [command[-1] for command in runs] == [str(tmp_path / "data" / "ucr")] * 3
    assert [command[command.index("--seed") + 1] for command in runs] == list("012")
    assert "0.5" in (tmp_path / "report" / "RESULTS.md").read_text()
    assert not any("--resume" in command for command in runs)
    # Of so many runs a record is without curves.
    (text, *_) = [
        path.read_text() for path in (tmp_path / "report/results").glob("*.json")
    ]
    assert "curves" not in text
    assert text.count("\n") == 1
    reproduce(monkeypatch, tmp_path, *only)
    assert len(runs) == 3
    # Without its record a run has been broken off: it goes on.
    record = tmp_path / "report" / "results" / "ucr-rnn-adiac-seed-1.json"
    record.unlink()
    reproduce(monkeypatch, tmp_path, *only)
    assert len(runs) == 4
    assert runs[-1][-1] == "--resume"
    assert record.exists()


ADIAC = ["--only", "ucr-rnn-adiac", "--data-dir"]


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data" / "ucr").mkdir(parents=True)
    return str(tmp_path / "data")


def test_says_what_has_a_record_and_trains_it_anew_when_asked(
    monkeypatch, tmp_path, runs, capsys, data
):
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    assert "3 runs remain." in capsys.readouterr().out
    assert len(runs) == 3
    # A record that came with the checkout is not of a run that lies here.
    came = tmp_path / "report" / "results" / "ucr-rnn-adiac-seed-1.json"
    record = read_json(came)
    write_json(came, {**record, "commit": "elsewhere"})
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    text = capsys.readouterr().out
    assert "3 of 3 records are in" in text
    assert "0 are committed to git, 2 were trained here" in text
    assert "elsewhere" in text
    assert "--fresh trains them anew" in text
    assert len(runs) == 3
    reproduce(monkeypatch, tmp_path, *ADIAC, data, "--fresh")
    assert "2 of 3 records are in" in capsys.readouterr().out
    (again,) = runs[3:]
    assert again[again.index("--seed") + 1] == "1"
    assert json.loads(came.read_text())["commit"] == record["commit"]
    # What was trained anew is not trained once more.
    reproduce(monkeypatch, tmp_path, *ADIAC, data, "--fresh")
    assert "3 of 3 records are in" in capsys.readouterr().out
    assert len(runs) == 4


def test_the_report_gathers_records_in_a_table(
    monkeypatch, tmp_path, runs, capsys, data
):
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    report = (tmp_path / "report" / "RESULTS.md").read_text()
    results = tmp_path / "report" / "results"
    own = results / "ucr-rnn-adiac-seed-1.json"
    # Of two records of a run the one in a file of its own is the newer.
    older, commit = own.read_text(), read_json(own)["commit"]
    write_json(own, {**read_json(own), "commit": "1234567890"})
    reproduce(monkeypatch, tmp_path, "--report")
    assert not list(results.glob("ucr-*.json"))
    text = (results / "ucr.csv").read_text()
    assert [line.split(",")[0] for line in text.splitlines()] == [
        "run",
        *(f"ucr-rnn-adiac-seed-{seed}" for seed in range(3)),
    ]
    capsys.readouterr()
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    assert "3 of 3 records are in" in (said := capsys.readouterr().out)
    assert "2 were trained here" in said
    assert "1234567890" in said
    assert len(runs) == 3
    own.write_text(older)
    reproduce(monkeypatch, tmp_path, "--report")
    assert (tmp_path / "report" / "RESULTS.md").read_text() == report
    assert text.replace('"""1234567890"""', commit) == (results / "ucr.csv").read_text()
    (results / "ucr.csv").write_text(text[:-5].rpartition(",")[0])
    with pytest.raises(SystemExit):
        reproduce(monkeypatch, tmp_path, *ADIAC, data)
    assert "ucr.csv is damaged" in capsys.readouterr().err


def test_says_which_records_are_committed(monkeypatch, tmp_path, runs, capsys, data):
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    report = tmp_path / "report"
    for command in (["init"], ["add", "results/ucr-rnn-adiac-seed-0.json"]):
        subprocess.run(["git", "-C", report, *command], check=True)
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    assert "1 are committed to git, 3 were trained here" in capsys.readouterr().out


def test_lists_without_running(monkeypatch, tmp_path, runs, capsys, data):
    reproduce(monkeypatch, tmp_path, *ADIAC, data, "--list")
    lines = capsys.readouterr().out.splitlines()
    assert not runs
    assert not (tmp_path / "report").exists()
    for seed in range(3):
        assert lines[seed] == f"ucr-rnn-adiac-seed-{seed}: to do"
    reproduce(monkeypatch, tmp_path, "--only", "ucr-rnn-adiac", "--list")
    assert "needs ucr in --data-dir" in capsys.readouterr().out


def test_a_damaged_record_is_named(monkeypatch, tmp_path, runs, capsys, data):
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    record = tmp_path / "report" / "results" / "ucr-rnn-adiac-seed-1.json"
    content = record.read_text()
    for damaged in (content[:50], content.replace("settings", "sattings"), "[]"):
        record.write_text(damaged)
        with pytest.raises(SystemExit) as error:
            reproduce(monkeypatch, tmp_path, *ADIAC, data)
        assert error.value.code == 2
        assert (
            f"is damaged, or has another format. Received: {record}"
            in capsys.readouterr().err
        )
    assert len(runs) == 3


def test_of_two_commands_one_leaves_a_run_out(monkeypatch, tmp_path, runs, data):
    results = tmp_path / "report" / "results"
    with (
        locked(results, ".ucr-rnn-adiac-seed-1.lock"),
        pytest.raises(SystemExit) as error,
    ):
        reproduce(monkeypatch, tmp_path, *ADIAC, data)
    assert "Not done: ucr-rnn-adiac-seed-1. Another process" in str(error.value)
    seeds = [command[command.index("--seed") + 1] for command in runs]
    assert seeds == ["0", "2"]
    reproduce(monkeypatch, tmp_path, *ADIAC, data)
    assert len(runs) == 3


def test_names_what_has_no_data(monkeypatch, tmp_path, runs, capsys):
    reproduce(monkeypatch, tmp_path, "--only", "ucr-rnn-adiac-seed-0")
    assert not runs
    missing = "Left out for want of ucr in --data-dir: ucr-rnn-adiac-seed-0"
    assert missing in capsys.readouterr().out


def test_a_prefix_of_nothing(monkeypatch, tmp_path, runs, capsys):
    with pytest.raises(SystemExit):
        reproduce(monkeypatch, tmp_path, "--only", "chess")
    assert "Received: ['chess']" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
