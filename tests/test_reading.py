import os

import pytest

from keras_ortho.reading import read_bytes, read_json


def test_whole_files(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b'{"a": 1}')
    assert read_bytes(path, 8) == b'{"a": 1}'
    assert read_json(path, 8) == {"a": 1}


def test_what_is_too_large_or_no_file(tmp_path):
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(2**40)  # A hole: it takes no room, and no time.
    with pytest.raises(ValueError, match=f"at most 100 bytes. Received: {path} of"):
        read_bytes(path, 100)
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "none", 100)
    with pytest.raises(IsADirectoryError, match=f"Received: {tmp_path}"):
        read_bytes(tmp_path, 2**20)
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ValueError, match=f"regular file.* Received: {other}"):
            read_bytes(other, 100)


@pytest.mark.parametrize("content", [b"", b"[1", b"\xff", b"[" * 100_000, b"1" * 9999])
def test_damaged_json(tmp_path, content):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path} must contain JSON. Received"):
        read_json(path, 2**20)
