"""A dense layer whose kernel is parametrized by its singular value decomposition."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.backend.types import Tensor
from keras_ortho.layers.parametrized_dense import ParametrizedDense
from keras_ortho.parametrizations.free_initializers import (
    FreeInitializer,
    check_makes,
    independent,
    initializers_from_matrix,
)
from keras_ortho.parametrizations.householder import (
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
    """Dense layer with a kernel `W = L Sigma R^T` of explicit singular values.

    The output is `activation(x W + b)`, for any number of inputs `m` and outputs `n`.
    `L` and `R` are each a product of at most `p = min(m, n)` Householder reflectors;
    `p` of them suffice for every kernel. The `p` singular values are trained freely, or
    kept within a margin. With a small margin, deep stacks of these layers preserve
    signals and gradients: the svdMLP and svdResNet.

    Args:
        units: Number of outputs `n`, a positive integer.
        reflections: Number of reflectors of `L` and of `R`: an int in `1 .. p` for
            both, or a pair. Default: `None`, all `p`.
        spectral_margin: Largest deviation of the singular values from
            `spectral_center`, at least 0. If 0, they stay at the center.
            Default: `None`, no limit.
        spectral_center: Positive float, initial value of the singular values and
            center of their interval. Default: 1.
        activation: Activation of the output. Default: `None`.
        use_bias: Whether there is a bias. Default: `True`.
        kernel_initializer: Initializer of the reflectors of `L` and, with the next
            seed, of `R`. The reflectors are then scaled to length 1. With all `p`
            reflectors, also an array or any Keras initializer that yields a matrix,
            with singular values in their interval, to which the inverse map is
            applied. Default: `"uniform_reflectors"`.
        bias_initializer: Initializer of the bias. Default: `"zeros"`.
        kernel_regularizer: Regularizer of the singular values (the sum of their squares
            is that of the kernel's entries), or with a margin, of their logits, which
            are 0 at the center. Default: `None`.
        bias_regularizer: Regularizer of the bias. Default: `None`.
        activity_regularizer: Regularizer of the output. Default: `None`.
        bias_constraint: Constraint of the bias. Default: `None`.
        **kwargs: Base layer keyword arguments, such as `name` and `dtype`.

    Input shape:
        `(batch, ..., m)`, with `m` known.

    Output shape:
        `(batch, ..., n)`.

    Weights:
        `kernel_left_reflectors`, packed with the longest first, of shape
        `(m k - k (k - 1) / 2,)` for `k` reflectors; `kernel_right_reflectors`, the same
        with `n` instead of `m`; `kernel_singular_values`, or with a margin
        `kernel_singular_logits`, of shape `(p,)`; `bias` of shape `(n,)`.

    Raises:
        ValueError: If an argument is out of range; in `build`, if there are more than
            `p` reflectors, the inputs have no features, or the layer cannot represent
            the matrix that `kernel_initializer` yields.

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
        # `p` is at most `units`, whatever the number of inputs.
        check_pair(reflections, self.units)
        # A config stores a pair as a list.
        self.reflections = (
            list(reflections) if isinstance(reflections, list | tuple) else reflections
        )
        self.spectral_margin = spectral_margin
        self.spectral_center = center
        check_makes("kernel_initializer", self.kernel_initializer, "reflectors")

    def build_kernel(self) -> None:
        """Creates the reflectors and the singular values or their logits."""
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
        # No autocast: they are multiplied in the precision of the variables.
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
        """Computes the kernel `W = L Sigma R^T` from its variables.

        Returns:
            Tensor of shape `(m, n)` in the dtype of the variables, but at least
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
        """Sets the reflectors and singular values so that `W` equals `matrix`.

        Args:
            matrix: Tensor or array of shape `(m, n)`. With a margin, its singular
                values must lie in their interval.

        Raises:
            ValueError: If the layer is not built, `matrix` has another shape or
                singular values outside the interval, or `L` or `R` has fewer than
                `min(m, n)` reflectors.
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
        """Returns the arguments that recreate the layer."""
        return self._config_of(SVDDense)  # Subclasses add their own arguments.
