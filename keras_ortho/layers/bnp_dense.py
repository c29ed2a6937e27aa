"""A dense layer whose gradient is preconditioned with batch statistics."""

from typing import Any, Unpack

import keras
from keras import ops

from keras_ortho import checks, initializers
from keras_ortho.backend import with_gradient
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.replicas import sum_over_replicas
from keras_ortho.backend.types import Tensor
from keras_ortho.layers.dense import DenseArguments, ParametrizedDense


def _forward(
    inputs: Tensor, kernel: Tensor, bias: Tensor, epsilon: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    dtype = inputs.dtype
    output = ops.matmul(inputs, ops.cast(kernel, dtype)) + ops.cast(bias, dtype)
    return output, (inputs, kernel, epsilon)


def _backward(
    saved: tuple[Tensor, Tensor, Tensor], upstream: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    # P^T [db; dW] = [db; dW - mu db], and dW - mu db is the product of the centered
    # inputs and the upstream gradient, which avoids subtracting two large sums.
    inputs, kernel, epsilon = saved
    samples = ops.reshape(inputs, (-1, kernel.shape[0]))
    gradients = ops.reshape(upstream, (-1, kernel.shape[1]))
    whole = ops.cast(samples, kernel.dtype)  # 300**2 overflows float16.
    count = sum_over_replicas(ops.cast(ops.shape(samples)[0], kernel.dtype))
    count = ops.maximum(count, 1)  # The gradients of an empty batch are zero.
    mean = sum_over_replicas(ops.sum(whole, axis=0)) / count
    centered = whole - mean
    variance = sum_over_replicas(ops.sum(ops.square(centered), axis=0)) / count
    product = ops.matmul(ops.transpose(ops.cast(centered, upstream.dtype)), gradients)
    kernel_gradient = ops.cast(product, kernel.dtype) / (variance + epsilon)[:, None]
    bias_gradient = ops.sum(ops.cast(gradients, kernel.dtype), axis=0)
    bias_gradient = bias_gradient - ops.matmul(mean, kernel_gradient)
    back = ops.matmul(upstream, ops.transpose(ops.cast(kernel, upstream.dtype)))
    return back, kernel_gradient, bias_gradient, ops.zeros_like(epsilon)


_dense = with_gradient(_forward, _backward)


@keras.saving.register_keras_serializable(package="keras_ortho")
class BNPDense(ParametrizedDense):
    """Dense layer with batch normalized preconditioning (BNP).

    The output is that of a dense layer, `activation(x W + b)`. Only the gradient
    differs: the optimizer receives `P D^2 P^T [dL/db; dL/dW]` instead of
    `[dL/db; dL/dW]`, where `P = [[1, -mu^T], [0, I]]`,
    `D = diag(1, 1 / sqrt(s + epsilon))`, and `mu` and `s` are the means and variances
    of the inputs over the batch, on several devices the whole one, and with masked time
    steps. With `keras.optimizers.SGD`, this is gradient descent as if the inputs were
    normalized; Adam and gradient clipping undo part of it. Regularizer gradients are
    not preconditioned.

    Args:
        units: Number of outputs `n`, a positive integer.
        epsilon: Positive float added to the variances; gradients are amplified by at
            most `1 / epsilon`. Default: 0.5, as in the published experiment.
        activation: Activation of the output. Default: `None`.
        kernel_initializer: Initializer of `W`. Default: `"glorot_uniform"`, which the
            published experiment multiplies by 0.75.
        kernel_constraint: Constraint of `W`. Default: `None`.
        **kwargs: As for `keras.layers.Dense`: `bias_initializer`, the regularizers,
            `bias_constraint`, `name`, `dtype` and so on.

    Output shape:
        `(batch, ..., n)`, of inputs of shape `(batch, ..., m)`, with `m` known.

    Weights:
        `kernel` of shape `(m, n)`; `bias` of shape `(n,)`.

    Raises:
        ValueError: If an argument is out of range, or `use_bias` is `False`.

    Example:
    >>> layer = BNPDense(100, activation="relu")
    >>> layer(np.zeros((60, 3072))).shape
    (60, 100)

    Reference:
    - [Helfrich, 2020](https://doi.org/10.13023/etd.2020.223), section 3.3
    """

    def __init__(
        self,
        units: int,
        epsilon: float = 0.5,
        activation: Any = None,
        *,
        kernel_initializer: Any = "glorot_uniform",
        kernel_constraint: Any = None,
        **kwargs: Unpack[DenseArguments],
    ) -> None:
        epsilon = checks.check_number("epsilon", epsilon, positive=True)
        if not kwargs.get("use_bias", True):
            raise ValueError(
                "`BNPDense` always has a bias, which its preconditioner requires. "
                "Received: use_bias=False"
            )
        super().__init__(
            units, activation, kernel_initializer=kernel_initializer, **kwargs
        )
        self.epsilon = epsilon
        self.kernel_constraint = keras.constraints.get(kernel_constraint)

    def build_kernel(self) -> None:
        """Creates the kernel."""
        make = self.kernel_initializer
        initializers.check_array("kernel_initializer", make, self._shape)
        self.kernel = self.add_weight(
            shape=self._shape,
            name="kernel",
            initializer=make,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            autocast=False,  # The gradient is scaled in full precision.
        )

    def kernel_matrix(self) -> Tensor:
        """Returns the kernel, in float32 or wider."""
        checks.check_built(self)
        return ops.cast(self.kernel, wide_dtype(self.variable_dtype))

    def _affine(self, inputs: Tensor) -> Tensor:
        """Computes `x W + b`, with a preconditioned gradient for `W` and `b`."""
        kernel = self.kernel_matrix()
        bias = ops.cast(self.bias, kernel.dtype)
        epsilon = ops.convert_to_tensor(self.epsilon, kernel.dtype)
        return _dense(inputs, kernel, bias, epsilon)
