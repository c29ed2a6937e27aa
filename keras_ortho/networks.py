"""Feedforward networks of the papers: deep MLPs and the networks of BNP."""

import math
from collections.abc import Sequence

import keras

from keras_ortho import checks
from keras_ortho.activations import LeakyReLU
from keras_ortho.backend.types import Tensor
from keras_ortho.layers import BNPDense, SVDDense

MLP_KINDS = ("mlp", "resnet", "svdmlp", "svdresnet")
BNP_KINDS = ("plain", "batch-norm", "bnp")


def norm_preserving_center(negative_slope: float) -> float:
    """Returns `sqrt(2 / (1 + a^2))`, at which deep leaky-ReLU networks preserve norms.

    Of numbers as often negative as positive it keeps `(1 + a^2) / 2` of the square.
    """
    negative_slope = checks.check_number("negative_slope", negative_slope)
    return math.sqrt(2.0 / (1.0 + negative_slope**2))


def mlp(
    kind: str,
    layers: int,
    width: int,
    *,
    input_shape: Sequence[int] = (784,),
    num_classes: int = 10,
    negative_slope: float = 0.1,
    reflections: int | None = None,
    spectral_margin: float = 0.5,
    spectral_center: float | None = None,
) -> keras.Model:
    """Creates a deep multilayer perceptron: plain, residual, or with SVD kernels.

    The network has an input layer, `layers` layers from `width` to `width` units, all
    with leaky ReLU, and a dense layer of logits. In the residual kinds, two layers form
    a block, whose input is added before its last leaky ReLU. In the SVD kinds, all but
    the logits are `SVDDense` layers, whose singular values the paper leaves open.

    Args:
        kind: `"mlp"`, `"resnet"`, `"svdmlp"` or `"svdresnet"`.
        layers: Number of layers between input layer and logits; in the paper 30 to 100.
        width: Number of their units; in the paper 32 or 128.
        input_shape: Shape of an example, which is flattened. Default: `(784,)`.
        num_classes: Number of logits. Default: 10.
        negative_slope: Slope of leaky ReLU for negative inputs. Default: 0.1.
        reflections: As for `SVDDense`. Default: `None`, as many as units.
        spectral_margin: As for `SVDDense`. Default: 0.5.
        spectral_center: As for `SVDDense`. Default: `None`, 0.5 in the svdResNet,
            otherwise `norm_preserving_center(negative_slope)`.

    Returns:
        An uncompiled model.

    Raises:
        ValueError: If an argument is invalid.

    Example:
    >>> mlp("svdresnet", layers=4, width=8)(np.zeros((2, 784))).shape
    (2, 10)

    Reference:
    [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html)
    """
    checks.check_choice("kind", kind, MLP_KINDS)
    layers = checks.check_count("layers", layers)
    input_shape = checks.check_sizes("input_shape", input_shape)
    activate = keras.layers.Activation(LeakyReLU(negative_slope))
    residual = kind.endswith("resnet")
    if spectral_center is None:
        spectral_center = 0.5 if residual else norm_preserving_center(negative_slope)

    def dense(x: Tensor) -> Tensor:
        if kind.startswith("svd"):
            return SVDDense(width, reflections, spectral_margin, spectral_center)(x)
        return keras.layers.Dense(width)(x)

    inputs = keras.Input(input_shape)
    x = activate(dense(keras.layers.Flatten()(inputs)))
    for first in range(0, layers, 2 if residual else 1):
        y = dense(x)
        if residual:
            if first + 1 < layers:
                y = dense(activate(y))
            y = keras.layers.Add()([x, y])
        x = activate(y)
    return keras.Model(inputs, keras.layers.Dense(num_classes)(x), name=kind)


def bnp_network(
    kind: str,
    *,
    input_shape: Sequence[int] = (3072,),
    width: int = 100,
    hidden: int = 3,
    num_classes: int = 10,
    epsilon: float = 0.5,
) -> keras.Model:
    """Creates a network for comparing BNP with batch normalization.

    The network has hidden layers with ReLU and a layer of logits. `"batch-norm"`
    normalizes the inputs of every layer (equation 3.1), with momentum 0.99. `"bnp"` has
    `BNPDense` layers, which start from 0.75 times Glorot's uniform initializer.

    Args:
        kind: `"plain"`, `"batch-norm"` or `"bnp"`.
        input_shape: Shape of an example, which is flattened. Default: `(3072,)`.
        width: Number of units of a hidden layer. Default: 100.
        hidden: Number of hidden layers. Default: 3.
        num_classes: Number of logits. Default: 10.
        epsilon: Number that BNP adds to the variances, more than 0. Default: 0.5.

    Returns:
        An uncompiled model.

    Raises:
        ValueError: If an argument is invalid.

    Example:
    >>> bnp_network("bnp")(np.zeros((60, 3072))).shape
    (60, 10)

    Reference:
    [Helfrich, 2020](https://doi.org/10.13023/etd.2020.223), section 3.4
    """
    checks.check_choice("kind", kind, BNP_KINDS)
    hidden = checks.check_count("hidden", hidden)
    input_shape = checks.check_sizes("input_shape", input_shape)

    def dense(x: Tensor, units: int, activation: str | None) -> Tensor:
        if kind == "bnp":
            glorot = keras.initializers.VarianceScaling(0.75**2, "fan_avg", "uniform")
            return BNPDense(units, epsilon, activation, kernel_initializer=glorot)(x)
        if kind == "batch-norm":
            x = keras.layers.BatchNormalization(momentum=0.99)(x)
        return keras.layers.Dense(units, activation)(x)

    inputs = keras.Input(input_shape)
    x = keras.layers.Flatten()(inputs)
    for _ in range(hidden):
        x = dense(x, width, "relu")
    return keras.Model(inputs, dense(x, num_classes, None), name=kind)
