"""What every dense layer with a kernel made of variables does."""

import functools

import keras
import numpy as np
import pytest

from keras_ortho import BNPDense, OrthoDense, SVDDense
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
