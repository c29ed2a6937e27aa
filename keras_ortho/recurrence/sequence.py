"""All states of a recurrence, and its gradient, without automatic differentiation.

A sequence is divided into segments. The inputs of a segment are projected in one
product; then one loop computes its states. The gradient goes back through the segments:
one loop with one product per step and recurrent kernel, and little else, then large
products for `dL/dW` and `dL/dU`. The forward pass keeps the states and what else the
derivatives need, or only the states before each segment, from which the gradient
recomputes the others. The tensors of a segment are small enough to stay in a cache.
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
from keras_ortho.backend.compile import once_in_xla
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.recurrence.segment import (
    Segment,
    inferred_states,
    segment_gradients,
    segment_states,
)
from keras_ortho.recurrence.updates import Update, Weights

# Approximate number of steps in a segment: its states, 56 x 64 x 170 numbers for half a
# batch of 128, fit in a cache of a few megabytes.
SEGMENT = 56
# Number of steps in a recomputed segment, if the length of the sequence is unknown.
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

    In training, it can be differentiated in reverse mode only, and on TensorFlow and
    PyTorch only once.

    Args:
        inputs: Tensor of shape `(batch, time, m)`.
        weights: The weights and the update.
        initial_state: Tensor of shape `(batch, n)`.
        mask: Boolean tensor of shape `(batch, time)`, `False` for steps that leave
            the state unchanged. Default: `None`.
        state_mask: Tensor of shape `(batch, n)` by which the state is multiplied
            before each step. In a step that adds to the state, it affects only the
            products. It has no gradient. Default: `None`.
        return_sequences: Whether to return all states. Default: `False`.
        recompute: Whether to keep only the states before each segment for the
            gradient: `True` for segments of about the square root of the number of
            steps, an integer for segments of that many steps. Default: `False`.
        training: Whether a gradient will be computed. If `False`, one loop runs over
            all steps, without segments; if a gradient is requested nevertheless, the
            backend computes it. Default: `True`.

    Returns:
        Tensor of shape `(batch, time, n)`, or the last state, of shape `(batch, n)`.
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
    return shared_out(compute if training else once_in_xla(plan.infer), by_batch)(
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
    # The even divisor of the number of steps, from 32 to 64, nearest to `SEGMENT`.
    divisors = [length for length in range(32, 66, 2) if steps % length == 0]
    return min(divisors, key=lambda x: abs(x - SEGMENT), default=min(SEGMENT, steps))


@dataclasses.dataclass(frozen=True)
class _Plan:
    """How to process the sequences. It holds no tensors.

    The batch is divided into pieces. Each piece goes through all its steps separately.
    """

    update: Update
    adds: bool
    # Numbers of input kernels and recurrent kernels.
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
        """Computes the gradient with respect to every tensor."""
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
        """Returns the first sequence and the number of sequences of each piece."""
        batch = ops.shape(tensors[0])[0]
        if self.pieces == 1:
            return [(0, batch)]
        bounds = [batch * i // self.pieces for i in range(self.pieces + 1)]
        return [(a, b - a) for a, b in itertools.pairwise(bounds)]

    def infer(self, *tensors: Tensor) -> Tensor:
        """Computes the output only."""
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
            # A tensor, also outside training: a SavedModel contains the gradient as
            # well.
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
        """Selects what to save: neither in the output nor recomputed."""
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
        """Computes the gradients of a piece: inputs, initial state, weights."""
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
        """Returns the length of a full segment, their number, and the steps left."""
        steps = ops.shape(inputs)[1]
        length: Any = _segment_length(inputs.shape[1], self.recompute)
        if not isinstance(steps, int):
            # XLA knows the shape when it compiles, and compiles unused branches too.
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
        """Slices a segment out of the tensors."""
        inputs, *_, mask, state_mask = tensors
        cut = functools.partial(_steps, piece=piece, start=start, length=length)
        return Segment(
            inputs=cut(inputs),
            start=state,
            mask=cut(mask[:, :, None]) if self.masked else None,
            state_mask=_rows(state_mask, piece) if self.dropped else None,
        )


def _rows(x: Tensor, piece: tuple[Any, Any]) -> Tensor:
    """Selects the sequences of a piece of the batch."""
    first, count = piece
    return x[first : first + count]


def _steps(x: Tensor, piece: tuple[Any, Any], start: Any, length: Any) -> Tensor:
    """Selects steps of the sequences of a piece of the batch, time first."""
    return _swap(slice_steps(x, piece, start, length))


def _any(count: Any) -> bool:
    """Whether a count may be positive: one that is unknown so far is not an int."""
    return not isinstance(count, int) or count > 0


def _concatenate(parts: Sequence[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else ops.concatenate(parts, axis=axis)


def _swap(x: Tensor) -> Tensor:
    """Swaps the batch and time axes."""
    return ops.transpose(x, (1, 0, *range(2, len(x.shape))))


def _in_a_row(segments: Tensor) -> Tensor:
    """Reshapes `(segment, batch, time, n)` to `(batch, all steps, n)`."""
    count, batch, length, units = ops.shape(segments)
    return ops.reshape(_swap(segments), (batch, count * length, units))
