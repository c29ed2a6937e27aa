"""The base class of the dense layers."""

from typing import Any

import keras
from keras import ops

from keras_ortho import activations, checks, configs, initializers
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.precise_activations import precise
from keras_ortho.saved_shapes import check_saved


class ParametrizedDense(keras.layers.Layer):
    """Base class of layers `activation(x W + b)` that compute `W` from variables.

    A subclass accepts at least the arguments below and stores each of its arguments as
    an attribute. It implements `build_kernel`, which creates the variables, and
    `kernel_matrix`, which maps them to `W`.

    Args:
        units: Number of outputs `n`, a positive integer.
        activation: Activation of the output. Default: `None`.
        use_bias: Whether there is a bias. Default: `True`.
        kernel_initializer: Initializer of the free variables, or of the kernel.
        bias_initializer: Initializer of the bias. Default: `"zeros"`.
        kernel_regularizer: Regularizer of the free variables. Default: `None`.
        bias_regularizer: Regularizer of the bias. Default: `None`.
        bias_constraint: Constraint of the bias. Default: `None`.
        **kwargs: Base layer keyword arguments, such as `name` and `dtype`.

    Example:
    >>> isinstance(SVDDense(3), ParametrizedDense)
    True
    """

    def __init__(
        self,
        units: int,
        *,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any,
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        units = checks.check_count("units", units)
        super().__init__(**kwargs)
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
        """Creates the weights.

        Args:
            input_shape: Shape of the inputs.

        Raises:
            ValueError: If the size of the last axis is unknown, the layer cannot
                represent the kernel that `kernel_initializer` yields, or an
                initializer is an array of the wrong shape.
        """
        features = checks.check_last_axis(self, input_shape)
        self._shape = (features, self.units)
        self.build_kernel()
        self.bias: keras.Variable | None = None
        if self.use_bias:
            initializers.check_array(
                "bias_initializer", self.bias_initializer, (self.units,)
            )
            self.bias = self.add_weight(
                shape=(self.units,),
                name="bias",
                initializer=self.bias_initializer,
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
        """Computes the kernel `W` from its variables.

        Returns:
            Tensor of shape `(m, n)` in the dtype of the variables, but at least
            float32.
        """
        raise NotImplementedError

    def call(self, inputs: Tensor) -> Tensor:
        """Computes the output.

        Args:
            inputs: Tensor of shape `(batch, ..., m)`.

        Returns:
            Tensor of shape `(batch, ..., n)`.

        Raises:
            ValueError: If the inputs are complex.
        """
        checks.check_real_tensor("inputs", inputs)
        kernel = ops.cast(self.kernel_matrix(), self.compute_dtype)
        output = ops.matmul(ops.cast(inputs, self.compute_dtype), kernel)
        if self.bias is not None:
            output = output + ops.cast(self.bias, self.compute_dtype)
        return precise(self.activation)(output)

    def load_own_variables(self, store: Any) -> None:
        """Loads the weights.

        Args:
            store: Saved arrays, keyed by their index as a string.

        Raises:
            ValueError: If the weights are those of a layer with other arguments.
        """
        if self.built:
            check_saved(self, (None, self._shape[0]), store)
        super().load_own_variables(store)

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        """Returns the shape of the output, with last axis `n`."""
        return (*input_shape[:-1], self.units)

    def _config_of(self, cls: type) -> dict[str, Any]:
        """Returns the arguments that `cls` declares and those of the base layer."""
        names = [p.name for p in configs.declared(cls) if p.name != "kwargs"]
        return {
            **super().get_config(),
            **{name: configs.serialize(getattr(self, name)) for name in names},
        }
