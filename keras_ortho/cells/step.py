"""The step of a cell, from one state to the next.

A step is described by its weights and by the update that it computes from the products
with them. Both the step itself, which Keras's loop calls, and the recurrence over a
whole sequence are made from that description.
"""

import dataclasses
from typing import Any, ClassVar

import keras
from keras import ops

from keras_ortho import checks
from keras_ortho.activations import complex_modrelu, modrelu, smoothed_modrelu
from keras_ortho.backend.types import Tensor
from keras_ortho.cells.sequence import SequenceCell
from keras_ortho.keras_internals import AutocastScope, call_is_training
from keras_ortho.parametrizations.base import Parametrization
from keras_ortho.precise_activations import precise
from keras_ortho.recurrence import Opaque, Plain, Pointwise, Weights, find


@dataclasses.dataclass(frozen=True)
class KnownStep:
    """Description of a step that the recurrence takes, for one batch of sequences.

    Attributes:
        weights: The weights and the update.
        input_mask: Dropout mask that multiplies the inputs, or `None`.
        state_mask: Dropout mask that multiplies the states, or `None`. In a step that
            adds to the state, it affects only the products with `W`.
    """

    weights: Weights
    input_mask: Tensor | None
    state_mask: Tensor | None


class StepCell(SequenceCell):
    """Base class of a cell whose step is `activation(x U + h W)`, or another one.

    A subclass has the arguments of `keras_ortho.RecurrentCell` as attributes, creates
    the weights, and implements `step_kernel`. A subclass with gates overrides
    `step_weights` or `step`.
    """

    # Whether `step` adds to the state. Recurrent dropout then masks only the product
    # with `W`: masking the state itself would erase the dropped units, and scale up the
    # others from step to step.
    residual: ClassVar[bool] = False

    activation: Any
    complex_state: bool
    state_size: int
    output_size: int
    parametrization: Parametrization | None
    kernel: keras.Variable
    bias: keras.Variable | None
    # Number of inputs, or `None` until it is known.
    _features: int | None = None

    def call(
        self, inputs: Tensor, states: list[Tensor] | Tensor, training: bool = False
    ) -> tuple[Tensor, list[Tensor] | Tensor]:
        """Computes one step.

        Args:
            inputs: Tensor of shape `(batch, m)`.
            states: The state, a tensor of shape `(batch, n)` or a list with that
                tensor.
            training: Whether to apply dropout to the inputs and states.

        Returns:
            A pair of the output, of shape `(batch, n)`, and the new state, a
            list if the state was given as a list.

        Raises:
            ValueError: If the inputs or the state are complex or have the wrong shape.
        """
        nested = isinstance(states, list | tuple)
        if states is None or (nested and len(states) != 1):
            raise ValueError(
                "`states` must be a tensor, or a list with one tensor. Received: "
                f"states={states}"
            )
        before = states[0] if nested else states
        checks.check_real_tensor("inputs", inputs)
        checks.check_real_tensor("states", before)
        state: Tensor = ops.cast(before, self.compute_dtype)
        inputs = ops.cast(inputs, self.compute_dtype)
        # Products with blocks, unlike those with a matrix, accept some wrong shapes.
        _check_reals("inputs", inputs, self._features)
        _check_reals("states", state, self.state_size)
        sequence = self.sequence_of(inputs, state)
        if sequence.input_mask is not None and call_is_training(training):
            inputs = inputs * sequence.input_mask
        masked = state
        if sequence.state_mask is not None and call_is_training(training):
            masked = state * sequence.state_mask
        with AutocastScope(self.compute_dtype):  # Also if Keras has not opened one.
            new = self.step(inputs, masked, sequence.recurrent_kernel)
            if self.residual and masked is not state:
                new = new + (state - masked)
            output = self.read_out(new)
        return output, [new] if nested else new

    def step(self, inputs: Tensor, state: Tensor, recurrent_kernel: Tensor) -> Tensor:
        """Computes the new state.

        Args:
            inputs: Tensor of shape `(batch, m)`.
            state: Tensor of shape `(batch, state_size)`.
            recurrent_kernel: `W` or its blocks in the compute dtype, as `step_kernel`
                returns them.

        Returns:
            Tensor of shape `(batch, state_size)`.
        """
        weights = self.step_weights(recurrent_kernel, Opaque(self.activate))
        return weights.after(weights.project(inputs), state, state)[0]

    def step_weights(self, recurrent_kernel: Tensor, activation: Pointwise) -> Weights:
        """Describes the step by its weights and its update.

        Args:
            recurrent_kernel: `W` or its blocks, as in `step`.
            activation: The activation.

        Returns:
            A `Weights`, which includes the update.
        """
        return Weights(
            (self.step_input_kernel(),),
            (recurrent_kernel,),
            (self.bias_or_zeros(self.bias, self.state_size),),
            Plain(activation),
        )

    def bias_or_zeros(self, bias: keras.Variable | None, size: int) -> Tensor:
        """Returns a bias, or zeros in its place, as `step_weights` takes it.

        Args:
            bias: The bias, or `None`.
            size: Size of the bias.

        Returns:
            The bias, or a tensor of zeros of shape `(size,)`.
        """
        return ops.zeros((size,), dtype=self.compute_dtype) if bias is None else bias

    def read_out(self, states: Tensor) -> Tensor:
        """Returns the output for a state: its first `output_size` entries.

        Args:
            states: Tensor of shape `(..., state_size)`.

        Returns:
            Tensor of shape `(..., output_size)`.
        """
        return states[..., : self.output_size]

    def activate(self, inputs: Tensor) -> Tensor:
        """Applies the bias and the activation.

        Args:
            inputs: `x U + h W`, a tensor of shape `(batch, state_size)`.

        Returns:
            Tensor of the same shape.
        """
        if self.activation == "smoothed_modrelu":
            return smoothed_modrelu(inputs, self.bias)
        if self.activation == "modrelu":
            function = complex_modrelu if self.complex_state else modrelu
            return function(inputs, self.bias)
        if self.bias is not None:
            inputs = inputs + self.bias
        # A user-defined function may change the dtype.
        return ops.cast(precise(self.activation)(inputs), inputs.dtype)

    @property
    def is_plain(self) -> bool:
        """Whether the step is `f(x U + h W)`: no subclass overrides it."""
        return self.inherits("call", "step", "activate", "step_weights")

    def inherits(self, *names: str) -> bool:
        """Whether no subclass overrides any of these methods."""
        return all(getattr(type(self), x) is getattr(StepCell, x) for x in names)

    def known_step(self, training: bool) -> KnownStep | None:
        """Describes the step, for the current sequences.

        Args:
            training: Whether to apply dropout to the inputs and states.

        Returns:
            The description, or `None` if a subclass overrides `call`, `step` or
            `activate`, the derivative of the activation is unknown, or no sequence is
            being read.
        """
        activation = find(self.activation, self.complex_state)
        sequence = self._sequence
        is_known = self.inherits("call", "step", "activate")
        if not is_known or activation is None or sequence is None:
            return None
        weights = self.step_weights(sequence.recurrent_kernel, activation)
        return KnownStep(
            weights=dataclasses.replace(weights, adds=self.residual),
            input_mask=sequence.input_mask if training else None,
            state_mask=sequence.state_mask if training else None,
        )

    def step_input_kernel(self) -> Tensor:
        """Returns `U` in the form that `step` takes.

        Returns:
            `kernel`, of shape `(m, state_size)`. If each head reads its own part of
            the inputs, its blocks, as `keras_ortho.recurrence` takes them.
        """
        if self.input_heads == 1 or not self.complex_state:
            return self.kernel
        heads, features, reals = self.kernel.shape
        return ops.reshape(self.kernel, (heads, 1, features, 2, reals // 2))

    @property
    def input_heads(self) -> int:
        """Number of parts of the inputs, each of which is read by one head only."""
        return 1 if self.parametrization is None else self.parametrization.input_heads

    @property
    def step_heads(self) -> int:
        """Number of heads in a step."""
        kind = self.parametrization
        return kind.heads if kind is not None and self.is_plain else 1


def _check_reals(name: str, tensor: Tensor, size: int | None) -> None:
    """Checks that a tensor has the shape `(batch, size)`, as far as it is known."""
    shape = tuple(tensor.shape)
    # A vector or a single row is broadcast to the whole batch.
    if not 1 <= len(shape) <= 2 or (size is not None and shape[-1] not in (None, size)):
        raise ValueError(
            f"`{name}` must have the shape (batch, {size}). "
            f"Received: {name} of shape {shape}"
        )
