"""The base class of the dense layers."""

from typing import Any, TypedDict

import keras
from keras import ops

from keras_ortho import activations, checks, configs, initializers
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor


class DenseArguments(TypedDict, total=False):
    """The keyword arguments of every dense layer, those of `keras.layers.Dense`."""

    use_bias: bool
    bias_initializer: Any
    kernel_regularizer: Any
    bias_regularizer: Any
    activity_regularizer: Any
    bias_constraint: Any
    trainable: bool
    dtype: Any
    autocast: bool
    name: str | None


class ParametrizedDense(keras.layers.Layer):
    """Base class of layers `activation(x W + b)` that compute `W` from variables.

    A subclass stores each of its arguments as an attribute. It implements
    `build_kernel`, which creates the variables, and `kernel_matrix`, which maps them to
    `W`.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        units = checks.check_count("units", units)
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.units = units
        self.activation: Any = activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer: Any = initializers.get(kernel_initializer)
        self.bias_initializer: Any = initializers.get(bias_initializer)
        self.kernel_regularizer: Any = keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer: Any = keras.regularizers.get(bias_regularizer)
        self.bias_constraint: Any = keras.constraints.get(bias_constraint)
        self.input_spec: Any = keras.layers.InputSpec(min_ndim=2)
        self.supports_masking = True

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the weights."""
        features = checks.check_last_axis(self, input_shape)
        self._shape = (features, self.units)
        self.build_kernel()
        self.bias: keras.Variable | None = None
        if self.use_bias:
            make, shape = self.bias_initializer, (self.units,)
            initializers.check_array("bias_initializer", make, shape)
            self.bias = self.add_weight(
                shape=shape,
                name="bias",
                initializer=make,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                autocast=False,  # Cast where it is used.
            )
        self.input_spec = keras.layers.InputSpec(min_ndim=2, axes={-1: features})

    def build_kernel(self) -> None:
        """Creates the variables from which the kernel is computed."""
        raise NotImplementedError

    @property
    def factorization_dtype(self) -> str:
        """The dtype in which to compute `W`: that of the variables, or wider."""
        return wide_dtype(self.variable_dtype)

    def kernel_matrix(self) -> Tensor:
        """Computes the kernel `W` from its variables."""
        raise NotImplementedError

    def call(self, inputs: Tensor) -> Tensor:
        """Computes the output."""
        checks.check_real_tensor("inputs", inputs)
        output = self._affine(ops.cast(inputs, self.compute_dtype))
        return activations.precise(self.activation)(output)

    def _affine(self, inputs: Tensor) -> Tensor:
        output = ops.matmul(inputs, ops.cast(self.kernel_matrix(), self.compute_dtype))
        if self.bias is not None:
            output = output + ops.cast(self.bias, self.compute_dtype)
        return output

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        """Returns the shape of the output, with last axis `n`."""
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that recreate the layer."""
        names = configs.argument_names(type(self), ParametrizedDense)
        own = {name: configs.serialize(getattr(self, name)) for name in names}
        return {**super().get_config(), **own}
