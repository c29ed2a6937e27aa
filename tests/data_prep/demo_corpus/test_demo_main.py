"""The command line."""

import pytest

from keras_ortho.data_prep.demo_corpus.__main__ import main

pytest.importorskip("soundfile")
pytest.importorskip("scipy.signal")
pytest.importorskip("tqdm")


def test_writes_once_and_says_so(tmp_path, capsys):
    arguments = [str(tmp_path / "demo"), "--speakers", "2", "--sentences", "1"]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Wrote 2 sentences of synthetic speech to ")
    assert "2/2" in captured.err
    assert len(list((tmp_path / "demo").rglob("*.WAV"))) == 2
    assert main(arguments) == 0
    assert "left as it is" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--speakers", "0"], "`speakers` must be from 1 to 260. Received: 0"),
        (["--sentences", "99"], "`sentences` must be from 1 to 34. Received: 99"),
        (["--seed", "-3"], "`seed` must be at least 0. Received: -3"),
    ],
)
def test_errors_are_printed(tmp_path, capsys, arguments, message):
    assert main([str(tmp_path / "demo"), *arguments]) == 1
    assert capsys.readouterr().err == f"error: {message}\n"
    assert not list(tmp_path.iterdir())


def test_other_content_is_an_error(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("error: `out` must be a new or empty")


def test_words_are_not_numbers(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--seed", "x"])
    assert "--seed" in capsys.readouterr().err
