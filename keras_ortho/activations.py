"""Activations of orthogonal and unitary networks: modReLU, OPLU, and leaky ReLU."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho import initializers
from keras_ortho.backend import with_gradient
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_last_axis, check_number, check_real_tensor

# Keeps the modulus of the smoothed modReLU and its reciprocal finite at zero, as in the
# code of the uRNN's and the scuRNN's authors.
MODULUS_EPSILON = 1e-5


def get(identifier: Any) -> Callable[[Tensor], Tensor]:
    """Finds an activation: `"oplu"`, or one that Keras knows.

    Args:
        identifier: Its name, config or function; `None` is the identity.

    Returns:
        The function.

    Raises:
        ValueError: If there is none of that name.

    Example:
    >>> get("oplu") is oplu
    True
    """
    is_oplu = isinstance(identifier, str) and identifier == "oplu"
    return oplu if is_oplu else keras.activations.get(identifier)


def real_modrelu(inputs: Tensor, bias: Tensor) -> Tensor:
    """Computes real modReLU, as `modrelu`, without its gradient."""
    return ops.sign(inputs) * ops.relu(ops.abs(inputs) + bias)


def real_modrelu_gradients(output: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """Computes the gradients of real modReLU from its output.

    That has the sign of the input, and is zero where the gradient is.

    Args:
        output: Tensor of shape `(..., n)`.
        upstream: Gradient with respect to it.

    Returns:
        A pair of tensors of the same shape: the gradients with respect to the inputs,
        and to a bias for each.
    """
    sign = ops.sign(output)
    to_bias = sign * upstream
    return sign * to_bias, to_bias


def _forward(inputs: Tensor, bias: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    output = real_modrelu(inputs, bias)
    return output, (output, bias)


def _backward(saved: tuple[Tensor, Tensor], upstream: Tensor) -> tuple[Tensor, Tensor]:
    output, bias = saved
    to_inputs, to_bias = real_modrelu_gradients(output, upstream)
    axes = tuple(range(len(output.shape) - len(bias.shape)))
    return to_inputs, ops.sum(to_bias, axis=axes)


_modrelu = with_gradient(_forward, _backward)


def modrelu(inputs: Tensor, bias: Tensor) -> Tensor:
    """ModReLU of real numbers, `sign(z) relu(|z| + b)`.

    Keeps the sign and shifts the absolute value: with a negative bias values
    near zero become zero, with a positive one they are pushed away from it. At
    `z = 0` it is 0, and its gradient is 0 there and where `|z| + b = 0`.

    Args:
        inputs: Tensor of shape `(..., n)`.
        bias: Tensor of shape `(n,)`.

    Returns:
        Tensor of the shape and dtype of `inputs`; of integers, of Keras's default.

    Raises:
        ValueError: If `bias` has another shape, or a tensor is complex.

    Example:
    >>> modrelu(np.array([-2.0, 0.5, 3.0]), np.array([-1.0, -1.0, 1.0]))
    [-1, 0, 4]

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      equation 8, after
      [Arjovsky et al., 2016](https://proceedings.mlr.press/v48/arjovsky16.html)
    """
    inputs = _floats(inputs)
    _check_bias(bias, inputs, 1)
    return _modrelu(inputs, ops.cast(bias, inputs.dtype))


def _floats(inputs: Any) -> Tensor:
    """A tensor, of Keras's default dtype if it is one of integers or booleans."""
    inputs = ops.convert_to_tensor(inputs)
    check_real_tensor("inputs", inputs)
    dtype = keras.backend.standardize_dtype(inputs.dtype)
    return (
        inputs
        if keras.backend.is_float_dtype(dtype)
        else ops.cast(inputs, keras.config.floatx())
    )


def _check_bias(bias: Any, inputs: Tensor, parts: int) -> None:
    # One of another shape would be repeated, and its gradient wrong.
    check_real_tensor("bias", bias)
    size = inputs.shape[-1] if len(inputs.shape) else None
    if size is not None and size % parts:
        raise ValueError(
            "`inputs` must have a real and an imaginary part of each unit. "
            f"Received: inputs of shape {tuple(inputs.shape)}"
        )
    if size is not None and tuple(np.shape(bias)) != (size // parts,):
        raise ValueError(
            f"`bias` must have the shape ({size // parts},). Received: bias of shape "
            f"{tuple(np.shape(bias))}, inputs of shape {tuple(inputs.shape)}"
        )


def complex_modrelu(inputs: Tensor, bias: Tensor) -> Tensor:
    """ModReLU of complex numbers, `z relu(1 + b / |z|)`.

    Keeps the argument and shifts the modulus; with `b = 0` it is the identity. At
    `z = 0` it is 0 with the derivative of its limits: that of the identity where
    `b >= 0`, and 0 where `b < 0`. Near 0 the derivative grows as `b / |z|` where
    `b > 0`, without a bound: see `smoothed_modrelu`. A modulus counts as 0 where its
    dtype holds its square, or itself, with fewer digits than others: up to 1e-146 in
    float64, 3e-16 in float32 and bfloat16, 6e-5 in float16. It is computed in float32
    at least.

    Args:
        inputs: Tensor of shape `(..., 2n)`, real parts before imaginary parts.
        bias: Tensor of shape `(n,)`.

    Returns:
        Tensor of the shape and dtype of `inputs`; of integers, of Keras's default.

    Raises:
        ValueError: If `bias` has another shape, or a tensor is complex.

    Example:
    >>> complex_modrelu(np.array([3.0, 4.0]), np.array([-2.0]))
    [1.8, 2.4]

    Reference:

    - [Arjovsky et al., 2016](https://proceedings.mlr.press/v48/arjovsky16.html),
      equation 8
    """
    inputs = _floats(inputs)
    _check_bias(bias, inputs, 2)
    return scale_units(inputs, exact_scale(inputs, bias))


def exact_scale(inputs: Tensor, bias: Tensor) -> Tensor:
    """Computes what complex modReLU multiplies each complex number with.

    Args:
        inputs: Tensor of shape `(..., 2n)`, real parts before imaginary parts.
        bias: Tensor of shape `(n,)`.

    Returns:
        Tensor of shape `(..., n)`, float32 at least: the factor `relu(1 + b / |z|)`.
    """
    smallest = smallest_modulus(inputs.dtype) ** 2
    real, imaginary = ops.split(_wide(inputs), 2, axis=-1)
    square = real * real + imaginary * imaginary
    bias = ops.cast(bias, square.dtype)
    counts = square > smallest
    # The derivatives of a root at 0 are not finite, nor is 0 times them.
    modulus = ops.sqrt(ops.where(counts, square, ops.ones_like(square)))
    scale = ops.relu(1.0 + bias / modulus)
    return ops.where(counts, scale, ops.cast(bias >= 0, square.dtype))


def smallest_modulus(dtype: Any) -> float:
    """A modulus that has all digits of a dtype, and whose square has them."""
    dtype = keras.backend.standardize_dtype(dtype)
    if dtype == "float16":
        return float(np.finfo("float16").tiny)
    numbers = np.finfo(wide_dtype(dtype))
    return float(np.sqrt(numbers.tiny / numbers.eps))


def smoothed_modrelu(inputs: Tensor, bias: Tensor) -> Tensor:
    """ModReLU of complex numbers as the authors of the uRNN and the scuRNN guard it.

    `z relu(m + b) / (m + 1e-5)` with the modulus `m = sqrt(|z|^2 + 1e-5)`, in float32
    at least. Its derivative is bounded, by about `1 + 300 b`, where that of
    `complex_modrelu` grows without a bound at 0. It is a little short: with `b = 0` a
    number of modulus 1 loses 1e-5 of it, one of modulus 0.1 loses 1e-4. The square of
    the modulus must be finite: beyond 1.8e19 in float32 the result is NaN.

    Args:
        inputs: Tensor of shape `(..., 2n)`, real parts before imaginary parts.
        bias: Tensor of shape `(n,)`.

    Returns:
        Tensor of the shape and dtype of `inputs`; of integers, of Keras's default.

    Raises:
        ValueError: If `bias` has another shape, or a tensor is complex.

    Example:
    >>> smoothed_modrelu(np.array([3.0, 4.0]), np.array([-2.0]))
    [1.799997, 2.399997]

    Reference:

    - [Arjovsky et al., 2016](https://proceedings.mlr.press/v48/arjovsky16.html),
      equation 8, and the authors' code
    """
    inputs = _floats(inputs)
    _check_bias(bias, inputs, 2)
    scale, _ = modulus_scale(inputs, bias)
    return scale_units(inputs, scale)


def modulus_scale(inputs: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Computes what the smoothed modReLU multiplies each complex number with.

    Args:
        inputs: Tensor of shape `(..., 2n)`, real parts before imaginary parts.
        bias: Tensor of shape `(n,)`.

    Returns:
        A pair of tensors of shape `(..., n)`, float32 at least: the factor
        `relu(m + b) / (m + 1e-5)`, and the modulus `m`.
    """
    real, imaginary = ops.split(_wide(inputs), 2, axis=-1)
    modulus = ops.sqrt(real * real + imaginary * imaginary + MODULUS_EPSILON)
    positive = ops.relu(modulus + ops.cast(bias, modulus.dtype))
    return positive / (modulus + MODULUS_EPSILON), modulus


def scale_units(inputs: Tensor, scale: Tensor) -> Tensor:
    """Multiplies each complex number with a real one.

    Args:
        inputs: Tensor of shape `(..., 2n)`, real parts before imaginary parts.
        scale: Tensor of shape `(..., n)`.

    Returns:
        Tensor of the shape and dtype of `inputs`.
    """
    # The factor of a small number may be too large for float16, and the product not.
    return ops.cast(_wide(inputs) * twice(scale), inputs.dtype)


def twice(values: Tensor) -> Tensor:
    """Puts `n` values, of complex numbers, at their real and their imaginary parts."""
    return ops.concatenate([values, values], axis=-1)


def _wide(inputs: Tensor) -> Tensor:
    """The square of 300 is no float16."""
    return ops.cast(inputs, wide_dtype(inputs.dtype))


@keras.saving.register_keras_serializable(package="keras_ortho")
def oplu(inputs: Tensor) -> Tensor:
    """The orthogonal permutation linear unit (OPLU), which sorts pairs of units.

    Unit `i` and unit `i + n // 2` are a pair, whose larger value goes to the first, the
    smaller to the second. With an odd `n` the last unit stays as it is. Of complex
    units, real parts before imaginary parts, a pair is the two parts of one unit.

    Its Jacobian is a permutation at every point; where the values of a pair are equal
    it is the identity. So it keeps the norms of states and of gradients exactly, and
    yet is not linear: of the difference of a pair it takes the absolute value. modReLU,
    whose bias is zero at the start, has to learn not to be linear. OPLU is also known
    as MaxMin, and as GroupSort of groups of two.

    Args:
        inputs: Tensor of shape `(..., n)`.

    Returns:
        Tensor of the shape and dtype of `inputs`.

    Example:
    >>> oplu(np.array([1.0, 5.0, 2.0, -3.0]))
    [2, 5, 1, -3]

    Reference:

    - [Chernodub and Nowicki, 2016](https://arxiv.org/abs/1604.02313)
    - [Anil et al., 2019](https://proceedings.mlr.press/v97/anil19a.html)
    """
    inputs = ops.convert_to_tensor(inputs)
    check_real_tensor("inputs", inputs)
    return swap_pairs(inputs, is_unsorted(inputs))


def is_unsorted(inputs: Tensor) -> Tensor:
    """Finds the pairs whose second value is the larger one.

    Args:
        inputs: Tensor of shape `(..., n)`.

    Returns:
        Tensor of booleans, of shape `(..., n // 2)`.
    """
    half = inputs.shape[-1] // 2
    return inputs[..., :half] < inputs[..., half : 2 * half]


def swap_pairs(values: Tensor, swapped: Tensor) -> Tensor:
    """Swaps the values of some pairs; the gradient is taken back in the same way.

    Args:
        values: Tensor of shape `(..., n)`.
        swapped: Tensor of booleans, of shape `(..., n // 2)`.

    Returns:
        Tensor of the shape and dtype of `values`.
    """
    half = values.shape[-1] // 2
    first, second = values[..., :half], values[..., half : 2 * half]
    parts = [ops.where(swapped, second, first), ops.where(swapped, first, second)]
    if values.shape[-1] % 2:
        parts.append(values[..., 2 * half :])
    return ops.concatenate(parts, axis=-1)


@keras.saving.register_keras_serializable(package="keras_ortho")
class LeakyReLU:
    """Leaky ReLU of a slope, `max(z, negative_slope z)` for one of at most 1.

    A function with a setting, for the `activation` of a layer. Its derivative at 0 is
    the slope. The string `"leaky_relu"` names Keras's, which has the slope 0.2.

    Args:
        negative_slope: Slope for negative inputs, at least 0. Default: 0.1, oRNN's.

    Raises:
        ValueError: If the slope is negative or not finite.

    Example:
    >>> LeakyReLU(0.1)(np.array([-2.0, 3.0]))
    [-0.2, 3]

    Reference:

    - [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html),
      whose code has the slope 0.1
    """

    def __init__(self, negative_slope: float = 0.1) -> None:
        self.negative_slope = check_number("negative_slope", negative_slope)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Applies the activation.

        Args:
            inputs: Tensor of any shape.

        Returns:
            Tensor of the same shape and dtype.
        """
        # TensorFlow's own knows the slope in float32 only.
        inputs = _floats(inputs)
        return ops.where(inputs > 0, inputs, self.negative_slope * inputs)

    def __repr__(self) -> str:
        return f"LeakyReLU({self.negative_slope})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LeakyReLU):
            return NotImplemented
        return self.negative_slope == other.negative_slope

    def __hash__(self) -> int:
        return hash((LeakyReLU, self.negative_slope))

    def get_config(self) -> dict[str, float]:
        """Gives the arguments that make an equal activation."""
        return {"negative_slope": self.negative_slope}

    @classmethod
    def from_config(cls, config: dict[str, float]) -> "LeakyReLU":
        """Makes an activation from a config."""
        return cls(**config)


#: Leaky ReLU with the slope of `SVDRNN`, `ORNN` and `FactorizedRNN`, 0.1.
PAPER_LEAKY_RELU = LeakyReLU(0.1)


@keras.saving.register_keras_serializable(package="keras_ortho")
class ModReLU(keras.layers.Layer):
    """modReLU with a trainable bias for each unit, `sign(z) relu(|z| + b)`.

    Args:
        bias_initializer: Initializer of the bias. Default: `"zeros"`, with which
            the layer is the identity until the bias has been trained.
        bias_regularizer: Regularizer of the bias. Default: `None`.
        bias_constraint: Constraint of the bias. Default: `None`.
        **kwargs: Keras's arguments of a layer, such as `name` and `dtype`.

    Input shape:
        `(..., n)`, with `n` known. The bias has shape `(n,)`.

    Output shape:
        The input shape.

    Raises:
        ValueError: In `build`, if the last axis of the input is not known.

    Example:
    >>> layer = ModReLU(bias_initializer=keras.initializers.Constant(-1.0))
    >>> layer(np.array([[-2.0, 0.5, 3.0]]))
    [[-1, 0, 2]]

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      equation 8
    """

    def __init__(
        self,
        bias_initializer: Any = "zeros",
        bias_regularizer: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.bias_initializer = initializers.get(bias_initializer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the bias.

        Args:
            input_shape: Shape of the inputs.

        Raises:
            ValueError: If the last axis is not known.
        """
        shape = (check_last_axis(self, input_shape),)
        initializers.check_array("bias_initializer", self.bias_initializer, shape)
        self.bias = self.add_weight(
            shape=shape,
            name="bias",
            initializer=self.bias_initializer,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
        )

    def call(self, inputs: Tensor) -> Tensor:
        """Applies the activation.

        Args:
            inputs: Tensor of shape `(..., n)`.

        Returns:
            Tensor of the same shape.
        """
        return modrelu(inputs, self.bias)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        """Gives the shape of the output, that of the inputs."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal layer."""
        return {
            **super().get_config(),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
            "bias_constraint": keras.constraints.serialize(self.bias_constraint),
        }
