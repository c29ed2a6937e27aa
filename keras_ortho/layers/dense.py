"""Dense layers whose kernel is computed from free variables."""

from typing import Any, TypedDict, Unpack

import keras
import numpy as np
from keras import ops

from keras_ortho import activations, checks, configs, initializers
from keras_ortho.backend.types import Tensor
from keras_ortho.keras_internals import call_is_training
from keras_ortho.parametrizations.base import check_parametrization
from keras_ortho.parametrizations.free_initializers import check_makes
from keras_ortho.parametrized import ParametrizedMatrix


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
    """Base class of layers `activation(x W + b)` that compute `W` from variables."""

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
        """Creates `self._matrix`, of which the kernel has the first rows or columns."""
        raise NotImplementedError

    def kernel_matrix(self) -> Tensor:
        """Returns the kernel `W`, of shape `(m, n)`, in float32 or wider."""
        checks.check_built(self)
        rows, columns = self._shape
        return self._matrix.make()[:rows, :columns]

    def _set_matrix(self, matrix: Any, shape: tuple[int, int]) -> None:
        matrix = ops.convert_to_numpy(matrix)
        checks.check_shape("matrix", matrix, shape)
        self._matrix.set(matrix)

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


@keras.saving.register_keras_serializable(package="keras_ortho")
class OrthoDense(ParametrizedDense):
    """Dense layer with a parametrized kernel, such as an orthogonal one.

    The output is `activation(x W + b)`, for any number of inputs `m` and outputs `n`.
    `W` consists of the first `m` rows or the first `n` columns of a square matrix of
    order `p = max(m, n)`. If that matrix is orthogonal, they are orthonormal, and all
    orthonormal rows or columns can be had so.

    Args:
        units: Number of outputs `n`, a positive integer.
        parametrization: A `keras_ortho.parametrizations.Parametrization` of real
            matrices.
        activation: Activation of the output. Default: `None`.
        kernel_initializer: Initializer of the free variables; if the map has an
            inverse, also an array of shape `(p, p)` or any Keras initializer of such a
            matrix. Default: `None`, that of the parametrization.
        **kwargs: As for `keras.layers.Dense`: `use_bias`, `bias_initializer`, the
            regularizers (that of the kernel is for the free variables),
            `bias_constraint`, `name`, `dtype` and so on.

    Output shape:
        `(batch, ..., n)`, of inputs of shape `(batch, ..., m)`, with `m` known.

    Weights:
        The variables of the parametrization for order `p`, under its names; `bias` of
        shape `(n,)`.

    Raises:
        ValueError: If an argument is out of range; in `build`, if the parametrization
            does not support order `p` or the matrix of `kernel_initializer`.

    Example:
    >>> from keras_ortho.parametrizations import ScaledCayley
    >>> layer = OrthoDense(10, ScaledCayley())
    >>> layer(np.zeros((60, 784))).shape
    (60, 10)
    """

    def __init__(
        self,
        units: int,
        parametrization: Any,
        activation: Any = None,
        *,
        kernel_initializer: Any = None,
        **kwargs: Unpack[DenseArguments],
    ) -> None:
        parametrization = check_parametrization(parametrization, real=True)
        super().__init__(
            units, activation, kernel_initializer=kernel_initializer, **kwargs
        )
        self.parametrization = parametrization
        takes = parametrization.takes
        check_makes("kernel_initializer", self.kernel_initializer, takes)

    def build_kernel(self) -> None:
        """Creates the free variables of the square matrix."""
        self._matrix = ParametrizedMatrix(
            self,
            self.parametrization,
            "kernel_initializer",
            self.kernel_initializer,
            max(self._shape),
            lambda free: self.kernel_regularizer,
        )

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Computes the output."""
        if call_is_training(training) and self.trainable:
            self._matrix.begin_training_pass()
        return super().call(inputs)

    def rebase(self) -> None:
        """Moves the base of a `Rebased` parametrization, with the same kernel.

        Raises:
            ValueError: If the layer is not built, or its parametrization has no base.
        """
        checks.check_built(self)
        self._matrix.rebase()

    def set_square_matrix(self, matrix: Tensor | np.ndarray) -> None:
        """Sets the free variables so that the square matrix equals `matrix`.

        Args:
            matrix: Tensor or array of shape `(p, p)`.

        Raises:
            ValueError: If the layer is not built, or the map cannot make `matrix`.
        """
        checks.check_built(self)
        self._set_matrix(matrix, (max(self._shape),) * 2)
