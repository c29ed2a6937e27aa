"""How a step computes its state from products with the weights, and its gradients.

A step multiplies its inputs by each input kernel, `x U`, and the state before it by
each recurrent kernel, `h W`. All other operations act on each unit separately, except
for activations that act on pairs.
"""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.recurrence.blocks import times, times_at_all_steps
from keras_ortho.recurrence.pointwise import Pointwise


@dataclasses.dataclass(frozen=True)
class Products:
    """The tensors from which a step computes its state.

    Attributes:
        inputs: The products with the input kernels, whose last axis is `n` or a
            multiple of it, with the biases unless the activation adds them.
        states: The products of the state before the step with the recurrent kernels.
        state: The state before the step, of shape `(batch, n)`.
        biases: The biases.
    """

    inputs: list[Tensor]
    states: list[Tensor]
    state: Tensor
    biases: tuple[Tensor, ...]


@dataclasses.dataclass(frozen=True)
class Pulled:
    """The gradients of a step.

    Attributes:
        gradients: The distinct gradients with respect to the products.
            `Update.of_inputs` and `Update.of_states` assign them to the products.
        to_biases: Gradients with respect to the biases, for each sequence.
        to_state: Gradient with respect to the state before the step, without the part
            that flows through the products, or `None` if there is no other part.
    """

    gradients: tuple[Tensor, ...]
    to_biases: tuple[Tensor, ...]
    to_state: Tensor | None = None


