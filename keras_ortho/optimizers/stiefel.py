"""Gradient descent along the unitary matrices."""

from typing import Any

import keras
from keras import ops

from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.replicas import clip_over_replicas
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check, check_fraction, check_number
from keras_ortho.parametrizations.arithmetic import (
    adjoint,
    block,
    factorized,
    left_half,
    limited,
    of_left_half,
    product,
)
from keras_ortho.parametrizations.unitary import keeping_unitary


@keras.saving.register_keras_serializable(package="keras_ortho")
class StiefelDescent(keras.optimizers.Optimizer):
    """Optimizer that moves complex unitary matrices along the Stiefel manifold.

    With the gradient `G = dL/dRe W + i dL/dIm W` and `B = G W* - W G*`, a step is

        W <- (I + lr/2 B)^-1 (I - lr/2 B) W,

    which keeps `W` unitary but for rounding, of about `n eps` per step. The variables
    must have the shape `(2, n, n)`, for the real and the imaginary part, as in
    `FullURNN`; `paper_optimizer` trains the others by other optimizers.

    Args:
        learning_rate: Learning rate, a float or a schedule. Default: 0.001.
        rms_scaling: Whether to divide each entry of the gradient by the root of a
            moving average of its squares. The authors then use a learning rate of 1e-6.
            Default: `False`.
        rho: Decay rate of the moving average. Default: 0.9.
        epsilon: Number added to the root. Default: 1e-8.
        reproject: Whether to move `W` back to the unitary matrices after each step, as
            `W (3 I - W* W) / 2`, unlike the authors. Default: `False`.
        **kwargs: Other arguments of `keras.optimizers.Optimizer`, except for
            `weight_decay` and `use_ema`, which would leave the manifold.

    Raises:
        ValueError: If an argument is out of range, or a variable has another shape.

    Example:
    >>> optimizer = StiefelDescent(1e-6, rms_scaling=True)

    Reference:
    - [Wisdom et al., 2016](https://arxiv.org/abs/1611.00035), equation 6, after
      [Tagare, 2011](https://noodle.med.yale.edu/~hdtag/notes/steifel_notes.pdf)
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rms_scaling: bool = False,
        rho: float = 0.9,
        epsilon: float = 1e-8,
        reproject: bool = False,
        **kwargs: Any,
    ) -> None:
        rho, epsilon = check_fraction("rho", rho), check_number("epsilon", epsilon)
        wanted = "not be set: the matrix would not stay unitary"
        for name in ("weight_decay", "use_ema"):
            given = kwargs.get(name)
            check(not given, name, wanted, f"{name}={given}")
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.rms_scaling = rms_scaling
        self.rho = rho
        self.epsilon = epsilon
        self.reproject = reproject

    def build(self, variables: list[Any]) -> None:
        """Creates the optimizer variables."""
        if self.built:
            return
        for variable in variables:
            shape = tuple(variable.shape)
            fits = len(shape) == 3 and shape[0] == 2 and shape[1] == shape[2]
            wanted = "be of shape (2, n, n): `paper_optimizer` trains the others, too"
            check(fits, "variables", wanted, f"{variable.path} of shape {shape}")
        super().build(variables)
        if self.rms_scaling:
            self._accumulators = self.add_optimizer_variables(variables, "accumulator")

    def apply(self, grads: list[Any], trainable_variables: Any = None) -> None:
        """Updates the matrices with their gradients."""
        with keeping_unitary():
            super().apply(clip_over_replicas(self, grads), trainable_variables)

    def update_step(self, gradient: Tensor, variable: Any, learning_rate: Any) -> None:
        """Updates one matrix."""
        dtype = wide_dtype(variable.dtype)
        gradient = ops.cast(gradient, dtype)
        if self.rms_scaling:
            slot = self._accumulators[self._get_variable_index(variable)]
            average = ops.cast(slot, dtype)
            average = self.rho * average + (1 - self.rho) * gradient * gradient
            self.assign(slot, ops.cast(average, slot.dtype))
            gradient = gradient / (ops.sqrt(average) + self.epsilon)
        matrix = _rows(ops.cast(variable, dtype))
        half_rate = ops.cast(learning_rate, dtype) / 2
        matrix = _cayley_step(matrix, half_rate * _rows(gradient))
        if self.reproject:
            gram = product(adjoint(matrix), matrix)
            matrix = 1.5 * matrix - 0.5 * product(matrix, gram)
        parts = ops.stack(ops.split(matrix, 2, axis=1))
        self.assign(variable, ops.cast(parts, variable.dtype))

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the optimizer."""
        names = "rms_scaling", "rho", "epsilon", "reproject"
        return super().get_config() | {name: getattr(self, name) for name in names}


def _cayley_step(matrix: Tensor, direction: Tensor) -> Tensor:
    """Returns the rows of `(I + K)^-1 (I - K) W` with `K = E W* - W E*`."""
    size = matrix.shape[0]
    along = product(direction, adjoint(matrix))
    # A step by a huge gradient is shortened, and one by NaN gives NaN.
    skew = block(*limited(along - adjoint(along)))
    identity = ops.eye(2 * size, dtype=matrix.dtype)
    half = ops.matmul(identity - skew, left_half(matrix))
    return of_left_half(factorized(ops.solve, identity + skew, half))


def _rows(parts: Tensor) -> Tensor:
    return ops.concatenate([parts[0], parts[1]], axis=1)
