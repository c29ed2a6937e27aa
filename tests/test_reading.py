import io
import os

import pytest

from keras_ortho.reading import fill, read_bytes, read_json, unpacked_limit


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


@pytest.mark.parametrize("there", [0, 5, 9, 10, 11, 2**18 + 1, 2**19])
@pytest.mark.parametrize("size", [0, 9, 10, 2**18 + 1])
def test_fill(there, size):
    content = (b"0123456789" * 2**16)[:there]
    values, more = fill(io.BytesIO(content), size)
    assert values.tobytes() == content[:size]
    assert more == (there > size)


def test_the_limit_grows_with_the_file():
    assert unpacked_limit(0) == unpacked_limit(24 * 2**20) == 48 * 2**20
    assert unpacked_limit(2**30) == 2**31
