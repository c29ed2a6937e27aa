"""The step of a cell, from one state to the next.

A step is described by its weights and by what becomes of the products with them. Both
the step itself, which Keras's loop calls, and the recurrence over a whole sequence are
made from that description.
"""

import dataclasses
from typing import Any, ClassVar

import keras
from keras import ops

from keras_ortho import checks
from keras_ortho.activations import complex_modrelu, modrelu, smoothed_modrelu
from keras_ortho.backend.types import Tensor
from keras_ortho.cells.sequence import SequenceCell
from keras_ortho.keras_internals import AutocastScope
from keras_ortho.parametrizations.base import Parametrization
from keras_ortho.precise_activations import precise
from keras_ortho.recurrence import Opaque, Plain, Pointwise, Weights, find


@dataclasses.dataclass(frozen=True)
class KnownStep:
    """A step as the recurrence takes it, for one sequence.

    Attributes:
        weights: The weights, and what becomes of the products with them.
        input_mask: What to multiply the inputs with, or `None`.
        state_mask: What to multiply the states with, in a step that adds to them only
            in its products, or `None`.
    """

    weights: Weights
    input_mask: Tensor | None
    state_mask: Tensor | None


class StepCell(SequenceCell):
    """Base of a cell whose step is `activation(x U + h W)`, or what it describes.

    A subclass has the arguments of `keras_ortho.RecurrentCell` as attributes, creates
    the weights, and gives `step_kernel`. With gates it has `step_weights`, or `step`.
    """

    # Whether `step` adds to the state. Recurrent dropout takes units from the product
    # with `W` only: their share of the sum stays, or it would vanish and the others
    # grow from step to step.
    residual: ClassVar[bool] = False

    activation: Any
    complex_state: bool
    state_size: int
    output_size: int
    parametrization: Parametrization | None
    kernel: keras.Variable
    bias: keras.Variable | None
    # The number of inputs, once that is known.
    _features: int | None = None

    def call(
        self, inputs: Tensor, states: list[Tensor] | Tensor, training: bool = False
    ) -> tuple[Tensor, list[Tensor] | Tensor]:
        """Computes one step.

        Args:
            inputs: Tensor of shape `(batch, m)`.
            states: The state, a tensor of shape `(batch, n)`, or a list of it.
            training: Whether to drop out inputs and states.

        Returns:
            A pair of the output, of shape `(batch, n)`, and the new state, a
            list if the state was given as one.

        Raises:
            ValueError: If the inputs or the state are complex or of another shape.
        """
        nested = isinstance(states, list | tuple)
        if states is None or (nested and len(states) != 1):
            raise ValueError(
                "`states` must be one tensor, or a list of one. "
                f"Received: states={states}"
            )
        before = states[0] if nested else states
        checks.check_real_tensor("inputs", inputs)
        checks.check_real_tensor("states", before)
        state: Tensor = ops.cast(before, self.compute_dtype)
        inputs = ops.cast(inputs, self.compute_dtype)
        # Blocks, unlike a matrix, would take what is of another shape for something.
        _check_reals("inputs", inputs, self._features)
        _check_reals("states", state, self.state_size)
        sequence = self.sequence_of(inputs, state)
        if training and sequence.input_mask is not None:
            inputs = inputs * sequence.input_mask
        masked = state
        if training and sequence.state_mask is not None:
            masked = state * sequence.state_mask
        with AutocastScope(self.compute_dtype):  # Also where Keras has not called it.
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
            recurrent_kernel: `W` in the compute dtype, or its blocks, as `step_kernel`
                returns it.

        Returns:
            Tensor of shape `(batch, state_size)`.
        """
        weights = self.step_weights(recurrent_kernel, Opaque(self.activate))
        return weights.after(weights.project(inputs), state, state)[0]

    def step_weights(self, recurrent_kernel: Tensor, activation: Pointwise) -> Weights:
        """Describes the step: its weights, and what becomes of the products with them.

        Args:
            recurrent_kernel: As `step` takes it.
            activation: The activation.

        Returns:
            The description.
        """
        return Weights(
            (self.step_input_kernel(),),
            (recurrent_kernel,),
            (self.bias_or_zeros(self.bias, self.state_size),),
            Plain(activation),
        )

    def bias_or_zeros(self, bias: keras.Variable | None, size: int) -> Tensor:
        """Gives a bias as `step_weights` takes it.

        Args:
            bias: The bias, or `None`.
            size: Its size.

        Returns:
            The bias, or zeros.
        """
        return ops.zeros((size,), dtype=self.compute_dtype) if bias is None else bias

    def read_out(self, states: Tensor) -> Tensor:
        """Gives the output for a state: its first `output_size` reals, mostly all.

        Args:
            states: Tensor of shape `(..., state_size)`.

        Returns:
            Tensor of shape `(..., output_size)`.
        """
        return states[..., : self.output_size]

    def activate(self, inputs: Tensor) -> Tensor:
        """Applies bias and activation.

        Args:
            inputs: Tensor of shape `(batch, state_size)`, `x U + h W`.

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
        # A function of a user's may change the dtype.
        return ops.cast(precise(self.activation)(inputs), inputs.dtype)

    @property
    def is_plain(self) -> bool:
        """Whether the step is `f(x U + h W)`, and no class has one of its own."""
        return self._inherits("call", "step", "activate", "step_weights")

    def _inherits(self, *names: str) -> bool:
        return all(getattr(type(self), x) is getattr(StepCell, x) for x in names)

    def known_step(self, training: bool) -> KnownStep | None:
        """Describes the step, for the sequence that has begun.

        Args:
            training: Whether to drop out inputs and states.

        Returns:
            The description, or `None` where a class has a `step` of its own, or the
            derivative of the activation is not known.
        """
        activation = find(self.activation, self.complex_state)
        sequence = self._sequence
        is_known = self._inherits("call", "step", "activate")
        if not is_known or activation is None or sequence is None:
            return None
        weights = self.step_weights(sequence.recurrent_kernel, activation)
        return KnownStep(
            weights=dataclasses.replace(weights, adds=self.residual),
            input_mask=sequence.input_mask if training else None,
            state_mask=sequence.state_mask if training else None,
        )

    def step_input_kernel(self) -> Tensor:
        """Gives `U` as `step` takes it.

        Returns:
            `kernel`, of shape `(m, state_size)`. Or, where each head reads its part of
            the inputs, its blocks, as `keras_ortho.recurrence` takes them.
        """
        if self.input_heads == 1 or not self.complex_state:
            return self.kernel
        heads, features, reals = self.kernel.shape
        return ops.reshape(self.kernel, (heads, 1, features, 2, reals // 2))

    @property
    def input_heads(self) -> int:
        """Number of parts of the inputs, each of which only its own head reads."""
        return 1 if self.parametrization is None else self.parametrization.input_heads

    @property
    def step_heads(self) -> int:
        """Number of heads that a step knows of."""
        kind = self.parametrization
        return kind.heads if kind is not None and self.is_plain else 1


def _check_reals(name: str, tensor: Tensor, size: int | None) -> None:
    """Checks that a tensor is of shape `(batch, size)`, as far as that is known."""
    shape = tuple(tensor.shape)
    # A single row, or none of a batch's own, is the same for all of the batch.
    if not 1 <= len(shape) <= 2 or (size is not None and shape[-1] not in (None, size)):
        raise ValueError(
            f"`{name}` must have the shape (batch, {size}). "
            f"Received: {name} of shape {shape}"
        )
