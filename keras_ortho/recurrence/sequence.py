"""All states of a recurrence, and the gradient, without automatic differentiation.

A sequence is cut into segments. The inputs of a segment are projected in one product;
then one loop makes its states. The gradient goes back through the segments: one loop
that holds a product a step and little else, or two where there are gates, then `dL/dW`
and `dL/dU` as large products. What is kept in between are the states and what
the derivatives need besides, or only the states before each segment, and the others are
computed again. What lies within a segment is small enough to stay in a cache.
"""

import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

from keras import ops

from keras_ortho.backend import (
    batch_pieces,
    scan,
    shared_out,
    slice_steps,
    stack,
    with_gradient,
)
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.recurrence.segment import (
    Segment,
    inferred_states,
    segment_gradients,
    segment_states,
)
from keras_ortho.recurrence.updates import Update
from keras_ortho.recurrence.weights import Weights

# Steps in a segment, about: its states, 56 x 64 x 170 numbers for half a batch of 128,
# fit a cache of some megabytes.
SEGMENT = 56
# Steps in a segment that is computed again, where the length is not known.
UNKNOWN_LENGTH_SEGMENT = 256


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

    On TensorFlow it can be differentiated once, on JAX in reverse mode only.

    Args:
        inputs: Tensor of shape `(batch, time, m)`.
        weights: The weights, and the step.
        initial_state: Tensor of shape `(batch, n)`.
        mask: Boolean tensor of shape `(batch, time)`, `False` for steps that leave
            the state as it is. Default: `None`.
        state_mask: Tensor of shape `(batch, n)` that the state is multiplied with
            before each step; where that adds to the state, only in its products. It
            has no gradient. Default: `None`.
        return_sequences: Whether to return all states. Default: `False`.
        recompute: Whether to keep only the states before each segment for the
            gradient: `True` for segments of about the square root of the number of
            steps, an int for segments of so many. Default: `False`.
        training: Whether a gradient will be asked for. Without it there is one loop
            over all steps, without segments, and a gradient that is asked for all the
            same is the backend's. Default: `True`.

    Returns:
        Tensor of shape `(batch, time, n)`, or `(batch, n)`, the last state.
    """
    plan = _Plan(
        update=weights.update,
        adds=weights.adds,
        counts=(len(weights.kernels), len(weights.recurrent_kernels)),
        masked=mask is not None,
        dropped=state_mask is not None,
        return_sequences=return_sequences,
        recompute=recompute,
        pieces=batch_pieces(
            inputs.shape[0],
            sum(math.prod(kernel.shape) for kernel in weights.recurrent_kernels),
            training,
        ),
    )
    own = weights.tensors()
    nothing = ops.zeros((), dtype=inputs.dtype)
    compute = with_gradient(plan.forward, plan.backward, once=True)
    by_batch = (True, *[False] * len(own), True, plan.masked, plan.dropped)
    return shared_out(compute if training else plan.infer, by_batch)(
        inputs,
        *own,
        initial_state,
        nothing if mask is None else ops.cast(mask, inputs.dtype),
        nothing if state_mask is None else state_mask,
    )


def _segment_length(steps: int | None, recompute: bool | int) -> int:
    if recompute is True:
        return UNKNOWN_LENGTH_SEGMENT if steps is None else math.isqrt(steps - 1) + 1
    if recompute:
        return recompute if steps is None else min(recompute, steps)
    if steps is None:
        return SEGMENT
    # The one nearest to it, even, of those that leave no rest.
    divisors = [length for length in range(32, 66, 2) if steps % length == 0]
    return min(divisors, key=lambda x: abs(x - SEGMENT), default=min(SEGMENT, steps))


@dataclasses.dataclass(frozen=True)
class _Plan:
    """How to go through the sequences. It holds no tensor.

    The batch is cut into pieces, each of which goes through all its steps by itself.
    """

    update: Update
    adds: bool
    # Of input kernels and recurrent kernels.
    counts: tuple[int, int]
    masked: bool
    dropped: bool
    return_sequences: bool
    recompute: bool | int
    pieces: int

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Any]:
        """Computes the output, and what the gradient needs."""
        outputs, saved = zip(
            *(self._forward(tensors, piece) for piece in self._cut(tensors)),
            strict=True,
        )
        output = _concatenate(outputs, axis=0)
        return output, (tensors, output if self.return_sequences else None, saved)

    def backward(self, saved: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        """Computes the gradient of every tensor."""
        tensors, output, saved_pieces = saved
        *_, mask, state_mask = tensors
        gradients = [
            self._backward(tensors, piece, output, upstream, *saved_piece)
            for piece, saved_piece in zip(self._cut(tensors), saved_pieces, strict=True)
        ]
        to_inputs, to_state, *sums = zip(*gradients, strict=True)
        dtype = upstream.dtype
        return (
            _concatenate(to_inputs, axis=0),
            *(ops.cast(functools.reduce(operator.add, s), dtype) for s in sums),
            _concatenate(to_state, axis=0),
            ops.zeros_like(mask),
            ops.zeros_like(state_mask),
        )

    def _cut(self, tensors: Sequence[Tensor]) -> list[tuple[Any, Any]]:
        """The first sequence of each piece of the batch, and how many it has."""
        batch = ops.shape(tensors[0])[0]
        if self.pieces == 1:
            return [(0, batch)]
        bounds = [batch * i // self.pieces for i in range(self.pieces + 1)]
        return [(a, b - a) for a, b in itertools.pairwise(bounds)]

    def infer(self, *tensors: Tensor) -> Tensor:
        """Computes the output alone."""
        pieces = [self._infer(tensors, piece) for piece in self._cut(tensors)]
        return _concatenate(pieces, axis=0)

    def _infer(self, tensors: Sequence[Tensor], piece: tuple[Any, Any]) -> Tensor:
        """Computes the output of a piece."""
        inputs, *_, state, _, _ = tensors
        state, steps = _rows(state, piece), ops.shape(inputs)[1]
        whole = self._segment(tensors, piece, state, 0, steps)
        states = inferred_states(self._weights(tensors), whole, self.return_sequences)
        return _swap(states) if self.return_sequences else states

    def _forward(
        self, tensors: Sequence[Tensor], piece: tuple[Any, Any]
    ) -> tuple[Tensor, Any]:
        """Computes the output of a piece, and what its gradient needs."""
        inputs, *_, state, _, _ = tensors
        length, count, left = self._lengths(inputs)
        batch, units = piece[1], state.shape[-1]
        state = _rows(state, piece)

        def step(carry: tuple, index: Tensor, _: tuple) -> tuple:
            (state,) = carry
            segment = self._segment(tensors, piece, state, index * length, length)
            after, kept = segment_states(self._weights(tensors), segment)
            output = (_swap(kept[0]),) if self.return_sequences else ()
            return (after,), (*output, state, *self._saved(kept))

        dtype = inputs.dtype
        output = (((batch, length, units), dtype),) if self.return_sequences else ()
        kept = tuple(
            ((length, batch, size), each)
            for size, each in self.update.kept(units, dtype)
        )
        collect = (*output, ((batch, units), dtype), *self._saved(kept))
        parts: list[Tensor] = []
        full: tuple = ()
        if _any(count):
            (state,), full = scan(step, (state,), length=count, collect=collect)
            if self.return_sequences:
                parts.append(_in_a_row(stack(full[0])))
                full = full[1:]
            # What is kept without training must be tensors: a SavedModel holds
            # the gradient, too.
            full = (stack(full[0]), *full[1:])
        rest: tuple = (state,)
        if _any(left):
            segment = self._segment(tensors, piece, state, count * length, left)
            state, kept = segment_states(self._weights(tensors), segment)
            parts.append(_swap(kept[0]))
            rest = (*rest, *self._saved(kept))
        output = _concatenate(parts, axis=1) if self.return_sequences else state
        return output, (full, rest)

    def _saved(self, kept: tuple[Any, ...]) -> tuple[Any, ...]:
        """Of what a segment keeps, what the output lacks and is not computed again."""
        if self.recompute:
            return ()
        return kept[1:] if self.return_sequences else kept

    def _backward(
        self,
        tensors: Sequence[Tensor],
        piece: tuple[Any, Any],
        output: Tensor | None,
        upstream: Tensor,
        full: tuple,
        rest: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...]:
        """Computes the gradients for a piece: inputs, state before, weights."""
        inputs, *weights, state, _, _ = tensors
        length, count, left = self._lengths(inputs)
        needed = len(self.update.kept(state.shape[-1], inputs.dtype))

        def through(carry: tuple, start: Any, length: Any, entries: tuple) -> tuple:
            (gradient, *sums), (state, *kept) = carry, entries
            segment = self._segment(tensors, piece, state, start, length)
            above = None
            if output is not None:
                cut = functools.partial(_steps, piece=piece, start=start, length=length)
                kept, above = [cut(output), *kept], cut(upstream)
            if len(kept) < needed:
                _, (*kept,) = segment_states(self._weights(tensors), segment)
            gradient, to_inputs, terms = segment_gradients(
                self._weights(tensors), segment, tuple(kept), above, gradient
            )
            sums = [total + term for total, term in zip(sums, terms, strict=True)]
            return (gradient, *sums), (_swap(to_inputs),)

        def step(carry: tuple, index: Tensor, entries: tuple) -> tuple:
            return through(carry, index * length, length, entries)

        gradient = _rows(state if self.return_sequences else upstream, piece)
        if self.return_sequences:
            gradient = ops.zeros_like(gradient)
        zeros = [ops.zeros(x.shape, dtype=wide_dtype(x.dtype)) for x in weights]
        carry: tuple = (gradient, *zeros)
        parts: list[Tensor] = []
        if _any(left):
            carry, (part,) = through(carry, count * length, left, rest)
            parts.append(part)
        if _any(count):
            shape = (piece[1], length, inputs.shape[-1])
            carry, (segments,) = scan(
                step,
                carry,
                full,
                length=count,
                collect=((shape, inputs.dtype),),
                reverse=True,
            )
            parts.insert(0, _in_a_row(stack(segments)))
        return _concatenate(parts, axis=1), *carry

    def _lengths(self, inputs: Tensor) -> tuple[Any, Any, Any]:
        """Steps in a whole segment, how many of those, and what remains."""
        steps = ops.shape(inputs)[1]
        length: Any = _segment_length(inputs.shape[1], self.recompute)
        if not isinstance(steps, int):
            # XLA knows the shape by then, and compiles what will not run, too.
            length = ops.maximum(1, ops.minimum(steps, length))
        return length, steps // length, steps % length

    def _weights(self, tensors: Sequence[Tensor]) -> Weights:
        _, *weights, _, _, _ = tensors
        inputs, states = self.counts
        return Weights(
            tuple(weights[:inputs]),
            tuple(weights[inputs : inputs + states]),
            tuple(weights[inputs + states :]),
            self.update,
            self.adds,
        )

    def _segment(
        self,
        tensors: Sequence[Tensor],
        piece: tuple[Any, Any],
        state: Tensor,
        start: Any,
        length: Any,
    ) -> Segment:
        """Cuts a segment out of what is computed from."""
        inputs, *_, mask, state_mask = tensors
        cut = functools.partial(_steps, piece=piece, start=start, length=length)
        return Segment(
            inputs=cut(inputs),
            start=state,
            mask=cut(mask[:, :, None]) if self.masked else None,
            state_mask=_rows(state_mask, piece) if self.dropped else None,
        )


def _rows(x: Tensor, piece: tuple[Any, Any]) -> Tensor:
    """The sequences of a piece of the batch."""
    first, count = piece
    return x[first : first + count]


def _steps(x: Tensor, piece: tuple[Any, Any], start: Any, length: Any) -> Tensor:
    """Steps of the sequences of a piece of the batch, time first."""
    return _swap(slice_steps(x, piece, start, length))


def _any(count: Any) -> bool:
    """Whether there may be any: what is not known yet is not an int."""
    return not isinstance(count, int) or count > 0


def _concatenate(parts: Sequence[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else ops.concatenate(parts, axis=axis)


def _swap(x: Tensor) -> Tensor:
    """Swaps batch and time."""
    return ops.transpose(x, (1, 0, *range(2, len(x.shape))))


def _in_a_row(segments: Tensor) -> Tensor:
    """From `(segment, batch, time, n)` to `(batch, all steps, n)`."""
    count, batch, length, units = ops.shape(segments)
    return ops.reshape(_swap(segments), (batch, count * length, units))
