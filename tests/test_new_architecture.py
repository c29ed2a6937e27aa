"""A new architecture is two files, a line and a page: all else takes it from these."""

import filecmp
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.modules import run_python

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("keras_ortho", "data_prep", "experiments", "examples", "benchmarks")
FOLDERS += ("scripts", "tests", "docs", "results")
SKIPPED = shutil.ignore_patterns("__pycache__", "*.png", Path(__file__).name)

PARAMETRIZATION = '''
"""The orthogonal Hessenberg matrices, products of rotations of neighbouring units."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.free_initializers import UniformPhases


@keras.saving.register_keras_serializable(package="keras_ortho")
class Hessenberg(Parametrization):
    """The rotations `W = G_1 G_2 ... G_(n - 1)`, `G_k` of the units `k` and `k + 1`."""

    takes = "phases"

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the angles."""
        make = initializer or UniformPhases()
        return [FreeVariable("recurrent_angles", (size - 1,), make)]

    def matrix(self, angles: Tensor) -> Tensor:
        """Makes the matrix."""
        size = angles.shape[0] + 1
        matrix = ops.eye(size, dtype=angles.dtype)
        for k in range(size - 1):
            plane, turn = np.zeros((2, size, size))
            plane[k, k] = plane[k + 1, k + 1] = turn[k + 1, k] = 1
            turn[k, k + 1] = -1
            rotation = ops.eye(size, dtype=angles.dtype)
            rotation += (ops.cos(angles[k]) - 1) * ops.cast(plane, angles.dtype)
            rotation += ops.sin(angles[k]) * ops.cast(turn, angles.dtype)
            matrix = ops.matmul(matrix, rotation)
        return matrix

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the angles, the first of which alone makes the first column."""
        angles, rest = self._read(matrix)
        if np.linalg.norm(rest) > 1e-3:
            raise ValueError(f"`matrix` must be of the set. Received: {matrix}")
        return (angles,)

    def distance(self, matrix: np.ndarray) -> float:
        """Measures how far a matrix is from that with the angles that it has."""
        return float(np.linalg.norm(self._read(matrix)[1]))

    def parts(self, *values: Tensor) -> dict[str, Tensor]:
        """Gives the whole matrix, which is orthogonal."""
        return {"": self.matrix(*values)}

    def _read(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rest, angles = np.array(matrix, "float64"), np.zeros(len(matrix) - 1)
        for k in range(len(angles)):
            angles[k] = np.arctan2(rest[k + 1, k], rest[k, k])
            cosine, sine = np.cos(angles[k]), np.sin(angles[k])
            rest[k : k + 2] = [[cosine, sine], [-sine, cosine]] @ rest[k : k + 2]
        return angles, rest - np.eye(len(rest))
'''
CELL = '''
"""HessenbergRNN: rotations of neighbouring units."""

from typing import Unpack

import keras

from keras_ortho.cells.cell import CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.hessenberg import Hessenberg

__all__ = ["HessenbergRNN", "HessenbergRNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class HessenbergRNNCell(RecurrentCell):
    """Cell of the HessenbergRNN."""

    def __init__(self, units: int, **kwargs: Unpack[CellArguments]) -> None:
        kwargs.setdefault("recurrent_initializer", "uniform_phases")
        super().__init__(units, Hessenberg(), **kwargs)


@keras.saving.register_keras_serializable(package="keras_ortho")
class HessenbergRNN(RecurrentLayer):
    """The HessenbergRNN, `HessenbergRNNCell` over a sequence."""

    cell_class = HessenbergRNNCell

    def __init__(self, units: int, **kwargs: Unpack[LayerArguments]) -> None:
        super().__init__(units, **kwargs)
'''
PAGE = """# HessenbergRNN

```python
import keras_ortho

layer = keras_ortho.HessenbergRNN(8)
```
"""
LINE = "from keras_ortho.cells.hessenberg import *\n"
FILES = {
    "keras_ortho/parametrizations/hessenberg.py": PARAMETRIZATION.lstrip(),
    "keras_ortho/cells/hessenberg.py": CELL.lstrip(),
    "docs/hessenberg.md": PAGE,
}
TABLE = "keras_ortho/cells/__init__.py"

