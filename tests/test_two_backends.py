"""The same file, the same outputs and the same training on TensorFlow and JAX."""

import os

import keras
import numpy as np
import pytest

from keras_ortho.optimizers import paper_optimizer
from tests.cells.architectures import ARCHITECTURES
from tests.modules import run_python

# A saved model and data in; outputs, and the weights after some steps, out.
OTHER = """
import keras
import numpy as np
import keras_ortho

assert keras.backend.backend() == "jax"
model = keras.saving.load_model("model.keras")
data = np.load("data.npz")
outputs = model.predict(data["x"], verbose=0)
model.fit(data["x"], data["y"], batch_size=4, epochs=3, shuffle=False, verbose=0)
np.savez("result.npz", outputs, *model.get_weights())
"""


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="runs JAX in another process"
)
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_equal_results(architecture, tmp_path):
    inputs = keras.Input((7, 4))
    x = architecture.layer(**architecture.arguments, return_sequences=True)(inputs)
    x = keras.layers.RNN(architecture.cell(**architecture.arguments))(x)
    model = keras.Model(inputs, keras.layers.Dense(2)(x))
    model.compile(paper_optimizer(), "mse")
    model.save(tmp_path / "model.keras")
    random = np.random.default_rng(0)
    x, y = (random.normal(size=s).astype("float32") for s in ((12, 7, 4), (12, 2)))
    np.savez(tmp_path / "data.npz", x=x, y=y)
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    run_python("-c", OTHER, cwd=tmp_path, env=environment)
    outputs, *weights = np.load(tmp_path / "result.npz").values()
    # Float32 rounding of some hundred operations on numbers of order one.
    atol = 100 * np.finfo("float32").eps
    np.testing.assert_allclose(outputs, model.predict(x, verbose=0), atol=atol)
    model.fit(x, y, batch_size=4, epochs=3, shuffle=False, verbose=0)
    for value, expected in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_allclose(value, expected, atol=atol)
