"""What every dense layer with a kernel made of variables does."""

import functools

import keras
import numpy as np
import pytest

from keras_ortho import GORU, BNPDense, OrthoDense, ScoRNN, SVDDense
from keras_ortho.layers import TrainedInitialState
from keras_ortho.parametrizations import Householder

pytestmark = pytest.mark.backends

MAKERS = {
    "bnp": BNPDense,
    "ortho": functools.partial(OrthoDense, parametrization=Householder()),
    "svd": SVDDense,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_inputs_of_any_dtype(make):
    """As `Dense` takes them, and where a wrapper has cast nothing."""
    x = np.random.default_rng(0).integers(0, 2, (2, 3, 4))
    layer = make(3, dtype="mixed_float16")
    expected = layer(x.astype("float16"))
    for dtype in ("bool", "int32", "int64", "float32", "float64"):
        found = layer(x.astype(dtype))
        assert keras.backend.standardize_dtype(found.dtype) == "float16"
        np.testing.assert_array_equal(found, expected)
    found = keras.layers.TimeDistributed(layer, dtype="float32")(x.astype("float32"))
    assert keras.backend.standardize_dtype(found.dtype) == "float16"


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_complex_inputs_are_refused(make):
    """A cast would drop their imaginary part without a word."""
    layer = make(3)
    layer.build((None, 4))
    with pytest.raises(ValueError, match="`inputs` must be real: .*Received: inputs"):
        layer(np.ones((2, 4), "complex64"))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_subclass_keeps_the_arguments_that_it_passes_on(make):
    cls = getattr(make, "func", make)

    class Scaled(cls):
        def __init__(self, *arguments, scale=1.0, **kwargs):
            super().__init__(*arguments, **kwargs)
            self.scale = scale

        def get_config(self):
            return {**super().get_config(), "scale": self.scale}

    given = getattr(make, "keywords", {})
    layer = Scaled(3, scale=2.0, activation="relu", name="mine", **given)
    copy = Scaled.from_config(layer.get_config())
    assert copy.get_config() == layer.get_config()
    assert (copy.scale, copy.name) == (2.0, "mine")
    assert copy.activation is keras.activations.relu


@pytest.mark.skipif(
    keras.backend.backend() == "tensorflow", reason="Keras rematerializes no variables"
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.layers.TimeDistributed(MAKERS["ortho"](3)),
        lambda: ScoRNN(3),
        lambda: TrainedInitialState(GORU(4)),
    ],
    ids=["OrthoDense", "ScoRNN", "TrainedInitialState"],
)
def test_rematerialized(make):
    """JAX then traces `training`, as it does every argument."""
    x = np.random.default_rng(0).normal(size=(4, 5, 2))
    losses = []
    for mode in (None, "full"):
        keras.utils.set_random_seed(0)
        with keras.RematScope(mode):
            layer = make()
        model = keras.Sequential([keras.Input(x.shape[1:]), layer])
        model.compile(keras.optimizers.SGD(0.1), "mse")
        y = np.zeros((4, *model.output_shape[1:]))
        history = model.fit(x, y, epochs=2, shuffle=False, verbose=0)
        losses.append(history.history["loss"])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)
