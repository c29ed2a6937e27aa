"""A segment of successive steps: its states, and the way back through it.

Everything is time first: `(time, batch, units)`.
"""

import dataclasses

from keras import ops

from keras_ortho.backend import scan, stack
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.recurrence.blocks import (
    outer_sum,
    times,
    times_at_all_steps,
    transposed,
)
from keras_ortho.recurrence.pointwise import Pointwise

# Steps in a turn of a loop, at most, which share what the turn costs. Eight in place of
# two saved a quarter of a training step at n = 64, B = 32, and 4 % at n = 128, B = 128
# (TensorFlow, an AMD EPYC).
UNROLL = 8


@dataclasses.dataclass(frozen=True)
class Weights:
    """What is the same at every step."""

    kernel: Tensor
    recurrent_kernel: Tensor
    bias: Tensor
    activation: Pointwise

    def project(self, inputs: Tensor) -> Tensor:
        """Computes `x U`, with the bias unless that is inside the activation."""
        projected = times_at_all_steps(inputs, self.kernel)
        return projected if self.activation.own_bias else projected + self.bias


@dataclasses.dataclass(frozen=True)
class Segment:
    """Successive steps of some sequences.

    Attributes:
        inputs: Tensor of shape `(time, batch, m)`.
        start: The state before, of shape `(batch, n)`.
        mask: Tensor of shape `(time, batch, 1)`, 1 for steps that count and 0 for
            others, or `None`.
        state_mask: Tensor of shape `(batch, n)`, or `None`.
    """

    inputs: Tensor
    start: Tensor
    mask: Tensor | None
    state_mask: Tensor | None

    def drop(self, states: Tensor) -> Tensor:
        """Applies the mask of the states."""
        return states if self.state_mask is None else states * self.state_mask


def inferred_states(
    weights: Weights, segment: Segment, return_sequences: bool
) -> Tensor:
    """Computes the states of a sequence, where no gradient is asked for.

    The inputs are projected step by step: of the length of the sequence is only what is
    asked for, and one plain loop is what every format of an exported model can hold.

    Args:
        weights: The weights.
        segment: The inputs of all steps, and the state before.
        return_sequences: Whether to return all states.

    Returns:
        All states, or the last one.
    """

    def step(carry: tuple, index: Tensor, entries: tuple) -> tuple:
        (state,), (inputs, *mask) = carry, entries
        projected = times(inputs, weights.kernel)
        if not weights.activation.own_bias:
            projected = projected + weights.bias
        after, *_ = _after(weights, segment, state, projected, mask)
        return (after,), (after,) if return_sequences else ()

    start = segment.start
    (last,), states = scan(
        step,
        (start,),
        (segment.inputs, *_masks(segment)),
        length=ops.shape(segment.inputs)[0],
        collect=((ops.shape(start), start.dtype),) if return_sequences else (),
    )
    return stack(states[0]) if return_sequences else last


def segment_states(
    weights: Weights, segment: Segment
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Computes the states of a segment.

    Args:
        weights: The weights.
        segment: The inputs, and the state before.

    Returns:
        A pair of the last state, and a tuple of all states and of what the derivative
        of the activation needs besides.
    """
    projected = weights.project(segment.inputs)
    steps, batch, size = ops.shape(projected)
    kinds = weights.activation.kept(size, projected.dtype)

    def step(carry: tuple, index: Tensor, entries: tuple) -> tuple:
        (state,), (inputs, *mask) = carry, entries
        after, *extras = _after(weights, segment, state, inputs, mask)
        return (after,), (after, *extras)

    (last,), kept = scan(
        step,
        (segment.start,),
        (projected, *_masks(segment)),
        length=steps,
        unroll=UNROLL,
        collect=tuple(((batch, size), dtype) for size, dtype in kinds),
    )
    return last, tuple(map(stack, kept))


def _masks(segment: Segment) -> tuple[Tensor, ...]:
    return () if segment.mask is None else (segment.mask,)


def _after(
    weights: Weights, segment: Segment, state: Tensor, projected: Tensor, mask: list
) -> tuple[Tensor, ...]:
    """The state after a step, and what the derivative needs besides."""
    product = times(segment.drop(state), weights.recurrent_kernel)
    after, *extras = weights.activation.apply(projected + product, weights.bias)
    if mask:
        after = ops.where(mask[0] > 0, after, state)
    return after, *extras


def segment_gradients(
    weights: Weights,
    segment: Segment,
    kept: tuple[Tensor, ...],
    above: Tensor | None,
    gradient: Tensor,
) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor]]:
    """Takes the gradient back through a segment.

    Args:
        weights: The weights.
        segment: The inputs, and the state before.
        kept: Its states, and what `segment_states` gave with them.
        above: Gradient with respect to the outputs, `(time, batch, n)`, or `None`
            where only the last one of the sequence is used.
        gradient: Gradient with respect to the last state, from what follows.

    Returns:
        The gradients with respect to the state before, to the inputs, and to `U`,
        `W` and `b`, the last three in float32 at least.
    """
    activation = weights.activation
    states = kept[0]
    backward_kernel = transposed(weights.recurrent_kernel)
    masks = _masks(segment)
    aboves = () if above is None else (above,)
    exact = wide_dtype(states.dtype)

    def step(carry: tuple, index: Tensor, entries: tuple) -> tuple:
        (gradient, _, to_bias), own = carry, list(entries)
        if aboves:
            gradient = gradient + own.pop()
        mask = own.pop() if masks else None
        into = gradient if mask is None else gradient * mask
        into, term = activation.pull(tuple(own), weights.bias, into)
        to_bias = to_bias + ops.cast(term, exact)
        before = segment.drop(times(into, backward_kernel))
        if mask is not None:
            before = before + gradient * (1 - mask)
        return (before, into, to_bias), (into,)

    batch = ops.shape(states)[1]
    to_bias = ops.zeros((batch, weights.bias.shape[0]), dtype=exact)
    (gradient, first, to_bias), (collected,) = scan(
        step,
        (gradient, ops.zeros_like(gradient), to_bias),
        (*kept, *masks, *aboves),
        length=ops.shape(states)[0],
        unroll=UNROLL,
        collect=((ops.shape(states)[1:], states.dtype),),
        reverse=True,
    )
    gradients = stack(collected)

    def sums(inputs: Tensor, gradients: Tensor, kernel: Tensor) -> Tensor:
        return ops.cast(outer_sum(inputs, gradients, kernel), exact)

    # In two, or the states would have to be copied, a step further on.
    recurrent = weights.recurrent_kernel
    to_recurrent = sums(segment.drop(segment.start), first, recurrent)
    to_recurrent = to_recurrent + sums(
        segment.drop(states[:-1]), gradients[1:], recurrent
    )
    to_kernel = sums(segment.inputs, gradients, weights.kernel)
    return (
        gradient,
        times_at_all_steps(gradients, transposed(weights.kernel)),
        (to_kernel, to_recurrent, ops.sum(to_bias, axis=0)),
    )
