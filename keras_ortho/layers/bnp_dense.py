"""A dense layer whose gradient is preconditioned with batch statistics."""

from typing import Any

import keras
from keras import ops

from keras_ortho import checks, initializers
from keras_ortho.activations import precise
from keras_ortho.backend import with_gradient
from keras_ortho.backend.replicas import sum_over_replicas
from keras_ortho.backend.types import Tensor
from keras_ortho.layers.parametrized_dense import ParametrizedDense


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
    # inputs and the upstream gradient, which avoids subtracting two large sums. All
    # replicas share their statistics, so their gradients add up to that of the batch.
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


def preconditioned_dense(
    inputs: Tensor, kernel: Tensor, bias: Tensor, epsilon: float
) -> Tensor:
    """Computes `x W + b`, with a preconditioned gradient for `W` and `b`."""
    kernel = ops.convert_to_tensor(kernel)
    return _dense(inputs, kernel, bias, ops.convert_to_tensor(epsilon, kernel.dtype))


@keras.saving.register_keras_serializable(package="keras_ortho")
class BNPDense(ParametrizedDense):
    """Dense layer with batch normalized preconditioning (BNP).

    In training and inference the output is that of a dense layer,
    `activation(x W + b)`, without running statistics or additional weights. Only the
    gradient differs. The optimizer receives `P D^2 P^T [dL/db; dL/dW]` instead of
    `[dL/db; dL/dW]`, where `P = [[1, -mu^T], [0, I]]`,
    `D = diag(1, 1 / sqrt(s + epsilon))`, and `mu` and `s` are the means and variances
    of the inputs over the batch. A step along this gradient is a gradient descent step
    on a loss with a better conditioned Hessian, as if the inputs were normalized.

    Preconditioning is exact for plain gradient descent, `keras.optimizers.SGD`.
    Optimizers that scale each entry by its history, such as Adam, undo part of it, and
    so does gradient clipping. Regularizer gradients are not preconditioned. Masked
    time steps count in the statistics. On several devices, the statistics are those
    of the whole batch, as in `keras.layers.BatchNormalization(synchronized=True)`, and
    the gradients are the same as on one device.

    Args:
        units: Number of outputs `n`, a positive integer.
        epsilon: Positive float added to the variances, in units of the squared inputs.
            If it is far above the variance of an input, the gradient for that input is
            centered but not normalized. Gradients are amplified by at most
            `1 / epsilon`. Default: 0.5, as in the published experiment.
        activation: Activation of the output. Default: `None`.
        kernel_initializer: Initializer of `W`. Default: `"glorot_uniform"`. The
            published experiment multiplies it by 0.75,
            `keras.initializers.VarianceScaling(0.75**2, "fan_avg", "uniform")`.
        bias_initializer: Initializer of `b`. Default: `"zeros"`.
        kernel_regularizer: Regularizer of `W`. Default: `None`.
        bias_regularizer: Regularizer of `b`. Default: `None`.
        activity_regularizer: Regularizer of the output. Default: `None`.
        kernel_constraint: Constraint of `W`. Default: `None`.
        bias_constraint: Constraint of `b`. Default: `None`.
        **kwargs: Base layer keyword arguments, such as `name` and `dtype`.

    Input shape:
        `(batch, ..., m)`, with `m` known. All axes but the last form the batch.

    Output shape:
        `(batch, ..., n)`.

    Weights:
        `kernel` of shape `(m, n)`; `bias` of shape `(n,)`, which the preconditioner
        requires.

    Raises:
        ValueError: If an argument is out of range, or `use_bias` is passed.
        NotImplementedError: If the backend is not TensorFlow, JAX or PyTorch: others
            do not support the custom gradient.

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
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        epsilon = checks.check_number("epsilon", epsilon, positive=True)
        if "use_bias" in kwargs:
            raise ValueError(
                "`BNPDense` always has a bias, which its preconditioner requires: "
                f"leave out `use_bias`. Received: use_bias={kwargs['use_bias']!r}"
            )
        if keras.backend.backend() not in ("tensorflow", "jax", "torch"):
            raise NotImplementedError(
                "`BNPDense` has a custom gradient, on TensorFlow, JAX and PyTorch "
                f"only. Received: KERAS_BACKEND={keras.backend.backend()}"
            )
        super().__init__(
            units,
            activation=activation,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            bias_constraint=bias_constraint,
            **kwargs,
        )
        self.epsilon = epsilon
        self.kernel_constraint = keras.constraints.get(kernel_constraint)

    def build_kernel(self) -> None:
        """Creates the kernel."""
        initializers.check_array(
            "kernel_initializer", self.kernel_initializer, self._shape
        )
        self.kernel = self.add_weight(
            shape=self._shape,
            name="kernel",
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            autocast=False,  # The gradient is scaled in full precision.
        )

    def kernel_matrix(self) -> Tensor:
        """Returns the kernel, in float32 or wider."""
        checks.check_built(self)
        return ops.cast(self.kernel, self.factorization_dtype)

    def call(self, inputs: Tensor) -> Tensor:
        """Computes the output."""
        checks.check_real_tensor("inputs", inputs)
        output = preconditioned_dense(
            ops.cast(inputs, self.compute_dtype),
            self.kernel_matrix(),
            ops.cast(self.bias, self.factorization_dtype),
            self.epsilon,
        )
        return precise(self.activation)(output)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that recreate the layer."""
        return self._config_of(BNPDense)  # Subclasses add their own arguments.
