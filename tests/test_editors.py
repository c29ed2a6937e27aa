"""What editors and type checkers, which run none of it, know of the package."""

import importlib
import inspect
import pkgutil
from pathlib import Path

import jedi
import pytest
from mypy import api as mypy

import keras_ortho

ROOT = Path(__file__).resolve().parent.parent
MODULES = [
    "keras_ortho",
    *(m.name for m in pkgutil.iter_modules(keras_ortho.__path__, "keras_ortho.")),
]
# With what is said of each call.
WRONG = {
    'keras_ortho.ScoRNN("eight")': 'incompatible type "str"; expected "int"',
    "keras_ortho.ScoRNN(8, negative_onse=4)": '"negative_onse" for "ScoRNN"',
    "keras_ortho.ENRNN(8)": 'Missing positional argument "short_term_units"',
    'keras_ortho.ScoRNNCell("eight")': 'incompatible type "str"; expected "int"',
    "keras_ortho.ScoRNNCell(8, unroll=True)": '"unroll" for "ScoRNNCell"',
    "keras_ortho.ENRNN(8, 4, units=12)": '"units" for "ENRNN"',
}
RIGHT = [
    "keras_ortho.ScoRNN(8, 4, activation=keras.ops.tanh, unroll=True, name='a')",
    "keras_ortho.ENRNN(8, 4, dtype='float64').recurrent_matrix()",
    "keras.layers.RNN(keras_ortho.ScoRNNCell(8, negative_ones=0.5, seed=1))",
]


def arguments(module: str) -> dict[str, set[str]]:
    """The arguments of each public class and function of a module, by its name."""
    public = importlib.import_module(module)
    values = {
        name: getattr(public, name)
        for name in getattr(public, "__all__", dir(public))
        if not name.startswith("_")
    }
    return {
        name: {
            parameter.name
            for parameter in inspect.signature(value).parameters.values()
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        }
        for name, value in values.items()
        if is_called(value) and value.__module__.startswith(module)
    }


def is_called(value: object) -> bool:
    """Whether users call it. They make none of the tuples that functions return."""
    if inspect.isclass(value):
        return not issubclass(value, tuple | Exception)
    return inspect.isfunction(value)


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_jedi_completes_every_argument(module):
    expected = arguments(module)
    calls = [f"{module}.{name}(" for name in expected]
    script = jedi.Script(
        "\n".join([f"import {module}", *(f"{call})" for call in calls)]),
        project=jedi.Project(ROOT),
        environment=jedi.api.environment.InterpreterEnvironment(),
    )
    for line, (call, names) in enumerate(zip(calls, expected.values(), strict=True), 2):
        completions = script.complete(line, len(call))
        offered = {completion.name_with_symbols for completion in completions}
        assert {f"{name}=" for name in names} <= offered, call


@pytest.mark.slow
def test_a_type_checker_reports_wrong_arguments(tmp_path, monkeypatch):
    calls = tmp_path / "calls.py"
    calls.write_text("\n".join(["import keras, keras_ortho", *WRONG, *RIGHT]))
    monkeypatch.chdir(ROOT)  # Where the settings are, and what `make lint` remembers.
    output, errors, _ = mypy.run([str(calls)])
    assert not errors
    reports = [line for line in output.splitlines() if ": error: " in line]
    assert len(reports) == len(WRONG), output
    for line, (report, said) in enumerate(zip(reports, WRONG.values(), strict=True), 2):
        assert f"calls.py:{line}: " in report
        assert said in report
