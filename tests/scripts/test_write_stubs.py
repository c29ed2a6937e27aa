import ast
import inspect
from typing import Any

import keras
import pytest

from keras_ortho import cells
from tests.modules import ROOT, load_file

STUB = ROOT / "keras_ortho" / "cells" / "__init__.pyi"


def written() -> dict[str, list[inspect.Parameter]]:
    """The parameters of each class in the stub, without `self`, by its name."""
    parameters = {}
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names = {"Any": Any}
            exec(ast.unparse(node.body[-1]), names)
            first, *others = inspect.signature(names["__init__"]).parameters.values()
            assert first.name == "self"
            parameters[node.name] = others
    return parameters


PARAMETERS = written()


def test_the_stub_is_the_one_that_is_written():
    module = load_file("scripts/write_stubs.py")
    assert module.STUB.samefile(STUB)
    assert STUB.read_text(encoding="utf-8") == module.stub(), "run `make stubs`"


def test_the_stub_has_every_cell_and_layer():
    assert {*PARAMETERS, "RecurrentCell", "RecurrentLayer"} == {*cells.__all__}


@pytest.mark.parametrize("name", PARAMETERS)
def test_signatures_are_those_at_run_time(name):
    *own, kwargs = inspect.signature(getattr(cells, name)).parameters.values()
    assert kwargs.kind is kwargs.VAR_KEYWORD
    _, *every, _ = inspect.signature(keras.layers.Layer.__init__).parameters.values()
    expected = [*own, *every]  # In place of `**kwargs`.
    stub = PARAMETERS[name]
    assert [(p.name, p.kind) for p in stub] == [(p.name, p.kind) for p in expected]
    for shown, real in zip(stub, expected, strict=True):
        if shown.default is ...:
            assert callable(real.default)
        else:
            assert shown.default == real.default
            assert type(shown.default) is type(real.default)
        if real.annotation is not real.empty:
            assert shown.annotation == real.annotation
