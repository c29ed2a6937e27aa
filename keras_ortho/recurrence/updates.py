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
class Products:
    """What a step makes its state of.

    Attributes:
        inputs: The products with the input kernels, of shape `(batch, n)` or a multiple
            of `n`, with the biases unless the activation adds them.
        states: The products of the state before with the recurrent kernels.
        state: The state before, of shape `(batch, n)`.
        biases: The biases.
    """

    inputs: list[Tensor]
    states: list[Tensor]
    state: Tensor
    biases: tuple[Tensor, ...]


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
        widths: Of each gradient of `pull`, how many times as wide as the state it is.
        of_inputs: For each input kernel, and its bias, the index of its gradient.
        of_states: For each recurrent kernel, the index of its gradient.
        extras: The widths of what `apply` gives beside the state and what the
            activation gives.
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
        """Makes the state.

        Args:
            products: The products of the step.

        Returns:
            The state, and what the derivative needs besides: see `kept`.
        """
        raise NotImplementedError

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """Describes what `apply` gives, as `Pointwise.kept`."""
        extras = ((width * size, dtype) for width in self.extras)
        return (size, dtype), *self.activation.kept(size, dtype), *extras

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

    def apply(self, products: Products) -> tuple[Tensor, ...]:
        """Makes the state: see `Update`."""
        z = products.inputs[0] + products.states[0]
        return self.activation.apply(z, products.biases[0])

    def kept(self, size: int, dtype: str) -> tuple[tuple[int, str], ...]:
        """As the activation, whose value is the state: see `Update`."""
        return self.activation.kept(size, dtype)

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
    state is `h' = g h + (1 - g) c`. There are gradients of `x U`, of `h W`, and of the
    sum in the gates.

    Reference:

    - [Jing et al., 2019](https://doi.org/10.1162/neco_a_01174)
    """

    widths, of_inputs, of_states = (1, 1, 2), (0, 2), (1, 2)
    # The gates, `h W`, and `h - c`.
    extras = (2, 1, 1)

    def apply(self, products: Products) -> tuple[Tensor, ...]:
        """Makes the state: see `Update`."""
        (of_candidate, of_gates), (turned, in_gates) = products.inputs, products.states
        gates = ops.sigmoid(of_gates + in_gates)
        reset, update = ops.split(gates, 2, axis=-1)
        value, *rest = self.activation.apply(
            of_candidate + reset * turned, products.biases[0]
        )
        # Not `c + g (h - c)`, which in few bits loses a state that is to be kept.
        after = update * products.state + (1.0 - update) * value
        return after, value, *rest, gates, turned, products.state - value

    def pull(
        self, kept: tuple[Tensor, ...], biases: tuple[Tensor, ...], upstream: Tensor
    ) -> Pulled:
        """Goes through the candidate and the gates: see `Update`."""
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
    """A step of Euler's forward method, `h' = h + e f(x U + h W)`.

    The change is kept: rounding hides it in the state.

    Attributes:
        step_size: `e`.

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), equation 12
    """

    step_size: float

    def apply(self, products: Products) -> tuple[Tensor, ...]:
        """Makes the state: see `Update`."""
        z = products.inputs[0] + products.states[0]
        change = self.activation.apply(z, products.biases[0])
        return products.state + self.step_size * change[0], *change

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
    """Euler's method with a gate, `h' = h + e sigmoid(x U' + h W) f(x U + h W)`.

    There are gradients of `x U`, of `x U'`, and of `h W`, which is in both.

    Reference:

    - [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), equation 13
    """

    widths, of_inputs, of_states = (1, 1, 1), (0, 1), (2,)
    # The gate.
    extras = (1,)

    def apply(self, products: Products) -> tuple[Tensor, ...]:
        """Makes the state: see `Update`."""
        (of_change, of_gate), (turned,) = products.inputs, products.states
        gate = ops.sigmoid(of_gate + turned)
        change = self.activation.apply(of_change + turned, products.biases[0])
        return products.state + self.step_size * gate * change[0], *change, gate

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
