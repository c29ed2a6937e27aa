"""All states of a recurrence, and its gradient, without automatic differentiation.

A batch is divided into pieces, a sequence into segments whose tensors stay in a cache.
The inputs of a segment are projected in one product; then one loop computes its states.
The gradient goes back through the segments: one loop with one product per step and
recurrent kernel, and little else, then large products for `dL/dW` and `dL/dU`. It needs
the states and what else the derivatives take, or recomputes them from the state before.
"""

import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from keras import ops

from keras_ortho.backend import (
    batch_pieces,
    scan,
    shared_out,
    stack,
    with_gradient,
)
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.recurrence.blocks import outer_sum, times, transposed
from keras_ortho.recurrence.pointwise import Tensors
from keras_ortho.recurrence.updates import Update, Weights

# Approximate number of steps in a segment: its states, 56 x 64 x 170 numbers for half a
# batch of 128, fit in a cache of a few megabytes.
SEGMENT = 56
# Maximum number of time steps per loop iteration, which share its overhead. Eight
# instead of two saved a quarter of a training step at n = 64, B = 32, and 4 % at
# n = 128, B = 128 (TensorFlow, an AMD EPYC).
UNROLL = 8


def recurrence(
    inputs: Tensor,
    weights: Weights,
    initial_state: Tensor,
    *,
    mask: Tensor | None = None,
    state_mask: Tensor | None = None,
    return_sequences: bool = False,
    recompute: bool | int = False,
    training: bool = True,
) -> Tensor:
    """Computes the states of a recurrence, with its own gradient.

    In training, that is in reverse mode only, and on TensorFlow and PyTorch only once.

    Args:
        inputs: Tensor of shape `(batch, time, m)`.
        weights: The weights and the update.
        initial_state: Tensor of shape `(batch, n)`.
        mask: Boolean tensor of shape `(batch, time)`, `False` for steps that leave
            the state unchanged. Default: `None`.
        state_mask: Tensor of shape `(batch, n)`, without a gradient, that multiplies
            the state before each step, or only before the products if the step adds to
            the state. Default: `None`.
        return_sequences: Whether to return all states. Default: `False`.
        recompute: Whether to keep only the states before each segment for the
            gradient: `True` for segments of about the square root of the number of
            steps, an integer for segments of that many steps. Default: `False`.
        training: Whether a gradient will be computed. If `False`, one loop runs over
            all steps, which the backend can differentiate. Default: `True`.

    Returns:
        Tensor of shape `(batch, time, n)`, or the last state, of shape `(batch, n)`.
    """
    entries = sum(math.prod(kernel.shape) for kernel in weights.recurrent_kernels)
    plan = _Plan(
        update=weights.update,
        adds=weights.adds,
        masked=mask is not None,
        dropped=state_mask is not None,
        return_sequences=return_sequences,
        recompute=recompute,
        pieces=batch_pieces(inputs.shape[0], entries, training),
    )
    compute = plan.infer
    if training:
        compute = with_gradient(plan.forward, plan.backward, once=True)
    nothing = initial_state[:, :0]
    mask = nothing if mask is None else ops.cast(mask, inputs.dtype)
    state_mask = nothing if state_mask is None else state_mask
    by_batch = inputs, initial_state, mask, state_mask
    others = *weights.kernels, *weights.recurrent_kernels, *weights.biases
    return shared_out(compute, len(by_batch))(*by_batch, *others)


def segment_length(steps: int | None, recompute: bool | int) -> int:
    """Chooses the number of steps of a segment."""
    if steps is None:
        return SEGMENT if isinstance(recompute, bool) else recompute
    if recompute:
        return math.isqrt(steps - 1) + 1 if recompute is True else min(recompute, steps)
    # The even divisor of the number of steps, from 32 to 64, nearest to `SEGMENT`.
    divisors = [length for length in range(32, 66, 2) if steps % length == 0]
    return min(divisors, key=lambda x: abs(x - SEGMENT), default=min(SEGMENT, steps))


