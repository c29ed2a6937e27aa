"""A dense layer whose kernel is held by its singular value decomposition."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.backend.types import Tensor
from keras_ortho.layers.parametrized_dense import ParametrizedDense
from keras_ortho.parametrizations.free import (
    FreeInitializer,
    check_makes,
    independent,
    initializers_from_matrix,
)
from keras_ortho.parametrizations.reflectors import (
    check_invertible,
    check_pair,
    num_reflector_entries,
    unit_length,
)
from keras_ortho.parametrizations.svd import (
    bounded_logits,
    bounded_singular_values,
    svd_inverse,
    svd_matrix,
)


@keras.saving.register_keras_serializable(package="keras_ortho")
class SVDDense(ParametrizedDense):
    """Dense layer with a kernel `W = L Sigma R^T` of known singular values.

    The output is `activation(x W + b)`, for any number of inputs `m` and outputs `n`.
    `L` and `R` are products of at most `p = min(m, n)` Householder reflectors each, of
    which every kernel can be made; the `p` singular values are trained as they are, or
    kept within a margin. With a small margin many of these layers on top of each other
    pass on signals and gradients: the svdMLP and svdResNet.

    Args:
        units: Number of outputs `n`, a positive integer.
        reflections: Number of reflectors of `L` and of `R`, an int in `1 .. p` for
            both or a pair. Default: `None`, all `p`.
        spectral_margin: How far the singular values may lie from the center, at
            least 0; with 0 they are not trained. Default: `None`, they are free.
        spectral_center: Where the singular values start, more than 0, and the center
            of their interval. Default: 1.
        activation: Activation of the output. Default: `None`.
        use_bias: Whether there is a bias. Default: `True`.
        kernel_initializer: Initializer of the reflectors of `L`, and with the next
            seed of `R`, which are then scaled to the length 1. Or, with all
            reflectors, any initializer of Keras that yields a matrix, or an array,
            with singular values in their interval, taken through the inverse map.
            Default: `"uniform_reflectors"`.
        bias_initializer: Initializer of the bias. Default: `"zeros"`.
        kernel_regularizer: Regularizer of the singular values, where they are free,
            otherwise of their logits, 0 at the center. The sum of their squares is
            that of the kernel's entries. Default: `None`.
        bias_regularizer: Regularizer of the bias. Default: `None`.
        activity_regularizer: Regularizer of the output. Default: `None`.
        bias_constraint: Constraint of the bias. Default: `None`.
        **kwargs: Keras's arguments of a layer, such as `name` and `dtype`.

    Input shape:
        `(batch, ..., m)`, with `m` known.

    Output shape:
        `(batch, ..., n)`.

    Weights:
        `kernel_left_reflectors`, packed with the longest first, of shape
        `(m k - k (k - 1) / 2,)` for `k` reflectors; `kernel_right_reflectors`, the same
        with `n` for `m`; `kernel_singular_values`, or with a margin
        `kernel_singular_logits`, of shape `(p,)`; `bias` of shape `(n,)`.

    Raises:
        ValueError: If an argument is out of its range; in `build` for the number of
            reflectors, inputs without features, or if `kernel_initializer` yields a
            matrix that the layer cannot have.

    Example:
    >>> layer = SVDDense(128, spectral_margin=0.1, activation="relu")
    >>> layer(np.zeros((60, 784))).shape
    (60, 128)

    Reference:

    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html), section
      5
    """

    def __init__(
        self,
        units: int,
        reflections: int | tuple[int, int] | None = None,
        spectral_margin: float | None = None,
        spectral_center: float = 1.0,
        activation: Any = None,
        *,
        use_bias: bool = True,
        kernel_initializer: Any = "uniform_reflectors",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        if spectral_margin is not None:
            spectral_margin = checks.check_number("spectral_margin", spectral_margin)
        center = checks.check_number("spectral_center", spectral_center, positive=True)
        super().__init__(
            units,
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            bias_constraint=bias_constraint,
            **kwargs,
        )
        # One side has no more than that, whatever the inputs are.
        check_pair(reflections, self.units)
        # A config holds pairs as lists.
        self.reflections = (
            list(reflections) if isinstance(reflections, list | tuple) else reflections
        )
        self.spectral_margin = spectral_margin
        self.spectral_center = center
        check_makes("kernel_initializer", self.kernel_initializer, "reflectors")

    def build_kernel(self) -> None:
        """Creates the reflectors, and the singular values or their logits."""
        features, rank = self._shape[0], min(self._shape)
        if not features:
            raise ValueError(
                "The last axis of the input of `SVDDense` must not be empty. "
                f"Received: m={features}"
            )
        self._reflections = check_pair(self.reflections, rank)
        free = self.spectral_margin is None
        make: Any = self.kernel_initializer
        if isinstance(make, FreeInitializer):
            start = self.spectral_center if free else 0.0
            make_weights = [
                unit_length(make, features),
                unit_length(independent(make), self.units),
                keras.initializers.Constant(start),
            ]
        else:
            check_invertible(self._reflections, rank)
            make_weights = initializers_from_matrix(
                "kernel_initializer",
                make,
                self._shape,
                self._free_variables,
                3,
                self.factorization_dtype,
            )
        sizes = [
            num_reflector_entries(size, number)
            for size, number in zip(self._shape, self._reflections, strict=True)
        ]
        # Multiplied in the precision of the variables.
        self.kernel_left_reflectors, self.kernel_right_reflectors = (
            self.add_weight(
                shape=(size,), name=name, initializer=initializer, autocast=False
            )
            for name, size, initializer in zip(
                ("kernel_left_reflectors", "kernel_right_reflectors"),
                sizes,
                make_weights[:2],
                strict=True,
            )
        )
        self.singular = self.add_weight(
            shape=(rank,),
            name="kernel_singular_values" if free else "kernel_singular_logits",
            initializer=make_weights[2],
            regularizer=self.kernel_regularizer,
            autocast=False,
        )

    def _free_variables(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        left, right, values = svd_inverse(matrix)
        if self.spectral_margin is None:
            return left, right, values
        margin, center = self.spectral_margin, self.spectral_center
        return left, right, bounded_logits(values, margin, center, matrix.dtype)

    def kernel_matrix(self) -> Tensor:
        """Makes the kernel `W = L Sigma R^T` from its variables.

        Returns:
            Tensor of shape `(m, n)` in the dtype of the variables and at least
            float32.

        Raises:
            ValueError: If the layer is not built.
        """
        checks.check_built(self)
        left, right, values = (
            ops.cast(variable, self.factorization_dtype)
            for variable in (
                self.kernel_left_reflectors,
                self.kernel_right_reflectors,
                self.singular,
            )
        )
        if self.spectral_margin is not None:
            values = bounded_singular_values(
                values, self.spectral_margin, self.spectral_center
            )
        return svd_matrix(left, right, values, self._shape)

    def set_kernel_matrix(self, matrix: Tensor | np.ndarray) -> None:
        """Sets the reflectors and singular values so that `W` is a given matrix.

        Args:
            matrix: Tensor or array of shape `(m, n)`, whose singular values lie in
                their interval, where there is one.

        Raises:
            ValueError: If the layer is not built, the matrix is of another shape or
                has other singular values, or the layer has fewer than `min(m, n)`
                reflectors on a side.
        """
        checks.check_built(self)
        check_invertible(self._reflections, min(self._shape))
        matrix = ops.convert_to_numpy(matrix)
        checks.check_shape("matrix", matrix, self._shape)
        left, right, values = self._free_variables(matrix)
        self.kernel_left_reflectors.assign(left)
        self.kernel_right_reflectors.assign(right)
        self.singular.assign(values)

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal layer."""
        return self._config_of(SVDDense)  # A subclass adds its own.
