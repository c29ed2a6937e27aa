"""Free variables of any size: zeros, and what a run that diverges leaves behind."""

import keras
import numpy as np
import pytest

from keras_ortho.diagnostics.matrices import manifold_parts
from keras_ortho.optimizers import group_of
from keras_ortho.parametrizations import Parametrization
from tests.cells.architectures import ARCHITECTURES
from tests.gradients import weight_gradients

pytestmark = pytest.mark.backends


def has_orthogonal_parts(layer):
    """Whether its matrices, or parts of them, are orthogonal whatever the variables.

    Not where the variable is the matrix, which an optimizer keeps unitary, and not in
    a set that measures the distance in a way of its own and names no parts.
    """
    if "unitary" in map(group_of, layer.trainable_variables):
        return False
    kind, any_set = type(layer.cell.parametrization), Parametrization
    return kind.distance is any_set.distance or kind.parts is not any_set.parts


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e12])
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)
def test_variables_of_any_size(architecture, size):
    arguments = architecture.arguments | {"trainable_initial_state": False}
    layer = architecture.layer(**arguments, dtype="float64")
    layer.build((None, 1, 4))
    random = np.random.default_rng(0)
    for variable in layer.trainable_variables:
        if variable.name not in ("kernel", "bias"):
            variable.assign(size * random.normal(size=variable.shape))

    def loss(outputs):
        return keras.ops.sum(outputs)

    x = random.normal(size=(2, 1, 4))
    state = random.normal(size=(2, layer.cell.state_size))
    value, gradients = weight_gradients(layer, loss, x, initial_state=state)
    assert np.isfinite(value)
    for name, gradient in gradients.items():
        assert np.isfinite(gradient).all(), name

    if has_orthogonal_parts(layer):
        for name, part in manifold_parts(layer).items():
            product = part.conj().T @ part
            # Some tens of products of orthogonal matrices with six rows.
            np.testing.assert_allclose(
                product, np.eye(len(part)), atol=1e-12, err_msg=name
            )