LOADED = """
import keras
import keras_ortho
for name in ("HessenbergRNN", "HessenbergRNNCell"):
    assert name in dir(keras_ortho) and name in keras_ortho.__all__
model = keras.saving.load_model({path!r})
print(type(model.layers[0]).__module__, type(model.layers[1].cell).__module__)
"""
USE = """
import keras, numpy as np, sys
from keras_ortho import HessenbergRNN, HessenbergRNNCell, cells
from keras_ortho.diagnostics.matrices import manifold_parts
from keras_ortho.optimizers import group_of
from experiments.layers import LAYERS, parts_of
from experiments.options import read_task
sys.path.insert(0, "benchmarks")
import architectures

assert HessenbergRNN is cells.HessenbergRNN
assert LAYERS["hessenberg"].title == "HessenbergRNN"
assert parts_of("hessenberg") == ("recurrent",)
options = ["--model", "hessenberg", "--recurrent-rate", "sgd 1", "--out", "out"]
assert read_task("adding", "", options).model == "hessenberg"
assert architectures.LAYERS["HessenbergRNN"] == "HessenbergRNN(n)"
model = keras.Sequential([
    keras.Input((5, 2)),
    HessenbergRNN(6, return_sequences=True, name="first"),
    keras.layers.RNN(HessenbergRNNCell(4), name="second"),
])
groups = {{group_of(v): v.name for v in model.layers[0].trainable_variables}}
assert groups == {{"recurrent": "recurrent_angles", "others": "bias"}}
parts = manifold_parts(model)
assert list(parts) == ["first", "second"]
# Five products in float32.
assert all(np.allclose(w.T @ w, np.eye(len(w)), atol=1e-5) for w in parts.values())
model.compile("adam", "mse")
model.save({path!r})
"""


def run(folder, *arguments):
    """The output of a Python process where the new architecture is."""
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return run_python(*arguments, cwd=folder, env=environment)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the checkout with the new architecture."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=SKIPPED)
    for name in ("pyproject.toml", "README.md", "RESULTS.md"):
        shutil.copy(ROOT / name, folder / name)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    table = folder / TABLE
    before = "from keras_ortho.cells.ortho import *\n"
    table.write_text(table.read_text().replace(before, LINE + before))
    return folder


@pytest.mark.slow
def test_nothing_else_names_it(checkout):
    changed = {
        str(path.relative_to(checkout))
        for path in checkout.rglob("*")
        if path.is_file() and path.suffix in (".py", ".md")
        if not (old := ROOT / path.relative_to(checkout)).exists()
        or not filecmp.cmp(path, old, shallow=False)
    }
    assert changed == {*FILES, TABLE}
    assert sum("hessenberg" in text for text in (checkout / TABLE).open()) == 1


@pytest.mark.slow
@pytest.mark.backends
def test_is_a_layer_of_the_package(checkout, tmp_path):
    path = str(tmp_path / "model.keras")
    run(checkout, "-c", USE.format(path=path))
    modules = run(checkout, "-c", LOADED.format(path=path)).split()
    assert modules == 2 * ["keras_ortho.cells.hessenberg"]


@pytest.mark.slow
def test_trains_in_an_example(checkout, tmp_path):
    arguments = ["--smoke", "--model", "hessenberg", "--out", tmp_path / "out"]
    assert "HessenbergRNN" in run(checkout, "examples/adding.py", *arguments)


def passed_tests(checkout, chosen, *files):
    """The names of the new architecture's tests in files of `tests`."""
    output = run(
        checkout,
        *("-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-m", chosen),
        *("-k", "Hessenberg or hessenberg or every_page"),
        *(f"tests/{file}" for file in files),
    )
    assert "failed" not in output
    return set(re.findall(r"^PASSED .*::(\w+)", output, re.MULTILINE))


@pytest.mark.slow
def test_the_shared_tests_take_it(checkout):
    files = ("cells/test_standards.py", "test_docs.py")
    assert passed_tests(checkout, "not slow", *files) >= {
        "test_layer_equals_its_cell",
        "test_saves_and_loads",
        "test_config_holds_every_argument",
        "test_is_registered_under_the_package_name",
        "test_every_layer_has_a_page_with_an_example",
        "test_every_page_is_linked",
    }


@pytest.mark.slowest
def test_all_tests_that_architectures_share_take_it(checkout):
    files = ("cells", "diagnostics", "experiments", "test_two_backends.py")
    assert passed_tests(checkout, "slow or not slow", *files) >= {
        "test_trains",
        "test_is_built_within_fit",
        "test_kernel_is_made_once_and_outside_of_the_loop",
        "test_variables_of_any_size",
        "test_layer_stock_and_loop",
        "test_arrangements",
        "test_observed_output_is_the_layers",
        "test_equal_results",
    }