@dataclasses.dataclass(frozen=True)
class Update:
    """Computes the state of a step from its products, with the derivative.

    Attributes:
        activation: The activation.
        widths: For each gradient of `pull`, its width divided by that of the state.
        of_inputs: For each input kernel, and its bias, the index of its gradient.
        of_states: For each recurrent kernel, the index of its gradient.
        extras: The widths, also divided by that of the state, of the tensors that
            `apply` returns after the state and the tensors of the activation.
    """

    activation: Pointwise
    widths: ClassVar[tuple[int, ...]] = (1,)
    of_inputs: ClassVar[tuple[int, ...]] = (0,)
    of_states: ClassVar[tuple[int, ...]] = (0,)
    extras: ClassVar[tuple[int, ...]] = ()

    @property
    def own_bias(self) -> tuple[bool, ...]:
        """For each bias, whether the activation adds it, rather than `x U` has it."""
        others = len(self.of_inputs) - 1
        return (self.activation.own_bias, *[False] * others)

    def apply(self, products: Products) -> tuple[Tensor, ...]:
        """Computes the state.

        Args:
            products: The products of the step.

        Returns:
            The state, followed by the other tensors that the derivative needs: see
            `kept`.
        """
        raise NotImplementedError

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Describes the tensors that `apply` returns, see `Pointwise.kept`."""
        extras = ((width * size, dtype) for width in self.extras)
        return (size, dtype), *self.activation.kept(size, dtype), *extras

    def pull(
        self, kept: tuple[Tensor, ...], biases: tuple[Tensor, ...], upstream: Tensor
    ) -> Pulled:
        """Computes the gradients with respect to the products, biases and state.

        Args:
            kept: The tensors that `apply` returned.
            biases: The biases.
            upstream: Upstream gradient, with respect to the new state.

        Returns:
            The gradients.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Plain(Update):
    """`h' = f(x U + h W)`."""

    def apply(self, products: Products) -> tuple[Tensor, ...]:
        """Computes the state: see `Update`."""
        z = products.inputs[0] + products.states[0]
        return self.activation.apply(z, products.biases[0])

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Same as for the activation, whose output is the state: see `Update`."""
        return self.activation.kept(size, dtype)

    def pull(
        self, kept: tuple[Tensor, ...], biases: tuple[Tensor, ...], upstream: Tensor
    ) -> Pulled:
        """Computes the gradients of the activation: see `Update`."""
        gradient, to_bias = self.activation.pull(kept, biases[0], upstream)
        return Pulled((gradient,), (to_bias,))


@dataclasses.dataclass(frozen=True)
class ResetAndUpdate(Update):
    """The gated step of GORU, the reset gate first.

    With `r, g = sigmoid(x U' + h W')` and the candidate `c = f(x U + r (h W))`, the
    state is `h' = g h + (1 - g) c`. There are separate gradients with respect to `x U`,
    `h W`, and the pre-activation of the gates.

    Reference:

    - [Jing et al., 2019](https://doi.org/10.1162/neco_a_01174)
    """

    widths, of_inputs, of_states = (1, 1, 2), (0, 2), (1, 2)
    # The gates, `h W`, and `h - c`.
    extras = (2, 1, 1)

    def apply(self, products: Products) -> tuple[Tensor, ...]:
        """Computes the state: see `Update`."""
        (of_candidate, of_gates), (turned, in_gates) = products.inputs, products.states
        gates = ops.sigmoid(of_gates + in_gates)
        reset, update = ops.split(gates, 2, axis=-1)
        value, *rest = self.activation.apply(
            of_candidate + reset * turned, products.biases[0]
        )
        # Not `c + g (h - c)`, which in low precision loses a state that is to be kept.
        after = update * products.state + (1.0 - update) * value
        return after, value, *rest, gates, turned, products.state - value

    def pull(
        self, kept: tuple[Tensor, ...], biases: tuple[Tensor, ...], upstream: Tensor
    ) -> Pulled:
        """Goes back through the candidate and the gates: see `Update`."""
        _, *candidate, gates, turned, difference = kept
        reset, update = ops.split(gates, 2, axis=-1)
        to_input, to_bias = self.activation.pull(
            tuple(candidate), biases[0], upstream * (1.0 - update)
        )
        to_gates = ops.concatenate([to_input * turned, upstream * difference], axis=-1)
        to_gates = to_gates * gates * (1.0 - gates)
        return Pulled(
            (to_input, to_input * reset, to_gates),
            (to_bias, to_gates),
            upstream * update,
        )


@dataclasses.dataclass(frozen=True)
class Euler(Update):
    """A step of the forward Euler method, `h' = h + e f(x U + h W)`.

    The change `f(x U + h W)` is kept: after rounding, the state does not determine it.

    Attributes:
        step_size: The step size `e`.

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), equation 12
    """

    step_size: float

    def apply(self, products: Products) -> tuple[Tensor, ...]:
        """Computes the state: see `Update`."""
        z = products.inputs[0] + products.states[0]
        change = self.activation.apply(z, products.biases[0])
        return products.state + self.step_size * change[0], *change

    def pull(
        self, kept: tuple[Tensor, ...], biases: tuple[Tensor, ...], upstream: Tensor
    ) -> Pulled:
        """Goes back through the change: see `Update`."""
        gradient, to_bias = self.activation.pull(
            kept[1:], biases[0], self.step_size * upstream
        )
        return Pulled((gradient,), (to_bias,), upstream)


@dataclasses.dataclass(frozen=True)
class GatedEuler(Euler):
    """A gated Euler step, `h' = h + e sigmoid(x U' + h W) f(x U + h W)`.

    There are separate gradients with respect to `x U`, `x U'`, and `h W`, which occurs
    in both the gate and the change.

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), equation 13
    """

    widths, of_inputs, of_states = (1, 1, 1), (0, 1), (2,)
    # The gate.
    extras = (1,)

    def apply(self, products: Products) -> tuple[Tensor, ...]:
        """Computes the state: see `Update`."""
        (of_change, of_gate), (turned,) = products.inputs, products.states
        gate = ops.sigmoid(of_gate + turned)
        change = self.activation.apply(of_change + turned, products.biases[0])
        return products.state + self.step_size * gate * change[0], *change, gate

    def pull(
        self, kept: tuple[Tensor, ...], biases: tuple[Tensor, ...], upstream: Tensor
    ) -> Pulled:
        """Goes back through the change and the gate: see `Update`."""
        _, *change, gate = kept
        scaled = self.step_size * upstream
        to_input, to_bias = self.activation.pull(
            tuple(change), biases[0], scaled * gate
        )
        to_gate = scaled * change[0] * gate * (1.0 - gate)
        return Pulled(
            (to_input, to_gate, to_input + to_gate), (to_bias, to_gate), upstream
        )


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
        """Multiplies the inputs of one step by the input kernels."""
        return self._project(inputs, times)

    def project_all_steps(self, inputs: Tensor) -> list[Tensor]:
        """Multiplies the inputs of all steps by the input kernels."""
        return self._project(inputs, times_at_all_steps)

    def after(
        self, projected: list[Tensor], state: Tensor, dropped: Tensor
    ) -> tuple[Tensor, ...]:
        """Computes the state after a step."""
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
