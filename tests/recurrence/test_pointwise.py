"""The derivative of complex modReLU at zero; other points are in `test_sequence`."""

import numpy as np
import pytest
from keras import ops

from keras_ortho.recurrence import find
from tests.gradients import gradients

pytestmark = pytest.mark.backends


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("form", ["modrelu", "smoothed_modrelu"])
def test_complex_modrelu_has_the_gradient_of_automatic_differentiation(form, dtype):
    """Also where the modulus is zero, or next to it."""
    pointwise = find(form, True)
    random = np.random.default_rng(0)
    z, upstream = random.normal(size=(2, 8, 12))
    z *= np.array([1, 1e-2, 1e-4, 1e-6, 1e-12, 1e-20, 0, 1])[:, None]
    b = np.array([0.5, 0.1, 0.0, -1e-5, -0.1, -1.0])
    z, b, upstream = (x.astype(dtype) for x in (z, b, upstream))
    expected = gradients(
        lambda z, b: ops.sum(ops.cast(pointwise.apply(z, b)[0], "float64") * upstream),
        z,
        b,
    )
    z, b, upstream = map(ops.convert_to_tensor, (z, b, upstream))
    to_z, terms = pointwise.pull(pointwise.apply(z, b), b, upstream)
    # A few roundings of a sum whose terms are as large as the largest entry of a row.
    atol = 40 * np.finfo(dtype).eps
    largest = np.abs(expected[0]).max(axis=1, keepdims=True).astype("float64")
    difference = np.abs(np.asarray(to_z, "float64") - expected[0])
    assert (difference <= atol * largest).all()
    total = np.sum(np.asarray(terms, "float64"), axis=0)
    np.testing.assert_allclose(total, expected[1], atol=atol)
