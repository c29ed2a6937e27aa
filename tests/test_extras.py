import sys
import types

import pytest

from keras_ortho.extras import require


@pytest.fixture
def broken_module(tmp_path, monkeypatch):
    """A module that is installed, but needs another one that is not."""
    (tmp_path / "broken_module.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "broken_module"
    sys.modules.pop("broken_module", None)


@pytest.mark.parametrize("name", ["json", "xml.dom.minidom"])
def test_returns_the_module_itself(name):
    module = require(name, extra="speech")
    assert isinstance(module, types.ModuleType)
    assert module is sys.modules[name]


@pytest.mark.parametrize("name", ["no_such_module", "no_such_module.submodule"])
def test_missing_module_names_the_extra(name):
    with pytest.raises(ImportError) as caught:
        require(name, extra="speech")
    assert f"`{name}`" in str(caught.value)
    assert 'pip install "keras-ortho[speech]"' in str(caught.value)
    assert caught.value.name == name
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_missing_module_of_no_extra_names_itself():
    with pytest.raises(ImportError, match="`pip install no_such_module`"):
        require("no_such_module")


def test_installed_module_that_fails_says_why(broken_module):
    with pytest.raises(ModuleNotFoundError) as caught:
        require(broken_module, extra="speech")
    assert caught.value.name == "no_such_module"
    assert "keras-ortho" not in str(caught.value)


def test_extra_is_given_by_name():
    with pytest.raises(TypeError, match="positional"):
        require("json", "speech")
