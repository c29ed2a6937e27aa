import functools

import keras
import numpy as np
import pytest

from keras_ortho import BNPDense, SVDDense
from keras_ortho.networks import (
    BNP_KINDS,
    MLP_KINDS,
    bnp_network,
    mlp,
    norm_preserving_center,
)


def trained(model):
    return sum(int(np.prod(v.shape)) for v in model.trainable_variables)


@pytest.mark.parametrize("layers", [1, 2, 3, 40])
@pytest.mark.parametrize("kind", ["mlp", "resnet"])
def test_parameters(kind, layers):
    width, inputs = 32, 784
    expected = (inputs + 1) * width + layers * (width + 1) * width + (width + 1) * 10
    assert trained(mlp(kind, layers, width)) == expected


@pytest.mark.parametrize(("reflections", "number"), [(None, 8), (3, 3)])
@pytest.mark.parametrize("kind", ["svdmlp", "svdresnet"])
def test_parameters_of_svd_kernels(kind, reflections, number):
    model = mlp(kind, 2, 8, input_shape=(4, 5), reflections=reflections)

    def entries(size):
        return sum(size - i for i in range(number))

    kernels = entries(20) + 2 * entries(8) + 3 * entries(8) + 3 * 8
    assert trained(model) == kernels + 3 * 8 + 9 * 10
    made = [layer for layer in model.layers if isinstance(layer, SVDDense)]
    assert len(made) == 3


@pytest.mark.parametrize("kind", ["resnet", "svdresnet"])
@pytest.mark.parametrize("layers", [1, 4, 5])
def test_residual_blocks(kind, layers):
    """Against the blocks, of two layers each, by hand."""
    model = mlp(kind, layers, 6, input_shape=(3,), num_classes=2)
    x = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    kinds = (keras.layers.Dense, SVDDense)
    dense = [layer for layer in model.layers if isinstance(layer, kinds)]
    assert len(dense) == layers + 2

    def kernel(layer):
        made = layer.kernel_matrix() if kind == "svdresnet" else layer.kernel
        return keras.ops.convert_to_numpy(made)

    def leaky(z):
        return np.where(z > 0, z, 0.1 * z)

    first, *middle, last = dense
    h = leaky(x @ kernel(first))
    for start in range(0, layers, 2):
        block = middle[start : start + 2]
        y = h @ kernel(block[0])
        if len(block) == 2:
            y = leaky(y) @ kernel(block[1])
        h = leaky(h + y)
    expected = h @ keras.ops.convert_to_numpy(last.kernel)
    # Products of 8 matrices at most, of 6 terms.
    scale = np.abs(expected).max()
    atol = 8 * 6 * np.finfo("float32").eps * max(scale, 1)
    np.testing.assert_allclose(model(x), expected, atol=10 * atol)


def logits_of(kind, **kwargs):
    model = mlp(kind, 100, 12, input_shape=(12,), **kwargs)
    x = np.random.default_rng(0).normal(size=(20, 12))
    return keras.ops.convert_to_numpy(model(x))


@pytest.mark.slow
def test_a_hundred_layers_of_the_svdmlp_pass_on_the_input():
    """But not without the center that makes up for leaky ReLU."""
    assert 1e-3 < np.abs(logits_of("svdmlp")).max() < 1e3
    assert np.abs(logits_of("svdmlp", spectral_center=1.0)).max() < 1e-9


def test_norm_preserving_center():
    z = np.random.default_rng(0).normal(size=1_000_000)
    for slope in (0.0, 0.1, 1.0):
        out = norm_preserving_center(slope) * np.where(z > 0, z, slope * z)
        assert np.mean(out**2) == pytest.approx(np.mean(z**2), rel=0.01)


NETWORKS = {
    **{kind: functools.partial(mlp, kind, 2, 8) for kind in MLP_KINDS},
    **{kind: functools.partial(bnp_network, kind, width=16) for kind in BNP_KINDS},
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind in ("mlp", "bnp") else pytest.mark.slow)
        for kind in NETWORKS
    ],
)
def test_learns(kind):
    """Which of two halves of the input is larger."""
    random = np.random.default_rng(0)
    x = random.uniform(size=(240, 8)).astype("float32")
    y = (x[:, :4].sum(axis=1) > x[:, 4:].sum(axis=1)).astype("int32")
    model = NETWORKS[kind](input_shape=(8,), num_classes=2)
    optimizer = (
        keras.optimizers.SGD(0.1) if kind == "bnp" else keras.optimizers.Adam(0.01)
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, metrics=["accuracy"])
    model.fit(x, y, batch_size=20, epochs=30 if kind in BNP_KINDS else 15, verbose=0)
    # 0.5 by chance.
    assert model.evaluate(x, y, return_dict=True, verbose=0)["accuracy"] > 0.8


PARAMETERS = (3072 + 1) * 100 + 2 * (100 + 1) * 100 + (100 + 1) * 10


@pytest.mark.parametrize("kind", BNP_KINDS)
def test_parameters_of_the_bnp_networks(kind):
    model = bnp_network(kind, input_shape=(32, 32, 3))
    more = 2 * (3072 + 3 * 100) if kind == "batch-norm" else 0
    assert trained(model) == PARAMETERS + more
    x = np.random.default_rng(0).uniform(size=(6, 32, 32, 3))
    assert model(x).shape == (6, 10)


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


@pytest.mark.parametrize(
    ("make", "received"),
    [
        (lambda: mlp("cnn", 2, 2), "kind='cnn'"),
        (lambda: mlp("mlp", 0, 2), "layers=0"),
        (lambda: mlp("mlp", 2, 1.5), "width=1.5"),
        (lambda: mlp("mlp", 2, 2, num_classes=0), "num_classes=0"),
        (lambda: mlp("mlp", 2, 2, negative_slope=-1.0), "negative_slope=-1.0"),
        (lambda: mlp("svdmlp", 2, 2, reflections=3), "3"),
        (lambda: mlp("mlp", 2, 2, input_shape=784), "input_shape=784"),
        (lambda: mlp("mlp", 2, 2, input_shape=(8, None)), "input_shape="),
        (lambda: norm_preserving_center(-1.0), "negative_slope=-1.0"),
        (lambda: bnp_network("bn"), "kind='bn'"),
        (lambda: bnp_network("bnp", input_shape=()), "input_shape="),
        (lambda: bnp_network("bnp", width=0), "width=0"),
        (lambda: bnp_network("bnp", hidden=0), "hidden=0"),
        (lambda: bnp_network("bnp", epsilon=0.0), "epsilon=0.0"),
    ],
)
def test_bad_arguments(make, received):
    with pytest.raises(ValueError, match=f"Received: .*{received}"):
        make()
