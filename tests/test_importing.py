"""What importing the package loads, and what can be loaded after it."""

import sys

import keras
import pytest

import keras_ortho
from keras_ortho.losses import ValidFrameMSE
from keras_ortho.optimizers import RMSpropTF1
from tests.modules import run_python

# Each ends with a `keras` to load the model with.
SLOW_ORDERS = {
    "module that others need": "import keras_ortho.activations, keras",
    "Keras first": "import keras, keras_ortho",
    "class": "from keras_ortho import ScoRNN; import keras",
}
SLOWEST_ORDERS = {
    "Keras second": "import keras_ortho, keras",
    "module of Keras": "import keras_ortho, keras.saving",
    "TensorFlow second": "import keras_ortho, tensorflow, keras",
    "TensorFlow first": "import tensorflow, keras_ortho, keras",
    "module without Keras": "import keras_ortho.audio, keras",
    "class of a module": "from keras_ortho.cells.scornn import ScoRNN; import keras",
}
LOAD = """
model = keras.saving.load_model({path!r})
for part in (*model.layers, model.optimizer, model.loss):
    print(type(part).__name__)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> str:
    """The file of a model of many of the package's classes."""
    recurrent = keras_ortho.ScoRNN(4, return_sequences=True)
    layers = [recurrent, keras_ortho.SVDDense(4, reflections=2), keras_ortho.ModReLU()]
    model = keras.Sequential([keras.Input((3, 2)), *layers])
    model.compile(RMSpropTF1(), ValidFrameMSE())
    path = str(tmp_path_factory.mktemp("saved") / "model.keras")
    model.save(path)
    return path


@pytest.mark.backends
@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(code, id=order, marks=marks)
        for orders, marks in (
            (SLOW_ORDERS, pytest.mark.slow),
            (SLOWEST_ORDERS, pytest.mark.slowest),
        )
        for order, code in orders.items()
    ],
)
def test_model_is_loaded_after_imports_in_any_order(saved, statement):
    classes = run_python("-c", statement + LOAD.format(path=saved)).split()
    assert classes == ["ScoRNN", "SVDDense", "ModReLU", "RMSpropTF1", "ValidFrameMSE"]


def test_import_alone_loads_next_to_nothing():
    code = "import sys; before = set(sys.modules); import keras_ortho, json\n"
    code += "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    loaded = set(run_python("-c", code).split())
    assert loaded - set(sys.stdlib_module_names) == {"keras_ortho"}


def test_public_names_are_listed_before_they_are_loaded():
    code = "import keras_ortho; print(*dir(keras_ortho))"
    listed = run_python("-c", code).split()
    assert {*keras_ortho.__all__, "__version__", "__doc__"} <= {*listed}


def test_names_that_there_are_not():
    with pytest.raises(AttributeError, match="'keras_ortho' has no attribute 'ScoRN'"):
        _ = keras_ortho.ScoRN
    with pytest.raises(ImportError, match="cannot import name 'ScoRN'"):
        exec("from keras_ortho import ScoRN")


def test_error_of_keras_is_its_own(tmp_path):
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "__init__.py").write_text("raise ImportError('broken')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    code += "import keras_ortho\ntry: import keras\nexcept ImportError as e: print(e)"
    assert run_python("-c", code) == "broken\n"


MAPPED = """
import functools
import sys
import numpy as np
import tensorflow as tf
from keras_ortho.tasks.buckets import order_in_buckets

tf.get_logger().handlers[0].setStream(sys.stdout)
order = functools.partial(order_in_buckets, np.array([3, 1]), batch_size=2, seed=0)
print([sorted(x.numpy().tolist()) for x in tf.data.Dataset.range(1).map(order)])
"""


@pytest.mark.slow
def test_autograph_does_not_warn_of_an_optional_module():
    """AutoGraph warns once for a function, so in a process of its own."""
    assert run_python("-c", MAPPED) == "[[0, 1]]\n"
