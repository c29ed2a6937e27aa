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
    x = random.normal(size=(2, 1, 4))
    state = random.normal(size=(2, layer.cell.state_size))
    value, found = weight_gradients(layer, keras.ops.sum, x, initial_state=state)
    assert np.isfinite(value)
    for name, gradient in found.items():
        assert np.isfinite(gradient).all(), name
    # Where the variable is the matrix, an optimizer keeps it unitary; a set that
    # measures the distance in a way of its own, and names no parts, has none.
    kind, any_set = type(layer.cell.parametrization), Parametrization
    own = kind.distance is not any_set.distance and kind.parts is any_set.parts
    if own or "unitary" in map(group_of, layer.trainable_variables):
        return
    for name, part in manifold_parts(layer).items():
        # Some tens of products of orthogonal matrices with six rows.
        error = np.abs(part.conj().T @ part - np.eye(len(part))).max()
        assert error < 1e-12, name
