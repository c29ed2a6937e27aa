"""Examples in docstrings show what comes out, and every public name has a docstring."""

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
    for each in (keras_ortho, keras_ortho.data_prep, experiments)
    for name in (
        each.__name__,
        *(m.name for m in pkgutil.walk_packages(each.__path__, f"{each.__name__}.")),
    )
]
# What takes longest.
SLOW = {
    "keras_ortho.audio.stft",
    "keras_ortho.cells.enrnn",
    "keras_ortho.diagnostics.log",
    "keras_ortho.diagnostics.plots",
    "keras_ortho.tasks.adding",
}
assert set(MODULES) >= SLOW


def load(name):
    if name == "keras_ortho.backend.torch":
        pytest.importorskip("torch")
    return importlib.import_module(name)


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
        if not want.strip():
            return True
        (words, numbers), (got_words, got_numbers) = self._parts(want), self._parts(got)
        return (
            words == got_words
            and len(numbers) == len(got_numbers)
            and np.allclose(numbers, got_numbers, rtol=0.02, atol=1e-5)
        )

    @staticmethod
    def _parts(output):
        tokens = list(TOKEN.finditer(WRAPPINGS.sub("", output.replace("\n", " "))))
        words = [re.sub(r"_\d+$", "", t["word"]) for t in tokens if t["word"]]
        return words, [float(t["number"]) for t in tokens if t["number"]]


@pytest.mark.parametrize(
    ("want", "got", "same"),
    [
        ("[-0.2, 3]", "<tf.Tensor: shape=(2,), numpy=array([-.2, 3.])>", 1),
        ("[-0.2, 3]", "tensor([-0.2, 3.0], dtype=torch.float64, grad_fn=<Mul>)", 1),
        ("(32, 8)", "TensorShape([32, 8])", 1),
        ("{'rnn': 3e-7}", "{'rnn_1': Array(-2e-8, dtype=float32)}", 1),
        ("", "5", 1),
        ("0.50", "0.53", 0),
        ("[1, 2]", "[1, 2, 3]", 0),
        ("{'rnn': 1}", "{'lstm': 1}", 0),
        ("True", "False", 0),
    ],
)
def test_what_is_shown_is_what_comes_out(want, got, same):
    assert ShownOutput().check_output(want, got, 0) == bool(same)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
        for name in MODULES
    ],
)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # Some write a file.
    module = load(name)
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
