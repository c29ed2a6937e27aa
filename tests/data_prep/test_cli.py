import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from keras_ortho.data_prep.cli import main
from tests.data_prep.corpora import contents, noise, write_corpus, write_sphere
from tests.executors.clusters import cluster
from tests.waiting import is_running, until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    write_corpus(folder)
    return folder


def test_summary(corpus, capsys):
    out = corpus.parent / "out"
    (corpus / "dr1-faaa0" / "sx1.wav").write_bytes(b"")
    (corpus / "dr2-fbbb0" / "sx1.wav.wav").touch()
    options = [str(corpus), str(out), "--workers", "1", "--shards", "2", "1", "1"]
    assert main(options) == 0
    lines = capsys.readouterr().out.splitlines()
    splits = json.loads((out / "manifest.json").read_bytes())["splits"]
    assert [line.split(",")[0] for line in lines[:3]] == [
        f"{name}: {splits[name]['num_utterances']} utterances"
        for name in ("train", "valid", "test")
    ]
    assert lines[3:] == [
        "shards: 4 written, 0 unchanged",
        "passed over: 1 copies or files that are no utterances; see report.csv",
        "rejected: 1",
        "  dr1-faaa0/sx1.wav: The file is empty.",
    ]
    assert main(options) == 0
    assert "shards: 0 written, 4 unchanged" in capsys.readouterr().out


def test_interrupted(corpus, capsys, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    options = [str(corpus), str(corpus.parent / "out"), "--workers", "1"]
    with monkeypatch.context() as patched:
        patched.setattr("keras_ortho.data_prep.shards.encode", interrupted)
        assert main(options) == 130
    assert "run again to go on" in capsys.readouterr().err
    assert main(options) == 0


def test_missing_utterances_of_the_standard_splits_are_pointed_out(tmp_path, capsys):
    for path in ("TRAIN/DR1/FAAA0", "TEST/DR1/FAKS0", "TEST/DR1/MDAB0"):
        write_sphere(tmp_path / "corpus" / path / "SX1.WAV", noise(0))
    arguments = [str(tmp_path / "corpus"), str(tmp_path / "out"), "--workers", "1"]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    for count in (3696, 400, 192):
        assert f"at most 10 frames (the complete corpus has {count} utterances)" in out


def test_lists(corpus, capsys, monkeypatch):
    monkeypatch.chdir(corpus.parent)
    folders = sorted(corpus.iterdir())
    options = ["corpus", "out", "--workers", "1", "--shards", "2", "1", "1"]
    for name, chosen in {"train": folders[:4], "valid": folders[4:5]}.items():
        paths = [p.relative_to(corpus) for f in chosen for p in sorted(f.iterdir())]
        lines = [f"{path},{path.parent}" for path in paths]
        Path(f"{name}=.csv").write_text("\n".join(["file,speaker", *lines]))
        options += ["--list", f"{name}={name}=.csv"]
    # A path with the sign in it, as no split is called so.
    Path("x=.csv").write_text(f"file,speaker,split\n{folders[5].name}/sx1.wav,m,test\n")
    assert main([*options, "--list", "x=.csv"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("train: 16 utterances, 0.0 minutes")
    assert "\nvalid: 4 utterances" in out
    assert "\ntest: 1 utterances" in out
    parameters = json.loads(Path("out/manifest.json").read_bytes())["parameters"]
    assert parameters["splits"] == "list"


@pytest.mark.parametrize(
    ("corpus_name", "options", "message"),
    [
        ("nowhere", [], "error: The corpus folder does not exist. Received: "),
        ("empty", [], "error: No utterances: "),
        ("empty", ["--list", "no"], "error: There is no such list; "),
    ],
)
def test_errors_are_one_line(tmp_path, capsys, corpus_name, options, message):
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / corpus_name), str(tmp_path / "out"), *options]) == 1
    err = capsys.readouterr().err
    assert err.startswith(message)
    assert err.count("\n") == 1