@dataclasses.dataclass(frozen=True)
class _Plan:
    """How to process inputs, initial state, both masks and weights; it holds none."""

    update: Update
    adds: bool
    masked: bool
    dropped: bool
    return_sequences: bool
    recompute: bool | int
    pieces: int

    def infer(self, *tensors: Tensor) -> Tensor:
        """Computes the output for which no gradient is needed."""
        return _join([self._infer(piece) for piece in self._cut(tensors)], axis=0)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Any]:
        """Computes the output, and what the gradient needs."""
        results = [self._forward(piece) for piece in self._cut(tensors)]
        outputs, saved = zip(*results, strict=True)
        output = _join(outputs, axis=0)
        return output, (tensors, output if self.return_sequences else None, saved)

    def backward(self, saved: Any, upstream: Tensor) -> Tensors:
        """Computes the gradient with respect to every tensor."""
        tensors, output, saved_pieces = saved
        both = zip(self._rows(output), self._rows(upstream), strict=True)
        gradients = [
            self._backward(*own)
            for own in zip(self._cut(tensors), saved_pieces, both, strict=True)
        ]
        to_inputs, to_state, *to_weights = zip(*gradients, strict=True)
        return (
            _join(to_inputs, axis=0),
            _join(to_state, axis=0),
            *map(ops.zeros_like, tensors[2:4]),
            *(ops.cast(_sum(terms), upstream.dtype) for terms in to_weights),
        )

    def _cut(self, tensors: Tensors) -> list[Tensors]:
        """Cuts the tensors of the batch into pieces."""
        by_batch = zip(*map(self._rows, tensors[:4]), strict=True)
        return [(*piece, *tensors[4:]) for piece in by_batch]

    def _rows(self, x: Tensor) -> list[Tensor]:
        if x is None or self.pieces == 1:
            return [x] * self.pieces
        batch = ops.shape(x)[0]
        bounds = [batch * i // self.pieces for i in range(self.pieces + 1)]
        return [x[start:end] for start, end in itertools.pairwise(bounds)]

    def _infer(self, tensors: Tensors) -> Tensor:
        """Computes the output of a piece, in a loop that every export format supports.

        With inputs projected step by step, only the output grows with the steps.
        """
        inputs, start, *_ = tensors
        steps, is_all = ops.shape(inputs)[1], self.return_sequences
        segment = self._segment(tensors, start, 0, steps)

        def step(carry: Tensors, _: Tensor, entries: Tensors) -> tuple:
            inputs, *mask = entries
            projected = segment.weights.project(inputs)
            after, *_ = segment.after(carry[0], projected, mask)
            return (after,), (after,) if is_all else ()

        kinds = ((ops.shape(start), start.dtype),) if is_all else ()
        entries = (segment.inputs, *segment.masks)
        (last,), states = scan(step, (start,), entries, length=steps, collect=kinds)
        return _swap(stack(states[0])) if is_all else last

    def _forward(self, tensors: Tensors) -> tuple[Tensor, Any]:
        """Computes the output of a piece, and what its gradient needs."""
        inputs, state, *_ = tensors
        length, count, left = self._lengths(inputs)
        shown = int(self.return_sequences)

        def run(carry: Tensors, start: Any, length: Any) -> tuple[Tensors, Tensors]:
            # The state after a segment, and all that is output or saved.
            (state,) = carry
            segment = self._segment(tensors, state, start, length)
            after, kept = segment.states()
            return (after,), (*map(_swap, kept[:shown]), state, *self._saved(kept))

        batch, units = ops.shape(state)
        kinds = self.update.kept(units, inputs.dtype)
        kept = [((length, batch, size), dtype) for size, dtype in kinds]
        output = [((batch, length, units), inputs.dtype)] * shown
        start = (batch, units), inputs.dtype
        carry: Tensors = (state,)
        full: Tensors = ()
        rest: Tensors = ()
        outputs: list[Tensor] = []
        if _any(count):
            carry, full = scan(
                lambda carry, index, _: run(carry, index * length, length),
                carry,
                length=count,
                collect=(*output, start, *self._saved(kept)),
            )
            outputs += [_in_a_row(stack(each)) for each in full[:shown]]
            # A tensor, also outside training: a SavedModel contains the gradient as
            # well.
            full = (stack(full[shown]), *full[shown + 1 :])
        if _any(left):
            carry, rest = run(carry, count * length, left)
            outputs, rest = [*outputs, *rest[:shown]], rest[shown:]
        return _join(outputs or carry, axis=1), (full, rest)

    def _backward(
        self, tensors: Tensors, saved: Any, both: tuple[Tensor | None, Tensor]
    ) -> Tensors:
        """Computes the gradients of a piece: inputs, initial state, weights."""
        inputs, state, _, _, *weights = tensors
        length, count, left = self._lengths(inputs)
        (full, rest), (output, upstream) = saved, both
        needed = len(self.update.kept(state.shape[-1], inputs.dtype))

        def back(carry: Tensors, start: Any, length: Any, saved: Tensors) -> tuple:
            (gradient, *sums), (state, *kept) = carry, saved
            segment = self._segment(tensors, state, start, length)
            above: list[Tensor] = []
            if output is not None:
                states, *above = (_steps(x, start, length) for x in both)
                kept.insert(0, states)
            if len(kept) < needed:
                _, (*kept,) = segment.states()
            gradient, to_inputs, terms = segment.gradients(
                tuple(kept), tuple(above), gradient
            )
            return (gradient, *map(operator.add, sums, terms)), (_swap(to_inputs),)

        zeros = [ops.zeros(x.shape, dtype=wide_dtype(x.dtype)) for x in weights]
        carry = (upstream if output is None else ops.zeros_like(state), *zeros)
        parts: Tensors = ()
        if _any(left):
            carry, parts = back(carry, count * length, left, rest)
        if _any(count):
            shape = ops.shape(inputs)[0], length, inputs.shape[-1]
            carry, (segments,) = scan(
                lambda carry, index, saved: back(carry, index * length, length, saved),
                carry,
                full,
                length=count,
                collect=((shape, inputs.dtype),),
                reverse=True,
            )
            parts = (_in_a_row(stack(segments)), *parts)
        return _join(parts, axis=1), *carry

    def _saved(self, kept: Sequence[Any]) -> Sequence[Any]:
        """Selects what to save: neither in the output nor recomputed."""
        if self.recompute:
            return ()
        return kept[1:] if self.return_sequences else kept

    def _lengths(self, inputs: Tensor) -> tuple[Any, Any, Any]:
        """Returns the length of a full segment, their number, and the steps left."""
        steps = ops.shape(inputs)[1]
        length: Any = segment_length(inputs.shape[1], self.recompute)
        if not isinstance(steps, int):
            # XLA knows the shape when it compiles, and compiles unused branches too.
            length = ops.maximum(1, ops.minimum(steps, length))
        return length, steps // length, steps % length

    def _segment(
        self, tensors: Tensors, state: Tensor, start: Any, length: Any
    ) -> "Segment":
        """Slices a segment out of the tensors, given the state before it."""
        inputs, _, mask, state_mask, *weights = tensors
        kernels, states = len(self.update.of_inputs), len(self.update.of_states)
        return Segment(
            Weights(
                tuple(weights[:kernels]),
                tuple(weights[kernels : kernels + states]),
                tuple(weights[kernels + states :]),
                self.update,
                self.adds,
            ),
            _steps(inputs, start, length),
            state,
            (_steps(mask[:, :, None], start, length),) if self.masked else (),
            state_mask if self.dropped else None,
        )


@dataclasses.dataclass(frozen=True)
class Segment:
    """Successive time steps. All tensors are time-major: `(time, batch, units)`."""

    weights: Weights
    inputs: Tensor
    # The state before the segment, of shape `(batch, n)`.
    start: Tensor
    # None, or one of shape `(time, batch, 1)`: 0 for masked steps, 1 for the others.
    masks: Tensors
    # Dropout mask of the states, of shape `(batch, n)`.
    state_mask: Tensor | None

    def drop(self, states: Tensor) -> Tensor:
        """Applies the dropout mask to the states."""
        return states if self.state_mask is None else states * self.state_mask

    def after(
        self, state: Tensor, projected: Sequence[Tensor], mask: Sequence[Tensor]
    ) -> Tensors:
        """Computes the state after a step, and what else its derivative needs."""
        after, *extras = self.weights.after(projected, state, self.drop(state))
        if mask:
            after = ops.where(mask[0] > 0, after, state)
        return after, *extras

    def states(self) -> tuple[Tensor, Tensors]:
        """Computes the last state, and what the gradient needs."""
        projected = self.weights.project(self.inputs)
        batch, size = ops.shape(self.start)
        kinds = self.weights.update.kept(size, self.start.dtype)

        def step(carry: Tensors, _: Tensor, entries: Tensors) -> tuple:
            inputs, mask = entries[: len(projected)], entries[len(projected) :]
            after, *extras = self.after(carry[0], inputs, mask)
            return (after,), (after, *extras)

        (last,), kept = scan(
            step,
            (self.start,),
            (*projected, *self.masks),
            length=ops.shape(self.inputs)[0],
            unroll=UNROLL,
            collect=tuple(((batch, size), dtype) for size, dtype in kinds),
        )
        return last, tuple(map(stack, kept))

    def gradients(
        self, kept: Tensors, above: Tensors, gradient: Tensor
    ) -> tuple[Tensor, Tensor, Tensors]:
        """Propagates the gradient back to the state before, the inputs, the weights."""
        weights, update = self.weights, self.weights.update
        states = kept[0]
        backward_kernels = list(map(transposed, weights.recurrent_kernels))
        exact = wide_dtype(states.dtype)

        def step(carry: Tensors, _: Tensor, entries: Tensors) -> tuple:
            (gradient, *rest), own = carry, list(entries)
            if above:
                gradient = gradient + own.pop()
            mask = own.pop() if self.masks else None
            into = gradient if mask is None else gradient * mask
            found, to_biases, to_state = update.pull(tuple(own), weights.biases, into)
            to_products = [found[index] for index in update.of_states]
            # With respect to the state before, via the products and directly.
            before = self.drop(_sum(map(times, to_products, backward_kernels)))
            if to_state is not None:
                before = before + (to_state if weights.adds else self.drop(to_state))
            if mask is not None:
                before = before + gradient * (1 - mask)
            sums = [
                total + ops.cast(term, exact)
                for total, term in zip(rest[count:], to_biases, strict=True)
            ]
            return (before, *to_products, *sums), found

        batch, size = ops.shape(self.start)
        sizes = [width * size for width in update.widths]
        count = len(update.of_states)
        firsts = [ops.zeros((batch, sizes[i]), states.dtype) for i in update.of_states]
        zeros = [ops.zeros((batch, x.shape[0]), exact) for x in weights.biases]
        (gradient, *rest), collected = scan(
            step,
            (gradient, *firsts, *zeros),
            (*kept, *self.masks, *above),
            length=ops.shape(states)[0],
            unroll=UNROLL,
            collect=tuple(((batch, each), states.dtype) for each in sizes),
            reverse=True,
        )
        found = [stack(each) for each in collected]
        to_inputs, to_weights = [], []
        for index, kernel in zip(update.of_inputs, weights.kernels, strict=True):
            to_inputs.append(times(found[index], transposed(kernel)))
            to_weights.append(outer_sum(self.inputs, found[index], kernel))
        before, start = self.drop(states[:-1]), self.drop(self.start)
        for index, first, kernel in zip(
            update.of_states, rest[:count], weights.recurrent_kernels, strict=True
        ):
            # In two parts: shifting the states by one step would copy them.
            later = outer_sum(before, found[index][1:], kernel)
            to_weights.append(outer_sum(start, first, kernel) + later)
        to_weights += [ops.sum(each, axis=0) for each in rest[count:]]
        return gradient, _sum(to_inputs), tuple(to_weights)


def _any(count: Any) -> bool:
    """Whether a count may be positive: one that is unknown so far is not an int."""
    return not isinstance(count, int) or count > 0


def _sum(terms: Iterable[Tensor]) -> Tensor:
    return functools.reduce(operator.add, terms)


def _join(parts: Sequence[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else ops.concatenate(parts, axis=axis)


def _swap(x: Tensor) -> Tensor:
    """Swaps the batch and time axes."""
    return ops.transpose(x, (1, 0, *range(2, len(x.shape))))


def _steps(x: Tensor, start: Any, length: Any) -> Tensor:
    """Selects consecutive steps, time first."""
    batch, _, units = ops.shape(x)
    return _swap(ops.slice(x, (0, start, 0), (batch, length, units)))


def _in_a_row(segments: Tensor) -> Tensor:
    """Reshapes `(segment, batch, time, n)` to `(batch, all steps, n)`."""
    count, batch, length, units = ops.shape(segments)
    return ops.reshape(_swap(segments), (batch, count * length, units))
