"""Activations for orthogonal and unitary networks: modReLU, OPLU and leaky ReLU."""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho import initializers
from keras_ortho.backend import with_gradient
from keras_ortho.backend.elementary import tanh
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_last_axis, check_number, check_real_tensor

__all__ = [
    "PAPER_LEAKY_RELU",
    "LeakyReLU",
    "ModReLU",
    "complex_modrelu",
    "get",
    "modrelu",
    "oplu",
    "smoothed_modrelu",
]

# Keeps the gradient of the smoothed modReLU's modulus, and the reciprocal of that
# modulus, finite at zero, as in the code of the authors of the uRNN and the scuRNN.
MODULUS_EPSILON = 1e-5


def get(identifier: Any) -> Callable[[Tensor], Tensor]:
    """Retrieves an activation: `"oplu"` or any that Keras knows.

    Args:
        identifier: Name, config or function. `None` stands for the identity.

    Returns:
        The activation function.

    Raises:
        ValueError: If the name is unknown.

    Example:
    >>> get("oplu") is oplu
    True
    """
    is_oplu = isinstance(identifier, str) and identifier == "oplu"
    return oplu if is_oplu else keras.activations.get(identifier)


def real_modrelu(inputs: Tensor, bias: Tensor) -> Tensor:
    """Computes the values of `modrelu`, without its custom gradient."""
    return ops.sign(inputs) * ops.relu(ops.abs(inputs) + bias)


