"""What importing the package loads, and what can be loaded after it."""

import os

import keras
import pytest

import keras_ortho
from keras_ortho.losses import ValidFrameMSE
from keras_ortho.metrics import ErrorRate
from keras_ortho.optimizers import RMSpropTF1
from tests.modules import run_python

LOAD = """
model = keras.saving.load_model({path!r})
metric, = model.get_compile_config()["metrics"]
metric = keras.saving.deserialize_keras_object(metric)
for part in (*model.layers, model.optimizer, model.loss, metric):
    print(type(part).__name__)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> str:
    """The file of a model of many of the package's classes."""
    recurrent = keras_ortho.ScoRNN(4, return_sequences=True)
    layers = [recurrent, keras_ortho.SVDDense(4, reflections=2), keras_ortho.ModReLU()]
    model = keras.Sequential([keras.Input((3, 2)), *layers])
    model.compile(RMSpropTF1(), ValidFrameMSE(), metrics=[ErrorRate()])
    path = str(tmp_path_factory.mktemp("saved") / "model.keras")
    model.save(path)
    return path


@pytest.mark.backends
def test_models_are_loaded_after_the_import_alone(saved):
    code = "import keras_ortho, keras" + LOAD.format(path=saved)
    classes = ["ScoRNN", "SVDDense", "ModReLU", "RMSpropTF1", "ValidFrameMSE"]
    assert run_python("-c", code).split() == [*classes, "ErrorRate"]


NAMED = """
import sys
import keras_ortho
print(*{name.split(".")[1] for name in sys.modules if name.startswith("keras_ortho.")})
print(keras_ortho.tasks.__name__)
"""


def test_what_serves_speech_and_training_is_imported_when_named():
    loaded, task = run_python("-c", NAMED).splitlines()
    late = {"audio", "diagnostics", "executors", "metrics", "tasks", "training"}
    assert not late & {*loaded.split()}
    assert task == "keras_ortho.tasks"


WITHOUT = """
import sys
sys.modules["tensorflow"] = None
import keras
import keras_ortho
model = keras.Sequential([keras.Input((3, 2)), keras_ortho.ScoRNN(4)])
model.compile("sgd", "mse")
x = keras.ops.ones((2, 3, 2))
model.fit(x, keras.ops.ones((2, 4)), verbose=0)
print(model.predict(x, verbose=0).shape)
"""


def test_jax_needs_no_tensorflow():
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    assert run_python("-c", WITHOUT, env=environment) == "(2, 4)\n"


def test_every_public_name_is_there():
    assert dir(keras_ortho) == sorted(keras_ortho.__all__)
    for name in keras_ortho.__all__:
        assert getattr(keras_ortho, name) is not None


def test_names_that_there_are_not():
    with pytest.raises(AttributeError, match="'keras_ortho' has no attribute 'ScoRN'"):
        _ = keras_ortho.ScoRN
    with pytest.raises(ImportError, match="cannot import name 'ScoRN'"):
        exec("from keras_ortho import ScoRN")


MAPPED = """
import functools
import sys
import numpy as np
import tensorflow as tf
from keras_ortho.tasks.timit import order_in_buckets

tf.get_logger().handlers[0].setStream(sys.stdout)
order = functools.partial(order_in_buckets, np.array([3, 1]), batch_size=2, seed=0)
print([sorted(x.numpy().tolist()) for x in tf.data.Dataset.range(1).map(order)])
"""


@pytest.mark.slow
def test_autograph_does_not_warn_of_an_optional_module():
    """AutoGraph warns once for a function, so in a process of its own."""
    assert run_python("-c", MAPPED) == "[[0, 1]]\n"
