"""How a step makes its state from products with the weights, and the way back.

A step has a product of its inputs with each input kernel, `x U`, and one of the state
before it with each recurrent kernel, `h W`. What it does with them works on each unit
by itself.
"""

import dataclasses
from typing import ClassVar

from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.recurrence.pointwise import Pointwise


@dataclasses.dataclass(frozen=True)
class Pulled:
    """The gradient of a step.

    Attributes:
        gradients: One for each distinct gradient with respect to a product:
            `Update.of_inputs` and `Update.of_states` say which is whose.
        to_biases: With respect to the biases of each sequence.
        to_state: With respect to the state before, beside those through the products;
            or `None`.
    """

    gradients: tuple[Tensor, ...]
    to_biases: tuple[Tensor, ...]
    to_state: Tensor | None = None


@dataclasses.dataclass(frozen=True)
class Update:
    """From the products of a step to its state, with the derivative.

    Attributes:
        activation: The activation.
        of_inputs: For each input kernel, and its bias, the index of its gradient.
        of_states: For each recurrent kernel, the index of its gradient.
    """

    activation: Pointwise
    of_inputs: ClassVar[tuple[int, ...]]
    of_states: ClassVar[tuple[int, ...]]

    @property
    def own_bias(self) -> tuple[bool, ...]:
        """For each bias, whether the activation adds it, rather than `x U` has it."""
        others = len(self.of_inputs) - 1
        return (self.activation.own_bias, *[False] * others)

    def apply(
        self,
        inputs: list[Tensor],
        products: list[Tensor],
        state: Tensor,
        biases: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...]:
        """Makes the state.

        Args:
            inputs: The products with the input kernels, of shape `(batch, n)` or a
                multiple of `n`, with the biases unless those are inside.
            products: The products with the recurrent kernels.
            state: The state before, of shape `(batch, n)`.
            biases: The biases.

        Returns:
            The state, and what the derivative needs besides: see `kept`.
        """
        raise NotImplementedError

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Describes what `apply` gives.

        Args:
            size: Entries of the state of a sequence.
            dtype: That of the state.

        Returns:
            For each tensor, the state first, its entries for a sequence and its dtype.
        """
        raise NotImplementedError

    def sizes(self, size: int) -> tuple[int, ...]:
        """Describes the gradients of `pull`.

        Args:
            size: Entries of the state of a sequence.

        Returns:
            For each, its entries for a sequence.
        """
        raise NotImplementedError

    def pull(
        self, kept: tuple[Tensor, ...], biases: tuple[Tensor, ...], upstream: Tensor
    ) -> Pulled:
        """Takes the gradient of a step from its state to what it was made of.

        Args:
            kept: What `apply` gave.
            biases: The biases.
            upstream: Gradient with respect to the state.

        Returns:
            The gradients.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Plain(Update):
    """`h' = f(x U + h W)`."""

    of_inputs = of_states = (0,)

    def apply(
        self,
        inputs: list[Tensor],
        products: list[Tensor],
        state: Tensor,
        biases: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...]:
        """Makes the state: see `Update`."""
        return self.activation.apply(inputs[0] + products[0], biases[0])

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """As the activation: see `Update`."""
        return self.activation.kept(size, dtype)

    def sizes(self, size: int) -> tuple[int, ...]:
        """One for both products: see `Update`."""
        return (size,)

    def pull(
        self, kept: tuple[Tensor, ...], biases: tuple[Tensor, ...], upstream: Tensor
    ) -> Pulled:
        """As the activation: see `Update`."""
        gradient, to_bias = self.activation.pull(kept, biases[0], upstream)
        return Pulled((gradient,), (to_bias,))


