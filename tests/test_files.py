import os

import pytest

from keras_ortho.files import (
    file_sha256,
    flush,
    read_json,
    remove_asides,
    replacing,
    write_json,
)


def test_appears_whole(tmp_path):
    path = tmp_path / "result.txt"
    with replacing(path) as aside:
        aside.write_text("new")
        assert not path.exists()
        assert aside.parent == tmp_path
        assert aside.name.endswith("result.txt")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "result.txt"
    path.write_text("old")

    def fail():
        with replacing(path) as aside:
            aside.write_text("half")
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_is_on_the_disk_before_it_has_its_name_and_its_name_after(tmp_path, disk):
    with replacing(tmp_path / "result.txt") as aside:
        aside.write_text("new")
    assert disk == [
        ("fsync", aside.name),
        ("replace", aside.name, "result.txt"),
        ("fsync", tmp_path.name),
    ]


def test_a_disk_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "result.txt"
    path.write_text("old")

    def fsync(file):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="Input/output"), replacing(path) as aside:
        aside.write_text("new")
    assert path.read_text() == "old"


def test_a_file_system_that_flushes_no_folders(tmp_path, monkeypatch):
    def fsync(file):
        raise OSError(22, "Invalid argument")

    (tmp_path / "file").touch()
    monkeypatch.setattr(os, "fsync", fsync)
    flush(tmp_path)
    with pytest.raises(OSError, match="Invalid argument"):
        flush(tmp_path / "file")


def test_removes_what_a_kill_left(tmp_path):
    others = {
        "result.txt",
        "tmp-12-other.txt",
        "tmp-notes-result.txt",
        "tmp-1-resultXtxt",
    }
    for name in (*others, "tmp-12-result.txt", "tmp-345-result.txt"):
        (tmp_path / name).touch()
    remove_asides(tmp_path / "result.txt")
    assert {path.name for path in tmp_path.iterdir()} == others


def test_keeps_permissions_and_links(tmp_path):
    path = tmp_path / "store" / "a"
    path.parent.mkdir()
    path.write_text("old")
    path.chmod(0o600)
    link = tmp_path / "result.txt"
    link.symlink_to(path)
    with replacing(link) as aside:
        aside.write_text("new")
        assert aside.name.endswith("result.txt")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    (path.parent / "tmp-1-result.txt").touch()
    remove_asides(link)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("one_line", [False, True])
def test_json_is_read_as_it_was_written(one_line, tmp_path):
    path = tmp_path / "values.json"
    best = {"a": float("inf"), "b": "\u00e9,  d\n"}
    values = {"curves": {"loss": [0.5, -1e-09], "best": best}, "odd": ["[ ", None]}
    write_json(path, values, one_line=one_line)
    text = path.read_text("utf-8")
    assert text.count("\n") == 1 or '\n  "loss": [0.5, -1e-09],\n' in text
    assert read_json(path, ["curves", "odd"]) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "Expecting value"),
        (b'{"loss": 0.5', "Expecting"),
        (b'{"loss": "\xff"}', "'utf-8' codec"),
        (b"[" * 10**6, ""),
        (b"[1]", "it must contain a JSON object with loss. Received: list"),
        (b'{"gain": 1}', r"it must contain .* loss. Received: \['gain'\]"),
    ],
)
def test_an_error_names_the_json_file(text, message, tmp_path):
    path = tmp_path / "values.json"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=f"values.json is damaged: {message}"):
        read_json(path, ["loss"])


def test_sha256(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1
    assert file_sha256(tmp_path / "file") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
