"""The same file, the same outputs and the same training on TensorFlow and JAX."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_ortho.optimizers import paper_optimizer
from tests.cells.architectures import ARCHITECTURES

# A saved model and data in; outputs, and the weights after some steps, out.
OTHER = """
import sys
import keras
import numpy as np
import keras_ortho

model_path, data_path, result_path = sys.argv[1:]
model = keras.saving.load_model(model_path)
data = np.load(data_path)
outputs = model.predict(data["x"], verbose=0)
model.fit(data["x"], data["y"], batch_size=4, epochs=3, shuffle=False, verbose=0)
np.savez(result_path, keras.backend.backend(), outputs, *model.get_weights())
"""


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="runs JAX in another process"
)
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_equal_results(architecture, tmp_path):
    keras.utils.set_random_seed(0)
    inputs = keras.Input((7, 4))
    x = architecture.layer(**architecture.arguments, return_sequences=True)(inputs)
    x = keras.layers.RNN(architecture.cell(**architecture.arguments))(x)
    model = keras.Model(inputs, keras.layers.Dense(2)(x))
    model.compile(paper_optimizer(), "mse")
    random = np.random.default_rng(0)
    data = {
        "x": random.normal(size=(12, 7, 4)).astype("float32"),
        "y": random.normal(size=(12, 2)).astype("float32"),
    }
    model.save(tmp_path / "model.keras")
    np.savez(tmp_path / "data.npz", **data)
    paths = [tmp_path / name for name in ("model.keras", "data.npz", "result.npz")]
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    subprocess.run(
        [sys.executable, "-c", OTHER, *map(str, paths)], check=True, env=environment
    )
    result = np.load(paths[2])
    backend, outputs, *weights = (result[name] for name in result.files)
    assert backend == "jax"
    # Float32 rounding of some hundred operations on numbers of order one.
    atol = 100 * np.finfo("float32").eps
    np.testing.assert_allclose(outputs, model.predict(data["x"], verbose=0), atol=atol)
    model.fit(data["x"], data["y"], batch_size=4, epochs=3, shuffle=False, verbose=0)
    for value, expected in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_allclose(value, expected, atol=atol)
