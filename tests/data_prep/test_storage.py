import json
import subprocess
import sys

import pytest

from data_prep.storage import file_sha256, locked, write_json


def test_json_is_the_same_for_the_same_value(tmp_path):
    write_json(tmp_path / "a", {"y": 1, "x": ["ü", "\udcff"]})
    write_json(tmp_path / "b", {"x": ["ü", "\udcff"], "y": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert json.loads((tmp_path / "a").read_bytes()) == {"x": ["ü", "\udcff"], "y": 1}


def test_sha256(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1
    assert file_sha256(tmp_path / "file") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_a_folder_is_held_by_one(tmp_path):
    with (
        locked(tmp_path),
        pytest.raises(BlockingIOError, match="Another run"),
        locked(tmp_path),
    ):
        pass
    with locked(tmp_path):
        pass


def test_the_lock_of_a_killed_process_is_gone(tmp_path):
    program = (
        "import sys, time; from pathlib import Path\n"
        "from data_prep.storage import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(BlockingIOError), locked(tmp_path):
            pass
        process.kill()
    with locked(tmp_path):
        pass
