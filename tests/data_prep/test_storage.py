import json

import pytest

from keras_ortho.data_prep.storage import write_json


def test_json_is_the_same_for_the_same_value(tmp_path):
    write_json(tmp_path / "a", {"y": 1, "x": ["ü", "\udcff"]})
    write_json(tmp_path / "b", {"x": ["ü", "\udcff"], "y": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert json.loads((tmp_path / "a").read_bytes()) == {"x": ["ü", "\udcff"], "y": 1}


def test_what_would_be_too_large_to_read_is_not_written(tmp_path):
    write_json(tmp_path / "a", [1], largest=9)
    assert (tmp_path / "a").stat().st_size == 7
    with pytest.raises(ValueError, match="a may have at most 6 bytes.* Received: 7"):
        write_json(tmp_path / "a", [2], largest=6)
    assert json.loads((tmp_path / "a").read_bytes()) == [1]
