import subprocess

import pytest

from experiments import records


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout of one commit that holds the module."""
    for name in ("package/records.py", "results/run.json", "RESULTS.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("before")
    monkeypatch.setattr(records, "__file__", str(tmp_path / "package" / "records.py"))

    def git(*arguments):
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]
        done = subprocess.run(
            [*command, *arguments],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "all")
    return tmp_path, git("rev-parse", "--short=10", "HEAD")


def commit():
    return records.run_record({})["commit"]


def test_the_commit(checkout):
    assert commit() == checkout[1]


def test_results_are_no_change(checkout):
    folder, expected = checkout
    (folder / "RESULTS.md").write_text("after")
    (folder / "results" / "run.json").write_text("after")
    (folder / "results" / "another.json").write_text("new")
    assert commit() == expected


def test_code_is(checkout):
    folder, expected = checkout
    (folder / "package" / "records.py").write_text("after")
    assert commit() == f"{expected}-dirty"


def test_outside_of_a_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "__file__", str(tmp_path / "records.py"))
    assert commit() is None


def test_files_of_something_else_are_not_replaced(tmp_path):
    (tmp_path / "table.md").write_text("mine")
    records.check_record(tmp_path, "run.json", "results")
    with pytest.raises(ValueError, match=r"without table.md.*Received: .*table\.md"):
        records.check_record(tmp_path, "run.json", "results", ["table.md"])
    for text in ('{"results": []}', "mine", '{"figures": {}, "keras_ortho": "0.2.0"}'):
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(ValueError, match=r"without run.json.*Received: .*run\.js"):
            records.check_record(tmp_path, "run.json", "results")
    (tmp_path / "run.json").write_text('{"results": [], "keras_ortho": "0.2.0"}')
    records.check_record(tmp_path, "run.json", "results", ["table.md"])
