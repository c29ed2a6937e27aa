"""The weights of a step, which are the same at every step of a sequence."""

import dataclasses
from collections.abc import Callable

from keras_ortho.backend.types import Tensor
from keras_ortho.recurrence.blocks import times, times_at_all_steps
from keras_ortho.recurrence.updates import Products, Update


@dataclasses.dataclass(frozen=True)
class Weights:
    """The weights of a step, and the update that it computes with them.

    Each kernel is a matrix, or the blocks of a block-diagonal matrix, see
    `keras_ortho.recurrence.blocks`.

    Attributes:
        kernels: Input kernels `U`, of shape `(m, n)` or with a multiple of `n` columns.
        recurrent_kernels: Recurrent kernels `W`, of shape `(n, n)` or with a multiple
            of `n` columns, for row vectors.
        biases: One bias for each input kernel.
        update: Computes the state from the products.
        adds: Whether the step adds to the state before it. Recurrent dropout then does
            not affect that term. Default: `False`.
    """

    kernels: tuple[Tensor, ...]
    recurrent_kernels: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    update: Update
    adds: bool = False

    def tensors(self) -> tuple[Tensor, ...]:
        """Returns the kernels, the recurrent kernels and the biases in one tuple."""
        return (*self.kernels, *self.recurrent_kernels, *self.biases)

    def project(self, inputs: Tensor) -> list[Tensor]:
        """Multiplies the inputs of one step by the input kernels.

        Args:
            inputs: Tensor of shape `(batch, m)`.

        Returns:
            `x U` for each input kernel, plus the bias unless the activation adds it.
        """
        return self._project(inputs, times)

    def project_all_steps(self, inputs: Tensor) -> list[Tensor]:
        """Multiplies the inputs of all steps by the input kernels.

        Args:
            inputs: Tensor of shape `(time, batch, m)`.

        Returns:
            The same as `project`, for all steps.
        """
        return self._project(inputs, times_at_all_steps)

    def after(
        self, projected: list[Tensor], state: Tensor, dropped: Tensor
    ) -> tuple[Tensor, ...]:
        """Computes the state after a step.

        Args:
            projected: The products that `project` returned.
            state: The state before the step, of shape `(batch, n)`.
            dropped: That state after recurrent dropout.

        Returns:
            The state, followed by the other tensors that the derivative needs.
        """
        products = [times(dropped, kernel) for kernel in self.recurrent_kernels]
        own = state if self.adds else dropped
        return self.update.apply(Products(projected, products, own, self.biases))

    def _project(
        self, inputs: Tensor, product: Callable[[Tensor, Tensor], Tensor]
    ) -> list[Tensor]:
        all_weights = zip(self.kernels, self.biases, self.update.own_bias, strict=True)
        projected = []
        for kernel, bias, is_inside in all_weights:
            each = product(inputs, kernel)
            projected.append(each if is_inside else each + bias)
        return projected
