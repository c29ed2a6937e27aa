"""A new architecture is two files, a line and a page: all else takes it from these."""

import functools
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.modules import ROOT, run_python

pytestmark = pytest.mark.slow
FOLDERS = ("keras_ortho", "data_prep", "experiments", "examples", "benchmarks")
FOLDERS += ("scripts", "tests", "docs", "results")
SKIPPED = shutil.ignore_patterns("__pycache__", "*.png", Path(__file__).name)
LINE = "from keras_ortho.cells.reflection import *\n"
FILES = {
    "keras_ortho/parametrizations/reflection.py": '''
import keras
from keras import ops

from keras_ortho.parametrizations.base import FreeVariable, Parametrization


@keras.saving.register_keras_serializable(package="keras_ortho")
class Reflection(Parametrization):
    """`W = I - 2 v v^T / v^T v`; without a normal `v` the identity."""

    def variables(self, size, initializer=None):
        return [FreeVariable("recurrent_normal", (size,), initializer or "ones")]

    def matrix(self, normal):
        square = ops.sum(normal * normal)
        planes = 2 * ops.outer(normal, normal) / ops.where(square > 0, square, 1)
        return ops.eye(normal.shape[0], dtype=normal.dtype) - planes
''',
    "keras_ortho/cells/reflection.py": """
import keras

from keras_ortho.cells.cell import RecurrentCell
from keras_ortho.cells.layer import RecurrentLayer
from keras_ortho.parametrizations.reflection import Reflection

__all__ = ["ReflectionRNN", "ReflectionRNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class ReflectionRNNCell(RecurrentCell):
    def __init__(self, units, **kwargs):
        super().__init__(units, Reflection(), **kwargs)


@keras.saving.register_keras_serializable(package="keras_ortho")
class ReflectionRNN(RecurrentLayer):
    cell_class = ReflectionRNNCell

    def __init__(self, units, **kwargs):
        super().__init__(units, **kwargs)
""",
    "docs/reflection.md": """
# ReflectionRNN

```python
import keras_ortho

layer = keras_ortho.ReflectionRNN(8)
```
""",
}
USE = """
import sys
import keras
from keras_ortho import ReflectionRNN, ReflectionRNNCell
from keras_ortho.diagnostics.matrices import manifold_parts
from keras_ortho.optimizers import group_of
from experiments.layers import LAYERS
sys.path.insert(0, "benchmarks")
import measuring

assert LAYERS["reflection"].title == "ReflectionRNN"
assert measuring.LAYERS["ReflectionRNN"] == "ReflectionRNN(n)"
first = ReflectionRNN(6, return_sequences=True, name="first")
second = keras.layers.RNN(ReflectionRNNCell(4), name="second")
model = keras.Sequential([keras.Input((5, 2)), first, second])
groups = {group_of(v): v.name for v in first.trainable_variables}
assert groups == {"recurrent": "recurrent_normal", "others": "bias"}
assert list(manifold_parts(model)) == ["first", "second"]
model.save("model.keras")
"""
LOADED = """
import keras
import keras_ortho
assert "ReflectionRNN" in dir(keras_ortho)
print(type(keras.saving.load_model("model.keras").layers[1].cell).__module__)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs Python in a copy of the checkout with the new architecture."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=SKIPPED)
    for name in ("pyproject.toml", "setup.cfg", "README.md", "RESULTS.md"):
        shutil.copy(ROOT / name, folder / name)
    for name, text in FILES.items():
        (folder / name).write_text(text.lstrip())
    table = folder / "keras_ortho/cells/__init__.py"
    before = "from keras_ortho.cells.ortho import *\n"
    table.write_text(table.read_text().replace(before, LINE + before))
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return functools.partial(run_python, cwd=folder, env=environment)


@pytest.mark.backends
def test_is_a_layer_of_the_package(run):
    run("-c", USE)
    assert "keras_ortho.cells.reflection" in run("-c", LOADED)


def test_trains_in_an_example(run, tmp_path):
    arguments = ["--smoke", "--model", "reflection", "--out", tmp_path / "out"]
    assert "ReflectionRNN" in run("examples/adding.py", *arguments)


@pytest.mark.parametrize(
    ("chosen", "files", "names"),
    [
        (
            "not slow",
            ("cells/test_standards.py", "test_docs.py"),
            "saves_and_loads config_holds_every_argument variables_of_any_size "
            "every_layer_has_a_page_with_an_example",
        ),
        pytest.param(
            "slow or not slow",
            ("cells", "diagnostics", "experiments", "test_two_backends.py"),
            "trains is_built_within_fit layer_equals_its_cell arrangements "
            "kernel_is_made_once_and_outside_of_the_loop layer_stock_and_loop "
            "observed_output_is_the_layers equal_results",
            marks=pytest.mark.slowest,
        ),
    ],
)
def test_the_shared_tests_take_it(run, chosen, files, names):
    output = run(
        *("-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-m", chosen),
        *("-k", "Reflection or reflection", *(f"tests/{file}" for file in files)),
    )
    passed = re.findall(r"^PASSED .*::test_(\w+)", output, re.MULTILINE)
    assert {*passed} >= {*names.split()}
