import pytest

from tests.examples.modules import run_example


@pytest.fixture
def refused(tmp_path, capsys):
    """Holds that a command line is refused before anything is written."""

    def check(name, arguments, message):
        out = tmp_path / "out"
        with pytest.raises(SystemExit) as exit:
            run_example(name, "--out", out, *arguments)
        assert exit.value.code == 2
        assert message in capsys.readouterr().err
        assert not out.exists()

    return check