def real_modrelu_gradients(output: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """Computes the gradients of real modReLU from its output."""
    sign = ops.sign(output)
    to_bias = sign * upstream
    return sign * to_bias, to_bias


def _forward(inputs: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    output = real_modrelu(inputs, bias)
    return output, output


def _backward(output: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    to_inputs, to_bias = real_modrelu_gradients(output, upstream)
    return to_inputs, ops.sum(to_bias, axis=tuple(range(len(output.shape) - 1)))


_modrelu = with_gradient(_forward, _backward)


def modrelu(inputs: Tensor, bias: Tensor) -> Tensor:
    """Applies real modReLU, `sign(z) relu(|z| + b)`.

    A negative bias sets values near zero to zero, a positive bias pushes them away from
    zero. The value at `z = 0` is 0. The gradient is 0 there and where `|z| + b = 0`.

    Args:
        inputs: Tensor of shape `(..., n)`.
        bias: Tensor of shape `(n,)`.

    Returns:
        Tensor with the shape and dtype of `inputs`. For integers and booleans, the
        dtype is Keras's `floatx`.

    Raises:
        ValueError: If `bias` has the wrong shape, or a tensor is complex.

    Example:
    >>> modrelu(np.array([-2.0, 0.5, 3.0]), np.array([-1.0, -1.0, 1.0]))
    [-1, 0, 4]

    Reference:
    [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
    equation 8, after
    [Arjovsky et al., 2016](https://proceedings.mlr.press/v48/arjovsky16.html)
    """
    inputs = _checked(inputs, bias, 1)
    return _modrelu(inputs, ops.cast(bias, inputs.dtype))


def _floats(inputs: Any) -> Tensor:
    """Converts inputs to a tensor; integers and booleans become Keras's `floatx`."""
    inputs = ops.convert_to_tensor(inputs)
    check_real_tensor("inputs", inputs)
    is_float = keras.backend.is_float_dtype(inputs.dtype)
    return inputs if is_float else ops.cast(inputs, keras.config.floatx())


def _checked(inputs: Any, bias: Any, parts: int) -> Tensor:
    """Converts the inputs, and checks that the bias has an entry for each unit."""
    # A bias of another shape would be broadcast, and its gradient would be wrong.
    inputs = _floats(inputs)
    check_real_tensor("bias", bias)
    size = inputs.shape[-1] if len(inputs.shape) else None
    if size is not None and [parts * x for x in np.shape(bias)] != [size]:
        raise ValueError(
            f"`bias` must have the shape (n,) for `inputs` of shape (..., {parts}n). "
            f"Received: bias of shape {tuple(np.shape(bias))}, inputs of shape "
            f"{tuple(inputs.shape)}"
        )
    return inputs


def complex_modrelu(inputs: Tensor, bias: Tensor) -> Tensor:
    """Applies complex modReLU, `z relu(1 + b / |z|)`, in at least float32.

    At `z = 0`, the value is 0, and the derivative is that of the identity if `b >= 0`,
    and 0 if `b < 0`. Near 0, if `b > 0`, the derivative grows as `b / |z|`, without a
    bound: see `smoothed_modrelu`. Moduli whose squares underflow count as 0.

    Args:
        inputs: Tensor of shape `(..., 2n)`, real parts before imaginary parts.
        bias: Tensor of shape `(n,)`.

    Returns:
        Tensor with the shape and dtype of `inputs`. For integers and booleans, the
        dtype is Keras's `floatx`.

    Raises:
        ValueError: If `bias` has the wrong shape, or a tensor is complex.

    Example:
    >>> complex_modrelu(np.array([3.0, 4.0]), np.array([-2.0]))
    [1.8, 2.4]

    Reference:
    [Arjovsky et al., 2016](https://proceedings.mlr.press/v48/arjovsky16.html),
    equation 8
    """
    inputs = _checked(inputs, bias, 2)
    return scale_units(inputs, exact_scale(inputs, bias))


def exact_scale(inputs: Tensor, bias: Tensor) -> Tensor:
    """Computes the factor of complex modReLU, `relu(1 + b / |z|)`."""
    smallest = smallest_modulus(inputs.dtype) ** 2
    real, imaginary = ops.split(_wide(inputs), 2, axis=-1)
    square = real * real + imaginary * imaginary
    bias = ops.cast(bias, square.dtype)
    counts = square > smallest
    # The derivative of the square root at 0 is infinite, and 0 times it is NaN.
    modulus = ops.sqrt(ops.where(counts, square, ops.ones_like(square)))
    scale = ops.relu(1.0 + bias / modulus)
    return ops.where(counts, scale, ops.cast(bias >= 0, square.dtype))


def smallest_modulus(dtype: Any) -> float:
    """Returns the modulus above which neither it nor its square loses digits."""
    dtype = keras.backend.standardize_dtype(dtype)
    if dtype == "float16":
        return float(np.finfo("float16").tiny)
    numbers = np.finfo(wide_dtype(dtype))
    return float(np.sqrt(numbers.tiny / numbers.eps))


def smoothed_modrelu(inputs: Tensor, bias: Tensor) -> Tensor:
    """Applies complex modReLU, smoothed at zero as by the uRNN's and scuRNN's authors.

    Computes `z relu(m + b) / (m + 1e-5)` with the modulus `m = sqrt(|z|^2 + 1e-5)`, in
    at least float32. The derivative is bounded, by about `1 + 300 b`.

    Args:
        inputs: Tensor of shape `(..., 2n)`, real parts before imaginary parts.
        bias: Tensor of shape `(n,)`.

    Returns:
        Tensor with the shape and dtype of `inputs`. For integers and booleans, the
        dtype is Keras's `floatx`.

    Raises:
        ValueError: If `bias` has the wrong shape, or a tensor is complex.

    Example:
    >>> smoothed_modrelu(np.array([3.0, 4.0]), np.array([-2.0]))
    [1.799997, 2.399997]

    Reference:
    [Arjovsky et al., 2016](https://proceedings.mlr.press/v48/arjovsky16.html),
    equation 8, and the authors' code
    """
    inputs = _checked(inputs, bias, 2)
    return scale_units(inputs, modulus_scale(inputs, bias)[0])


def modulus_scale(inputs: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Computes the factor and the modulus of the smoothed modReLU."""
    real, imaginary = ops.split(_wide(inputs), 2, axis=-1)
    modulus = ops.sqrt(real * real + imaginary * imaginary + MODULUS_EPSILON)
    positive = ops.relu(modulus + ops.cast(bias, modulus.dtype))
    return positive / (modulus + MODULUS_EPSILON), modulus


def scale_units(inputs: Tensor, scale: Tensor) -> Tensor:
    """Multiplies each complex number by a real factor."""
    # For a small number, the factor may overflow float16 although the product does not.
    return ops.cast(_wide(inputs) * twice(scale), inputs.dtype)


def twice(values: Tensor) -> Tensor:
    """Repeats `n` values, once for the real and once for the imaginary parts."""
    return ops.concatenate([values, values], axis=-1)


def _wide(inputs: Tensor) -> Tensor:
    """Casts inputs to at least float32: in float16, the square of 300 overflows."""
    return ops.cast(inputs, wide_dtype(inputs.dtype))


@keras.saving.register_keras_serializable(package="keras_ortho")
def oplu(inputs: Tensor) -> Tensor:
    """Applies the orthogonal permutation linear unit (OPLU), which sorts pairs.

    Units `i` and `i + n // 2` form a pair: the larger value goes to the first unit, the
    smaller one to the second. If `n` is odd, the last unit is unchanged. With complex
    units, real parts before imaginary parts, the two parts of a unit form a pair.

    The Jacobian is a permutation matrix at every point: OPLU preserves the norms of
    states and gradients exactly, yet is nonlinear. It is also known as MaxMin.

    Args:
        inputs: Tensor of shape `(..., n)`.

    Returns:
        Tensor with the shape and dtype of `inputs`.

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
    """Finds the pairs whose second value is larger than the first."""
    half = inputs.shape[-1] // 2
    return inputs[..., :half] < inputs[..., half : 2 * half]


def swap_pairs(values: Tensor, swapped: Tensor) -> Tensor:
    """Swaps the values of selected pairs; swapping is its own gradient, too."""
    half = values.shape[-1] // 2
    first, second = values[..., :half], values[..., half : 2 * half]
    parts = [ops.where(swapped, second, first), ops.where(swapped, first, second)]
    if values.shape[-1] % 2:
        parts.append(values[..., 2 * half :])
    return ops.concatenate(parts, axis=-1)


@keras.saving.register_keras_serializable(package="keras_ortho")
@dataclasses.dataclass(frozen=True)
class LeakyReLU:
    """Leaky ReLU with a given slope, `max(z, negative_slope z)` for slopes up to 1.

    A callable for the `activation` argument of a layer. Its derivative at 0 is the
    slope. The string `"leaky_relu"` names Keras's activation, whose slope is 0.2.

    Args:
        negative_slope: Slope for negative inputs, at least 0. Default: 0.1, as in the
            oRNN.

    Raises:
        ValueError: If the slope is negative or not finite.

    Example:
    >>> LeakyReLU(0.1)(np.array([-2.0, 3.0]))
    [-0.2, 3]

    Reference:
    [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html),
    whose code uses the slope 0.1
    """

    negative_slope: float = 0.1

    def __post_init__(self) -> None:
        check_number("negative_slope", self.negative_slope)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Applies the activation to a tensor of any shape, and keeps its dtype."""
        # TensorFlow's own leaky ReLU rounds the slope to float32.
        inputs = _floats(inputs)
        return ops.where(inputs > 0, inputs, self.negative_slope * inputs)

    def get_config(self) -> dict[str, float]:
        """Returns the config of the activation."""
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config: dict[str, float]) -> "LeakyReLU":
        """Creates an activation from its config."""
        return cls(**config)


#: Leaky ReLU with slope 0.1, the default of `SVDRNN`, `ORNN` and `FactorizedRNN`.
PAPER_LEAKY_RELU = LeakyReLU(0.1)


def precise(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Returns an equivalent of an activation that has the precision of its inputs.

    Keras computes tanh in float32 on JAX, and leaky ReLU with a float32 slope on
    TensorFlow. A layer stores the activation that it was given, for its config.
    """
    if activation is keras.activations.tanh:
        return tanh
    is_leaky = activation is keras.activations.leaky_relu
    return LeakyReLU(0.2) if is_leaky else activation


@keras.saving.register_keras_serializable(package="keras_ortho")
class ModReLU(keras.layers.Layer):
    """modReLU layer, `sign(z) relu(|z| + b)` with a trainable bias for each unit.

    Args:
        bias_initializer: Initializer for the bias. Default: `"zeros"`, with which
            the layer is the identity before training.
        bias_regularizer: Regularizer for the bias. Default: `None`.
        bias_constraint: Constraint for the bias. Default: `None`.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Input shape:
        `(..., n)`, with `n` known. The bias has shape `(n,)`.

    Output shape:
        The input shape.

    Raises:
        ValueError: In `build`, if the last axis of the input is unknown, or
            `bias_initializer` is an array of the wrong shape.

    Example:
    >>> layer = ModReLU(bias_initializer=keras.initializers.Constant(-1.0))
    >>> layer(np.array([[-2.0, 0.5, 3.0]]))
    [[-1, 0, 2]]

    Reference:
    [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
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
        """Creates the bias."""
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
        """Applies the activation."""
        return modrelu(inputs, self.bias)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        """Returns the output shape, which equals the input shape."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the layer."""
        return {
            **super().get_config(),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "bias_regularizer": keras.regularizers.serialize(self.bias_regularizer),
            "bias_constraint": keras.constraints.serialize(self.bias_constraint),
        }
