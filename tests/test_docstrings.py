"""Every example in a docstring runs, and every public name has a docstring."""

import doctest
import importlib
import inspect
import pkgutil
import pydoc
import re

import keras
import numpy as np
import pytest

import experiments
import keras_ortho
from keras_ortho import audio

MODULES = [
    name
    for each in (keras_ortho, experiments)
    for name in (
        each.__name__,
        *(m.name for m in pkgutil.walk_packages(each.__path__, f"{each.__name__}.")),
    )
]


def load(name):
    if name == "keras_ortho.backend.torch":
        pytest.importorskip("torch")
    return importlib.import_module(name)


class AnyOutput(doctest.OutputChecker):
    """The outputs are for the reader: tensors print differently on each backend."""

    def check_output(self, want, got, optionflags):
        return True


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Some write a file.
    module = load(name)
    names = {**vars(keras_ortho), **vars(audio), **vars(module)}
    names |= {"np": np, "keras": keras, "speech": np.sin(np.arange(1000) / 5)}
    runner = doctest.DocTestRunner(AnyOutput())
    for test in doctest.DocTestFinder().find(module, name, globs=names):
        if any("model" in example.source for example in test.examples):
            layers = [keras.Input((3, 2)), keras_ortho.ScoRNN(4)]
            test.globs["model"] = keras.Sequential(layers)
        report = []
        runner.run(test, out=report.append)
        assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("name", ["ScoRNN", "ENRNNCell", "GORU"])
def test_help_shows_every_argument(name):
    cls = getattr(keras_ortho, name)
    shown = re.sub(r".\x08", "", pydoc.render_doc(cls))  # What is bold is typed twice.
    for argument in inspect.signature(cls).parameters:
        assert re.search(rf"\b{argument}[:=,)]", shown)


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_documented(name):
    module = load(name)
    assert module.__doc__
    for public in vars(module).values():
        own = getattr(public, "__module__", None) == name
        if own and (inspect.isclass(public) or inspect.isfunction(public)):
            assert public.__doc__ or public.__name__.startswith("_"), public