# --- A command that is killed -------------------------------------------------------

SHARDS = ["--shards", "160", "40", "40"]


def start(corpus, out, *where):
    command = [sys.executable, "-m", "keras_ortho.data_prep", *SHARDS, *where]
    return subprocess.Popen(
        [*command, str(corpus), str(out)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def children(pid):
    """Processes that a process has started, and theirs."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def kill_at(process, out, new_files, delay):
    """Kills a run some time after it has made some files; checks its workers end."""
    seen = set(os.listdir(out))
    made = 0
    while process.poll() is None and made < new_files:
        now = set(os.listdir(out))
        made += len(now - seen)
        seen |= now
        time.sleep(0.001)
    time.sleep(delay)
    workers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    # Workers do not outlive the command.
    until(lambda: not any(map(is_running, workers)))
    return process.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kills", "workers"), [(1, 1), pytest.param(20, 2, marks=pytest.mark.slowest)]
)
def test_killed_and_run_again_it_ends_in_the_same_bytes(tmp_path, kills, workers):
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    # So many that the last run is still far from the end when it is killed.
    write_corpus(corpus, sentences=tuple(f"sx{n}" for n in range(4 * kills)))
    whole = [str(corpus), str(tmp_path / "whole"), "--workers", "1", *SHARDS]
    assert main(whole) == 0
    out.mkdir()
    moments = random.Random(kills)
    for _ in range(kills):
        # Before the first file, or within the work; a file is there for some ms.
        new_files = moments.randrange(0, 12)
        delay = moments.uniform(0, 5) if new_files == 0 else moments.uniform(0, 0.01)
        assert kill_at(
            start(corpus, out, "--workers", str(workers)), out, new_files, delay
        )
    assert not (out / "manifest.json").exists()
    assert main([str(corpus), str(out), "--workers", "1", *SHARDS]) == 0
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.slow
def test_a_worker_that_is_killed_is_an_error_and_no_hang(tmp_path):
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    write_corpus(corpus)
    out.mkdir()
    process = start(corpus, out, "--workers", "2")

    def workers():
        begun = children(process.pid)
        return [pid for pid in begun if "popen_loky" in command_line(pid)]

    os.kill(until(workers)[0], signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"error: a worker process was killed; run again" in err
    assert not (out / "manifest.json").exists()


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


# --- A cluster, whose workers are killed --------------------------------------------


@pytest.mark.slowest
def test_on_a_cluster_that_loses_a_worker_and_killed_it_makes_the_same_bytes(tmp_path):
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    write_corpus(corpus, sentences=tuple(f"sx{n}" for n in range(40)))
    shards = ["--shards", "40", "10", "10"]
    assert main([str(corpus), str(tmp_path / "whole"), "--workers", "1", *shards]) == 0
    out.mkdir()

    def records(folder=out):
        return len(list(folder.glob("*.tfrecord")))

    with cluster(tmp_path / "dask") as (address, workers):
        process = start(corpus, out, "--scheduler", address, *shards)
        until(lambda: records() >= 4)
        workers[0].kill()
        found = records()
        assert found < records(tmp_path / "whole") / 2  # So it has had work.
        # What it had is done by the other one, until the command is killed.
        until(lambda: records() > found + 4)
        process.kill()
        process.communicate()
        assert not (out / "manifest.json").exists()
        process = start(corpus, out, "--scheduler", address, *shards)
        said, wrong = process.communicate(timeout=120)
    assert process.returncode == 0, wrong
    assert b" 0 unchanged" not in said
    assert contents(out) == contents(tmp_path / "whole")


def test_a_cluster_that_does_not_answer_is_an_error(corpus, capsys):
    pytest.importorskip("distributed")
    arguments = [str(corpus), str(corpus.parent / "out"), "--scheduler", "ftp://a:1"]
    assert main(arguments) == 1
    assert "error: `scheduler` must be " in capsys.readouterr().err
