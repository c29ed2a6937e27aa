"""How a step computes its state from products with the weights, and its gradients."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.recurrence.blocks import times
from keras_ortho.recurrence.pointwise import Kinds, Pointwise, Tensors


@dataclasses.dataclass(frozen=True)
class Products:
    """The tensors from which a step computes its state.

    Attributes:
        inputs: The products `x U` with each input kernel, whose last axis is `n` or a
            multiple of it, with the biases unless the activation adds them.
        states: The products `h W` of the state before the step.
        state: The state before the step, of shape `(batch, n)`.
        biases: The biases.
    """

    inputs: Sequence[Tensor]
    states: Sequence[Tensor]
    state: Tensor
    biases: Tensors


# Those of `Update.pull`.
Gradients: TypeAlias = tuple[Tensors, Tensors, Tensor | None]


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

    def apply(self, products: Products) -> Tensors:
        """Computes the state, followed by the other tensors that `pull` needs."""
        raise NotImplementedError

    def kept(self, size: int, dtype: str) -> Kinds:
        """Describes the tensors that `apply` returns, see `Pointwise.kept`."""
        extras = ((width * size, dtype) for width in self.extras)
        return (size, dtype), *self.activation.kept(size, dtype), *extras

    def pull(self, kept: Tensors, biases: Tensors, upstream: Tensor) -> Gradients:
        """Computes the gradients with respect to the products, biases and state.

        Args:
            kept: The tensors that `apply` returned.
            biases: The biases.
            upstream: Upstream gradient, with respect to the new state.

        Returns:
            The distinct gradients with respect to the products; those with respect to
            the biases, for each sequence; and that with respect to the state before the
            step, without what flows through the products, or `None` if nothing else
            does.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Plain(Update):
    """`h' = f(x U + h W)`."""

    def apply(self, products: Products) -> Tensors:
        """See `Update`."""
        z = products.inputs[0] + products.states[0]
        return self.activation.apply(z, products.biases[0])

    def kept(self, size: int, dtype: str) -> Kinds:
        """Same as for the activation, whose output is the state: see `Update`."""
        return self.activation.kept(size, dtype)

    def pull(self, kept: Tensors, biases: Tensors, upstream: Tensor) -> Gradients:
        """See `Update`."""
        gradient, to_bias = self.activation.pull(kept, biases[0], upstream)
        return (gradient,), (to_bias,), None


@dataclasses.dataclass(frozen=True)
class ResetAndUpdate(Update):
    """The gated step of GORU, `h' = g h + (1 - g) f(x U + r (h W))`.

    The gates are `r, g = sigmoid(x U' + h W')`, the reset gate first.
    """

    # The gradients with respect to `x U`, `h W`, and the pre-activation of the gates.
    widths, of_inputs, of_states = (1, 1, 2), (0, 2), (1, 2)
    # `1 - r` and `g`, `h W`, and `h - c`.
    extras = (2, 1, 1)

    def apply(self, products: Products) -> Tensors:
        """See `Update`."""
        (of_candidate, of_gates), (turned, in_gates) = products.inputs, products.states
        of_reset, of_update = ops.split(of_gates + in_gates, 2, axis=-1)
        # `1 - r`: in low precision, `r` of an open gate is 1, and has no derivative.
        gates = ops.sigmoid(ops.concatenate([-of_reset, of_update], axis=-1))
        shut, update = ops.split(gates, 2, axis=-1)
        value, *rest = self.activation.apply(
            of_candidate + (1.0 - shut) * turned, products.biases[0]
        )
        # Not `c + g (h - c)`, which in low precision loses a state that is to be kept.
        after = update * products.state + (1.0 - update) * value
        return after, value, *rest, gates, turned, products.state - value

    def pull(self, kept: Tensors, biases: Tensors, upstream: Tensor) -> Gradients:
        """See `Update`."""
        _, *candidate, gates, turned, difference = kept
        shut, update = ops.split(gates, 2, axis=-1)
        to_input, to_bias = self.activation.pull(
            tuple(candidate), biases[0], upstream * (1.0 - update)
        )
        to_gates = ops.concatenate([to_input * turned, upstream * difference], axis=-1)
        to_gates = to_gates * gates * (1.0 - gates)
        to_products = to_input, to_input * (1.0 - shut), to_gates
        return to_products, (to_bias, to_gates), upstream * update


@dataclasses.dataclass(frozen=True)
class Euler(Update):
    """A step of the forward Euler method, `h' = h + e f(x U + h W)`.

    Attributes:
        step_size: The step size `e`.
    """

    step_size: float

    def apply(self, products: Products) -> Tensors:
        """See `Update`."""
        # After rounding, the state does not determine the change.
        z = products.inputs[0] + products.states[0]
        change = self.activation.apply(z, products.biases[0])
        return products.state + self.step_size * change[0], *change

    def pull(self, kept: Tensors, biases: Tensors, upstream: Tensor) -> Gradients:
        """See `Update`."""
        gradient, to_bias = self.activation.pull(
            kept[1:], biases[0], self.step_size * upstream
        )
        return (gradient,), (to_bias,), upstream


@dataclasses.dataclass(frozen=True)
class GatedEuler(Euler):
    """A gated Euler step, `h' = h + e sigmoid(x U' + h W) f(x U + h W)`."""

    # The gradients with respect to `x U`, `x U'`, and `h W`, which is in both.
    widths, of_inputs, of_states = (1, 1, 1), (0, 1), (2,)
    # The gate.
    extras = (1,)

    def apply(self, products: Products) -> Tensors:
        """See `Update`."""
        (of_change, of_gate), (turned,) = products.inputs, products.states
        gate = ops.sigmoid(of_gate + turned)
        change = self.activation.apply(of_change + turned, products.biases[0])
        return products.state + self.step_size * gate * change[0], *change, gate

    def pull(self, kept: Tensors, biases: Tensors, upstream: Tensor) -> Gradients:
        """See `Update`."""
        _, *change, gate = kept
        scaled = self.step_size * upstream
        to_input, to_bias = self.activation.pull(
            tuple(change), biases[0], scaled * gate
        )
        to_gate = scaled * change[0] * gate * (1.0 - gate)
        to_products = to_input, to_gate, to_input + to_gate
        return to_products, (to_bias, to_gate), upstream


@dataclasses.dataclass(frozen=True)
class Weights:
    """The weights of a step, and the update that it computes with them.

    Attributes:
        kernels: Input kernels `U`, of shape `(m, n)` or with a multiple of `n` columns,
            or the blocks of a block-diagonal matrix.
        recurrent_kernels: Likewise recurrent kernels `W`, for row vectors.
        biases: One bias for each input kernel.
        update: Computes the state from the products.
        adds: Whether the step adds to the state before it. Recurrent dropout then does
            not affect that term. Default: `False`.
    """

    kernels: Tensors
    recurrent_kernels: Tensors
    biases: Tensors
    update: Update
    adds: bool = False

    def project(self, inputs: Tensor) -> list[Tensor]:
        """Multiplies the inputs of a step, or of all steps, by the input kernels."""
        # The activation may add the first bias.
        own = int(self.update.activation.own_bias)
        products = [times(inputs, kernel) for kernel in self.kernels]
        others = zip(products[own:], self.biases[own:], strict=True)
        return products[:own] + [product + bias for product, bias in others]

    def after(
        self, projected: Sequence[Tensor], state: Tensor, dropped: Tensor
    ) -> Tensors:
        """Computes the state after a step."""
        products = [times(dropped, kernel) for kernel in self.recurrent_kernels]
        own = state if self.adds else dropped
        return self.update.apply(Products(projected, products, own, self.biases))
