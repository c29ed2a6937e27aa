"""Examples in docstrings show what comes out."""

import doctest
import importlib
import pkgutil
import re

import keras
import numpy as np
import pytest

import experiments
import keras_ortho
from keras_ortho import audio

# What takes longest.
SLOW = ("audio.stft", "cells.enrnn", "diagnostics.log", "diagnostics.plots", "adding")
MODULES = [
    pytest.param(name, marks=[pytest.mark.slow] * name.endswith(SLOW))
    for each in (keras_ortho, keras_ortho.data_prep, experiments)
    for name in (
        each.__name__,
        *(m.name for m in pkgutil.walk_packages(each.__path__, f"{each.__name__}.")),
    )
]
# What the tensors and shapes of a backend print about themselves.
WRAPPINGS = re.compile(
    r"<tf\.Tensor:.*?numpy=|\b(?:TensorShape|torch\.Size|[Aa]rray|tensor)\b"
    r"|(?:dtype|grad_fn)=[\w.<>]+"
)
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
TOKEN = re.compile(rf"(?P<word>[^\W\d]\w*)|(?P<number>{NUMBER})")


class ShownOutput(doctest.OutputChecker):
    """Compares words and numbers with those that a docstring shows, if it shows any.

    Brackets, dtypes and the number in a layer's default name depend on the backend and
    on what ran before. Numbers are shown to two digits or more, thus 2 %; what would be
    0 in exact arithmetic is a few roundings of float32, thus 1e-5.
    """

    def check_output(self, want, got, optionflags):
        (words, numbers), (got_words, got_numbers) = self._parts(want), self._parts(got)
        return not want.strip() or (
            words == got_words
            and len(numbers) == len(got_numbers)
            and np.allclose(numbers, got_numbers, rtol=0.02, atol=1e-5)
        )

    @staticmethod
    def _parts(output):
        tokens = list(TOKEN.finditer(WRAPPINGS.sub("", output.replace("\n", " "))))
        words = [re.sub(r"_\d+$", "", t["word"]) for t in tokens if t["word"]]
        return words, [float(t["number"]) for t in tokens if t["number"]]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Some write a file.
    if name == "keras_ortho.backend.torch":
        pytest.importorskip("torch")
    module = importlib.import_module(name)
    names = {**vars(keras_ortho), **vars(audio), **vars(module)}
    names |= {"np": np, "keras": keras, "speech": np.sin(np.arange(1000) / 5)}
    runner = doctest.DocTestRunner(ShownOutput())
    for test in doctest.DocTestFinder().find(module, name, globs=names):
        if any("model" in example.source for example in test.examples):
            layers = [keras.Input((3, 2)), keras_ortho.ScoRNN(4)]
            test.globs["model"] = keras.Sequential(layers)
        report = []
        runner.run(test, out=report.append)
        assert runner.failures == 0, "".join(report)
