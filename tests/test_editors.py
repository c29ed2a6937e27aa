"""What editors and type checkers, which run none of it, know of the package."""

import inspect

import jedi
import pytest
from mypy import api as mypy

import keras_ortho
from keras_ortho.cells import CLASSES
from tests.modules import ROOT

pytestmark = pytest.mark.slow
# With what is said of each call.
CALLS = {
    'keras_ortho.ScoRNN("eight")': 'incompatible type "str"; expected "int"',
    "keras_ortho.ScoRNN(8, negative_onse=4)": '"negative_onse" for "ScoRNN"',
    "keras_ortho.ENRNN(8)": 'Missing positional argument "short_term_units"',
    "keras_ortho.ScoRNNCell(8, unroll=True)": '"unroll" for "ScoRNNCell"',
    "keras_ortho.ScoRNN(8, 4, activation=keras.ops.tanh, unroll=True, name='a')": "",
    "keras_ortho.ENRNN(8, 4, dtype='float64').recurrent_matrix()": "",
    "keras.layers.RNN(keras_ortho.ScoRNNCell(8, negative_ones=0.5, seed=1))": "",
}


def test_jedi_completes_the_arguments_of_each_class():
    interpreter = jedi.api.environment.InterpreterEnvironment()
    for name in CLASSES:
        call = f"import keras_ortho; keras_ortho.{name}("
        script = jedi.Script(call, project=jedi.Project(ROOT), environment=interpreter)
        offered = {completion.name_with_symbols for completion in script.complete()}
        parameters = inspect.signature(getattr(keras_ortho, name)).parameters.values()
        own = [p.name for p in parameters if "VAR" not in p.kind.name]
        assert {f"{argument}=" for argument in own} <= offered, call


def test_a_type_checker_reports_wrong_arguments(tmp_path, monkeypatch):
    calls = tmp_path / "calls.py"
    calls.write_text("\n".join(["import keras, keras_ortho", *CALLS]))
    monkeypatch.chdir(ROOT)  # Where the settings are, and what `make lint` remembers.
    output, errors, _ = mypy.run([str(calls)])
    assert not errors
    for line, said in enumerate(CALLS.values(), 2):
        reports = [r for r in output.splitlines() if f"calls.py:{line}: error: " in r]
        assert [said in report for report in reports] == [True] * bool(said), output
