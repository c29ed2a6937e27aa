"""A segment of successive time steps: its states and its gradients.

All tensors are time-major, of shape `(time, batch, units)`.
"""

import dataclasses
import functools
import operator

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
from keras_ortho.recurrence.updates import Weights

# Maximum number of time steps per loop iteration, which share its overhead. Eight
# instead of two saved a quarter of a training step at n = 64, B = 32, and 4 % at
# n = 128, B = 128 (TensorFlow, an AMD EPYC).
UNROLL = 8


@dataclasses.dataclass(frozen=True)
class Segment:
    """Successive time steps of a batch of sequences.

    Attributes:
        inputs: Tensor of shape `(time, batch, m)`.
        start: The state before the segment, of shape `(batch, n)`.
        mask: Tensor of shape `(time, batch, 1)`, 0 for masked steps and 1 for the
            others, or `None`.
        state_mask: Dropout mask of the states, of shape `(batch, n)`, or `None`.
    """

    inputs: Tensor
    start: Tensor
    mask: Tensor | None
    state_mask: Tensor | None

    def drop(self, states: Tensor) -> Tensor:
        """Applies the dropout mask to the states."""
        return states if self.state_mask is None else states * self.state_mask


def inferred_states(
    weights: Weights, segment: Segment, return_sequences: bool
) -> Tensor:
    """Computes the states of a sequence for which no gradient is needed.

    The inputs are projected step by step, so that only the requested output grows with
    the length of the sequence. Every export format supports such a plain loop.
    """

    def step(carry: tuple, index: Tensor, entries: tuple) -> tuple:
        (state,), (inputs, *mask) = carry, entries
        after, *_ = _after(weights, segment, state, weights.project(inputs), mask)
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
    """Computes the states of a segment."""
    projected = weights.project_all_steps(segment.inputs)
    batch, size = ops.shape(segment.start)
    kinds = weights.update.kept(size, segment.start.dtype)

    def step(carry: tuple, index: Tensor, entries: tuple) -> tuple:
        (state,), own = carry, list(entries)
        inputs, mask = own[: len(projected)], own[len(projected) :]
        after, *extras = _after(weights, segment, state, inputs, mask)
        return (after,), (after, *extras)

    (last,), kept = scan(
        step,
        (segment.start,),
        (*projected, *_masks(segment)),
        length=ops.shape(segment.inputs)[0],
        unroll=UNROLL,
        collect=tuple(((batch, size), dtype) for size, dtype in kinds),
    )
    return last, tuple(map(stack, kept))


def _masks(segment: Segment) -> tuple[Tensor, ...]:
    return () if segment.mask is None else (segment.mask,)


def _after(
    weights: Weights,
    segment: Segment,
    state: Tensor,
    projected: list[Tensor],
    mask: list[Tensor],
) -> tuple[Tensor, ...]:
    """Computes the state after a step, and what else its derivative needs."""
    after, *extras = weights.after(projected, state, segment.drop(state))
    if mask:
        after = ops.where(mask[0] > 0, after, state)
    return after, *extras


def segment_gradients(
    weights: Weights,
    segment: Segment,
    kept: tuple[Tensor, ...],
    above: Tensor | None,
    gradient: Tensor,
) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Propagates the gradient back through a segment."""
    update = weights.update
    states = kept[0]
    backward_kernels = [transposed(kernel) for kernel in weights.recurrent_kernels]
    masks = _masks(segment)
    aboves = () if above is None else (above,)
    exact = wide_dtype(states.dtype)

    def back(to_products: list[Tensor], to_state: Tensor | None) -> Tensor:
        # With respect to the state before a step, via the products and directly.
        terms = list(map(times, to_products, backward_kernels))
        if to_state is None:
            return segment.drop(_sum(terms))
        if weights.adds:
            return segment.drop(_sum(terms)) + to_state
        return segment.drop(_sum([*terms, to_state]))

    def step(carry: tuple, index: Tensor, entries: tuple) -> tuple:
        (gradient, *rest), own = carry, list(entries)
        if aboves:
            gradient = gradient + own.pop()
        mask = own.pop() if masks else None
        into = gradient if mask is None else gradient * mask
        pulled = update.pull(tuple(own), weights.biases, into)
        to_biases = [
            total + ops.cast(term, exact)
            for total, term in zip(rest[count:], pulled.to_biases, strict=True)
        ]
        to_products = [pulled.gradients[index] for index in update.of_states]
        before = back(to_products, pulled.to_state)
        if mask is not None:
            before = before + gradient * (1 - mask)
        return (before, *to_products, *to_biases), pulled.gradients

    batch, size = ops.shape(segment.start)
    sizes = [width * size for width in update.widths]
    count = len(update.of_states)
    firsts = [ops.zeros((batch, sizes[i]), states.dtype) for i in update.of_states]
    zeros = [ops.zeros((batch, x.shape[0]), exact) for x in weights.biases]
    (gradient, *rest), collected = scan(
        step,
        (gradient, *firsts, *zeros),
        (*kept, *masks, *aboves),
        length=ops.shape(states)[0],
        unroll=UNROLL,
        collect=tuple(((batch, each), states.dtype) for each in sizes),
        reverse=True,
    )
    gradients = [stack(each) for each in collected]

    def sums(inputs: Tensor, gradients: Tensor, kernel: Tensor) -> Tensor:
        return ops.cast(outer_sum(inputs, gradients, kernel), exact)

    to_kernels, to_inputs = [], []
    for index, kernel in zip(update.of_inputs, weights.kernels, strict=True):
        to_kernels.append(sums(segment.inputs, gradients[index], kernel))
        to_inputs.append(times_at_all_steps(gradients[index], transposed(kernel)))
    before, start = segment.drop(states[:-1]), segment.drop(segment.start)
    to_recurrent = []
    for index, first, kernel in zip(
        update.of_states, rest[:count], weights.recurrent_kernels, strict=True
    ):
        # In two parts: shifting the states by one step would copy them.
        later = sums(before, gradients[index][1:], kernel)
        to_recurrent.append(sums(start, first, kernel) + later)
    to_biases = [ops.sum(each, axis=0) for each in rest[count:]]
    return gradient, _sum(to_inputs), (*to_kernels, *to_recurrent, *to_biases)


def _sum(terms: list[Tensor]) -> Tensor:
    return functools.reduce(operator.add, terms)
