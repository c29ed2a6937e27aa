import math

import keras
import numpy as np
import pytest

from keras_ortho import BNPDense, SVDDense
from keras_ortho.networks import MLP_KINDS, bnp_network, mlp, norm_preserving_center


@pytest.mark.parametrize("kind", MLP_KINDS)
@pytest.mark.parametrize("layers", [1, 4, 5])
def test_mlp(kind, layers):
    """Against the layers, or blocks of two layers each, by hand."""
    model = mlp(kind, layers, 6, input_shape=(3,), num_classes=2)
    x = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    kinds = (keras.layers.Dense, SVDDense)
    dense = [layer for layer in model.layers if isinstance(layer, kinds)]
    assert len(dense) == layers + 2

    def kernel(layer):
        made = layer.kernel_matrix() if isinstance(layer, SVDDense) else layer.kernel
        return keras.ops.convert_to_numpy(made)

    def leaky(z):
        return np.where(z > 0, z, 0.1 * z)

    first, *middle, last = dense
    h = leaky(x @ kernel(first))
    while middle:
        y = h @ kernel(middle.pop(0))
        if kind.endswith("mlp"):
            h = leaky(y)
            continue
        if middle:
            y = leaky(y) @ kernel(middle.pop(0))
        h = leaky(h + y)
    expected = h @ kernel(last)
    # Products of 8 matrices at most, of 6 terms.
    atol = 8 * 6 * np.finfo("float32").eps * max(np.abs(expected).max(), 1)
    np.testing.assert_allclose(model(x), expected, atol=10 * atol)


@pytest.mark.slow
def test_a_hundred_layers_of_the_svdmlp_pass_on_the_input():
    model = mlp("svdmlp", 100, 12, input_shape=(12,))
    x = np.random.default_rng(0).normal(size=(20, 12))
    assert 1e-3 < np.abs(keras.ops.convert_to_numpy(model(x))).max() < 1e3


def test_norm_preserving_center():
    for slope in (0.0, 0.1, 1.0):  # Of 1 and -1.
        out = norm_preserving_center(slope) * np.array([1, -slope])
        assert np.mean(out**2) == pytest.approx(1)


MLP = 785 * 32 + 40 * 33 * 32 + 33 * 10
BNP = (3072 + 1) * 100 + 2 * (100 + 1) * 100 + (100 + 1) * 10
# Of three reflectors on each side of three kernels, of 20, then of 8 inputs.
SVD = (20 + 19 + 18) + 5 * (8 + 7 + 6) + 3 * 8 + 3 * 8 + 9 * 10


@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        (lambda: mlp("svdmlp", 2, 8, input_shape=(4, 5), reflections=3), SVD),
        (lambda: mlp("mlp", 40, 32), MLP),
        (lambda: mlp("resnet", 40, 32), MLP),
        (lambda: bnp_network("plain"), BNP),
        (lambda: bnp_network("bnp"), BNP),
        (lambda: bnp_network("batch-norm"), BNP + 2 * (3072 + 3 * 100)),
    ],
)
def test_parameters(model, parameters):
    shapes = [variable.shape for variable in model().trainable_variables]
    assert sum(map(math.prod, shapes)) == parameters


def test_the_layers_of_the_bnp_networks():
    """BNP is in every layer, which starts smaller; normalization is before each."""
    kinds = [type(layer).__name__ for layer in bnp_network("batch-norm").layers]
    assert kinds == ["InputLayer", "Flatten"] + ["BatchNormalization", "Dense"] * 4
    layers = [x for x in bnp_network("bnp").layers if isinstance(x, BNPDense)]
    assert len(layers) == 4
    assert all(layer.epsilon == 0.5 for layer in layers)
    # Glorot's uniform initializer times 0.75.
    kernel = keras.ops.convert_to_numpy(layers[0].kernel)
    limit = 0.75 * np.sqrt(6 / (3072 + 100))
    assert 0.999 * limit < np.abs(kernel).max() <= limit * (1 + 1e-6)
