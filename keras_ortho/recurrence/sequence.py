"""All states of `h_t = f(x_t U + h_{t-1} W)`, and the gradient, without autodiff.

A sequence is cut into segments. The inputs of a segment are projected in one product;
then one loop makes its states. The gradient goes back through the segments: the
derivatives of all its steps at once, one loop that holds a product a step and little
else, then `dL/dW`, `dL/dU` and `dL/db` as large products. Only the states are kept in
between, or only those before each segment, and the others are computed again. What
lies within a segment is small enough to stay in a cache.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_ortho.backend import batch_pieces, scan, stack, time_slice, with_gradient
from keras_ortho.backend.types import Tensor
from keras_ortho.recurrence.pointwise import Pointwise
from keras_ortho.recurrence.segment import (
    Segment,
    Weights,
    segment_gradients,
    segment_states,
)

# Steps in a segment, about: its states, 56 x 64 x 170 numbers for half a batch of 128,
# fit a cache of some megabytes.
SEGMENT = 56
# Steps in a segment that is computed again, where the length is not known.
UNKNOWN_LENGTH_SEGMENT = 256


def recurrence(
    inputs: Tensor,
    kernel: Tensor,
    recurrent_kernel: Tensor,
    bias: Tensor,
    initial_state: Tensor,
    activation: Pointwise,
    *,
    mask: Tensor | None = None,
    state_mask: Tensor | None = None,
    return_sequences: bool = False,
    recompute: bool | int = False,
    training: bool = True,
) -> Tensor:
    """Computes the states of a plain recurrence, with its own gradient.

    On TensorFlow it can be differentiated once, on JAX in reverse mode only.

    Args:
        inputs: Tensor of shape `(batch, time, m)`.
        kernel: `U`, of shape `(m, n)`.
        recurrent_kernel: `W`, of shape `(n, n)`, for row vectors.
        bias: Tensor of the shape that the activation takes, mostly `(n,)`.
        initial_state: Tensor of shape `(batch, n)`.
        activation: One of `keras_ortho.recurrence.find`.
        mask: Boolean tensor of shape `(batch, time)`, `False` for steps that leave
            the state as it is. Default: `None`.
        state_mask: Tensor of shape `(batch, n)` that the state is multiplied with
            before `W` at each step. It has no gradient. Default: `None`.
        return_sequences: Whether to return all states. Default: `False`.
        recompute: Whether to keep only the states before each segment for the
            gradient: `True` for segments of about the square root of the number of
            steps, an int for segments of so many. Default: `False`.
        training: Whether a gradient will be asked for. Where one is without it, it
            computes the states again. Default: `True`.

    Returns:
        Tensor of shape `(batch, time, n)`, or `(batch, n)`, the last state.
    """
    plan = _Plan(
        activation=activation,
        masked=mask is not None,
        dropped=state_mask is not None,
        return_sequences=return_sequences,
        keep_states=training and not recompute and not return_sequences,
        length=_segment_length(inputs.shape[1], recompute),
        pieces=batch_pieces(),
    )
    nothing = ops.zeros((), dtype=inputs.dtype)
    return with_gradient(plan.forward, plan.backward, once=True)(
        inputs,
        kernel,
        recurrent_kernel,
        bias,
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
    # The one nearest to it, of those that leave no rest.
    divisors = [length for length in range(32, 65) if steps % length == 0]
    return min(divisors, key=lambda x: abs(x - SEGMENT), default=min(SEGMENT, steps))


@dataclasses.dataclass(frozen=True)
class _Plan:
    """How to go through the sequences. It holds no tensor."""

    activation: Pointwise
    masked: bool
    dropped: bool
    return_sequences: bool
    keep_states: bool
    length: int
    pieces: int

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Any]:
        """Computes the output, and what the gradient needs."""
        inputs, _, recurrent_kernel, _, state, *_ = tensors
        length, count, rest = self._lengths(inputs)
        batch, units = ops.shape(inputs)[0], recurrent_kernel.shape[0]

        def step(carry: tuple, index: Tensor, _: tuple) -> tuple:
            (state,) = carry
            after, states = self._states(tensors, state, index * length, length)
            if self.return_sequences:
                return (after,), (state, _swap(states))
            return (after,), (state, states) if self.keep_states else (state,)

        collect: list[tuple[Any, ...]] = [(batch, units)]
        if self.return_sequences:
            collect.append((batch, length, units))
        elif self.keep_states:
            collect.append((length, batch, units))
        full: tuple = ()
        if _any(count):
            (state,), full = scan(
                step,
                (state,),
                length=count,
                collect=tuple((shape, inputs.dtype) for shape in collect),
            )
            # What is kept without training must be tensors: a SavedModel holds
            # the gradient, too.
            full = (stack(full[0]), *full[1:])
        rest_start, rest_states = state, None
        if _any(rest):
            state, rest_states = self._states(tensors, state, count * length, rest)
        if not self.return_sequences:
            kept = rest_states if self.keep_states else None
            return state, (tensors, full, rest_start, kept)
        parts = [_in_a_row(stack(full[1]))] if full else []
        parts += [] if rest_states is None else [_swap(rest_states)]
        outputs = _concatenate(parts, axis=1)
        return outputs, (tensors, full[:1], rest_start, outputs)

    def backward(self, saved: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        """Computes the gradient of every tensor."""
        tensors, full, rest_start, kept = saved
        inputs, *weights, state, mask, state_mask = tensors
        length, count, rest = self._lengths(inputs)
        outputs = (kept, upstream) if self.return_sequences else None
        exact = keras.backend.standardize_dtype(inputs.dtype) == "float64"

        def step(carry: tuple, index: Tensor, entries: tuple) -> tuple:
            return self._gradients(
                tensors, carry, index * length, length, entries, outputs
            )

        gradient = ops.zeros_like(state) if self.return_sequences else upstream
        sums = [ops.zeros(x.shape, "float64" if exact else "float32") for x in weights]
        carry: tuple = (gradient, *sums)
        parts: list[Tensor] = []
        if _any(rest):
            entries = (rest_start, kept) if self.keep_states else (rest_start,)
            carry, (part,) = self._gradients(
                tensors, carry, count * length, rest, entries, outputs
            )
            parts.append(part)
        if _any(count):
            batch, _, features = ops.shape(inputs)
            carry, (segments,) = scan(
                step,
                carry,
                full,
                length=count,
                collect=(((batch, length, features), inputs.dtype),),
                reverse=True,
            )
            parts.insert(0, _in_a_row(stack(segments)))
        gradient, *sums = carry
        return (
            _concatenate(parts, axis=1),
            *(ops.cast(x, inputs.dtype) for x in sums),
            gradient,
            ops.zeros_like(mask),
            ops.zeros_like(state_mask),
        )

    def _lengths(self, inputs: Tensor) -> tuple[Any, Any, Any]:
        """Steps in a whole segment, how many of those, and what remains."""
        steps, length = ops.shape(inputs)[1], self.length
        if not isinstance(steps, int):
            # XLA knows the shape by then, and compiles what will not run, too.
            length = ops.maximum(1, ops.minimum(steps, length))
        return length, steps // length, steps % length

    def _states(
        self, tensors: Sequence[Tensor], state: Tensor, start: Any, length: Any
    ) -> tuple[Tensor, Tensor]:
        """Computes the states of a segment: the last, and all, time first."""
        weights, segments = self._segments(tensors, state, start, length)
        pairs = [segment_states(weights, segment) for segment in segments]
        last, states = zip(*pairs, strict=True)
        return _concatenate(last, axis=0), _concatenate(states, axis=1)

    def _gradients(
        self,
        tensors: Sequence[Tensor],
        carry: tuple,
        start: Any,
        length: Any,
        entries: tuple,
        outputs: tuple[Tensor, Tensor] | None,
    ) -> tuple[tuple, tuple]:
        """Goes back through a segment: the next carry, and `dL/dx`."""
        gradient, *sums = carry
        state, *kept = entries
        above = None
        if outputs is not None:
            states, above = (self._slice(x, start, length) for x in outputs)
        elif kept:
            (states,) = kept
        else:
            _, states = self._states(tensors, state, start, length)
        weights, segments = self._segments(tensors, state, start, length)
        gradients, inputs, terms = zip(
            *itertools.starmap(
                segment_gradients,
                zip(
                    [weights] * self.pieces,
                    segments,
                    self._cut(states, axis=1),
                    self._cut(above, axis=1),
                    self._cut(gradient, axis=0),
                    strict=True,
                ),
            ),
            strict=True,
        )
        for piece in terms:
            sums = [
                total + ops.cast(term, total.dtype)
                for total, term in zip(sums, piece, strict=True)
            ]
        return (_concatenate(gradients, axis=0), *sums), (
            _swap(_concatenate(inputs, axis=1)),
        )

    def _segments(
        self, tensors: Sequence[Tensor], state: Tensor, start: Any, length: Any
    ) -> tuple[Weights, list[Segment]]:
        """Cuts out a segment of steps, for each piece of the batch."""
        inputs, kernel, recurrent_kernel, bias, _, mask, state_mask = tensors
        steps = self._slice(inputs, start, length)
        counts = self._slice(mask, start, length)[:, :, None] if self.masked else None
        segments = itertools.starmap(
            Segment,
            zip(
                self._cut(steps, axis=1),
                self._cut(state, axis=0),
                self._cut(counts, axis=1),
                self._cut(state_mask if self.dropped else None, axis=0),
                strict=True,
            ),
        )
        return Weights(kernel, recurrent_kernel, bias, self.activation), list(segments)

    def _slice(self, x: Tensor, start: Any, length: Any) -> Tensor:
        """Takes the steps of a segment, and puts time first."""
        return _swap(time_slice(x, start, length))

    def _cut(self, x: Tensor | None, axis: int) -> list[Tensor | None]:
        """Cuts the batch into pieces."""
        if x is None or self.pieces == 1:
            return [x] * self.pieces
        batch = ops.shape(x)[axis]
        bounds = [batch * i // self.pieces for i in range(self.pieces + 1)]
        lead = (slice(None),) * axis
        return [x[(*lead, slice(a, b))] for a, b in itertools.pairwise(bounds)]


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
