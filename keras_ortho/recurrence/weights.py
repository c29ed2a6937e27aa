"""What is the same at every step of a sequence."""

import dataclasses
from collections.abc import Callable

from keras_ortho.backend.types import Tensor
from keras_ortho.recurrence.blocks import times, times_at_all_steps
from keras_ortho.recurrence.updates import Products, Update


@dataclasses.dataclass(frozen=True)
class Weights:
    """The weights of a step, and what it does with the products.

    A kernel is a matrix, or the blocks of a block-diagonal one as
    `keras_ortho.recurrence.blocks` takes them.

    Attributes:
        kernels: Input kernels `U`, of shape `(m, n)` or a multiple of `n`.
        recurrent_kernels: Recurrent kernels `W`, of shape `(n, n)` or a multiple of
            `n`, for row vectors.
        biases: A bias for each input kernel.
        update: From the products to the state.
        adds: Whether the step adds to the state before it. Recurrent dropout then
            leaves that summand alone. Default: `False`.
    """

    kernels: tuple[Tensor, ...]
    recurrent_kernels: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    update: Update
    adds: bool = False

    def tensors(self) -> tuple[Tensor, ...]:
        """Gives all weights in a row."""
        return (*self.kernels, *self.recurrent_kernels, *self.biases)

    def project(self, inputs: Tensor) -> list[Tensor]:
        """Computes the products of the inputs of a step.

        Args:
            inputs: Tensor of shape `(batch, m)`.

        Returns:
            `x U` for each input kernel, with the bias unless that is inside.
        """
        return self._project(inputs, times)

    def project_all_steps(self, inputs: Tensor) -> list[Tensor]:
        """Computes the products of the inputs of all steps.

        Args:
            inputs: Tensor of shape `(time, batch, m)`.

        Returns:
            As `project`.
        """
        return self._project(inputs, times_at_all_steps)

    def after(
        self, projected: list[Tensor], state: Tensor, dropped: Tensor
    ) -> tuple[Tensor, ...]:
        """Makes the state of a step.

        Args:
            projected: What `project` gives.
            state: The state before, of shape `(batch, n)`.
            dropped: The same with what recurrent dropout leaves of it.

        Returns:
            The state, and what the derivative needs besides.
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