@dataclasses.dataclass(frozen=True)
class ResetAndUpdate(Update):
    """The gates of GORU, the reset gate first.

    With `r, g = sigmoid(x U' + h W')` and the candidate `c = f(x U + r (h W))` the
    state is `h' = g h + (1 - g) c`.
    """

    of_inputs, of_states = (0, 2), (1, 2)

    def apply(
        self,
        inputs: list[Tensor],
        products: list[Tensor],
        state: Tensor,
        biases: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...]:
        """Makes the state: see `Update`."""
        gates = ops.sigmoid(inputs[1] + products[1])
        reset, update = ops.split(gates, 2, axis=-1)
        candidate = self.activation.apply(inputs[0] + reset * products[0], biases[0])
        # Not `c + g (h - c)`, which in few bits loses a state that is to be kept.
        after = update * state + (1.0 - update) * candidate[0]
        return after, *candidate, gates, products[0], state - candidate[0]

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Has the factors of the elementwise products: see `Update`."""
        one = (size, dtype)
        candidate = self.activation.kept(size, dtype)
        return one, *candidate, (2 * size, dtype), one, one

    def sizes(self, size: int) -> tuple[int, ...]:
        """Of `x U`, of `h W`, and of the sum in the gates: see `Update`."""
        return size, size, 2 * size

    def pull(
        self, kept: tuple[Tensor, ...], biases: tuple[Tensor, ...], upstream: Tensor
    ) -> Pulled:
        """Goes through the candidate and the gates: see `Update`."""
        _, *candidate, gates, product, difference = kept
        reset, update = ops.split(gates, 2, axis=-1)
        to_input, to_bias = self.activation.pull(
            tuple(candidate), biases[0], upstream * (1.0 - update)
        )
        to_gates = ops.concatenate([to_input * product, upstream * difference], axis=-1)
        to_gates = to_gates * gates * (1.0 - gates)
        return Pulled(
            (to_input, to_input * reset, to_gates),
            (to_bias, to_gates),
            upstream * update,
        )


@dataclasses.dataclass(frozen=True)
class Euler(Update):
    """A step of Euler's forward method, `h' = h + e f(x U + h W)`.

    Attributes:
        step_size: `e`.
    """

    of_inputs: ClassVar[tuple[int, ...]] = (0,)
    of_states: ClassVar[tuple[int, ...]] = (0,)

    step_size: float

    def apply(
        self,
        inputs: list[Tensor],
        products: list[Tensor],
        state: Tensor,
        biases: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...]:
        """Makes the state: see `Update`."""
        change = self.activation.apply(inputs[0] + products[0], biases[0])
        return state + self.step_size * change[0], *change

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Has the change, which rounding hides in the state: see `Update`."""
        return (size, dtype), *self.activation.kept(size, dtype)

    def sizes(self, size: int) -> tuple[int, ...]:
        """One for both products: see `Update`."""
        return (size,)

    def pull(
        self, kept: tuple[Tensor, ...], biases: tuple[Tensor, ...], upstream: Tensor
    ) -> Pulled:
        """Goes through the change: see `Update`."""
        gradient, to_bias = self.activation.pull(
            kept[1:], biases[0], self.step_size * upstream
        )
        return Pulled((gradient,), (to_bias,), upstream)


@dataclasses.dataclass(frozen=True)
class GatedEuler(Euler):
    """Euler's method with a gate, `h' = h + e sigmoid(x U' + h W) f(x U + h W)`."""

    of_inputs, of_states = (0, 1), (2,)

    def apply(
        self,
        inputs: list[Tensor],
        products: list[Tensor],
        state: Tensor,
        biases: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...]:
        """Makes the state: see `Update`."""
        gate = ops.sigmoid(inputs[1] + products[0])
        change = self.activation.apply(inputs[0] + products[0], biases[0])
        return state + self.step_size * gate * change[0], *change, gate

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Has the gate, too: see `Update`."""
        return *super().kept(size, dtype), (size, dtype)

    def sizes(self, size: int) -> tuple[int, ...]:
        """Of `x U`, of `x U'`, and of `h W`, in both: see `Update`."""
        return size, size, size

    def pull(
        self, kept: tuple[Tensor, ...], biases: tuple[Tensor, ...], upstream: Tensor
    ) -> Pulled:
        """Goes through the change and the gate: see `Update`."""
        _, *change, gate = kept
        scaled = self.step_size * upstream
        to_input, to_bias = self.activation.pull(
            tuple(change), biases[0], scaled * gate
        )
        to_gate = scaled * change[0] * gate * (1.0 - gate)
        return Pulled(
            (to_input, to_gate, to_input + to_gate), (to_bias, to_gate), upstream
        )
