import pytest

from keras_ortho.files import replacing


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
