"""How a command ends that cannot go on."""

import sys

import pytest

from experiments.errors import plain_errors


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (ValueError("`a` must be 1. Received: a=2"), 2, "`a` must be 1. Received: a=2"),
        (FileNotFoundError("no such file"), 2, "no such file"),
        (ImportError("install the extra"), 2, "install the extra"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_ends_with_a_line(monkeypatch, capsys, raised, status, said):
    monkeypatch.setattr(sys, "argv", ["/somewhere/adding.py"])
    with pytest.raises(SystemExit) as ended, plain_errors():
        raise raised
    assert ended.value.code == status
    assert capsys.readouterr().err.strip() == f"adding.py: {said}"


def test_other_errors_keep_their_traceback():
    with pytest.raises(TypeError, match="of a mistake"), plain_errors():
        raise TypeError("of a mistake")
