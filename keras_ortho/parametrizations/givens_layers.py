"""Products of layers of rotations of pairs, with their gradient.

The layers are applied to the identity. Each layer is a few elementwise operations on
the whole matrix, of `O(n^2)` cost. Up to `MAX_UNROLLED` tunable layers are unrolled;
more become a loop. The backward pass needs no intermediate results: it undoes each
rotation by its inverse, which also carries the gradient back.
"""

import functools
from collections.abc import Callable

from keras import ops

from keras_ortho.backend import scan, stack, with_gradient
from keras_ortho.backend.elementary import cos, sin
from keras_ortho.backend.types import Tensor

# Largest number of tunable layers that are unrolled rather than run as a loop.
MAX_UNROLLED = 16


def pair_table(values: Tensor, style: str) -> Tensor:
    """Arranges angles or phases with one entry for each pair of each layer.

    A stage is two layers in the tunable style, one in the FFT style. In the second of
    the two, the pairs wrap around: the last one, of the last and the first unit, gets a
    zero and is not rotated.
    """
    if style == "fft":
        return values[:, None]
    pairs = (values.shape[1] + 1) // 2
    rest = ops.pad(values[:, pairs:], ((0, 0), (0, 1)))
    return ops.stack([values[:, :pairs], rest], axis=1)


def _layout(style: str, size: int, stage: int) -> list[tuple[int, int]]:
    """Returns `(blocks of pairs, first unit)` for each layer of a stage."""
    return [(2**stage, 0)] if style == "fft" else [(size // 2, 0), (size // 2, 1)]


def _split(matrix: Tensor, blocks: int, offset: int) -> tuple[Tensor, Tensor]:
    """Splits a matrix into the rows of the first and of the second units of the pairs.

    Both have the shape `(parts, blocks, distance, columns)`.
    """
    parts, size, columns = matrix.shape
    if offset:
        matrix = ops.roll(matrix, -offset, axis=1)
    matrix = ops.reshape(matrix, (parts, blocks, 2, size // (2 * blocks), columns))
    return matrix[:, :, 0], matrix[:, :, 1]


def _join(first: Tensor, second: Tensor, offset: int) -> Tensor:
    parts, blocks, distance, columns = first.shape
    matrix = ops.reshape(
        ops.stack([first, second], axis=2), (parts, 2 * blocks * distance, columns)
    )
    return ops.roll(matrix, offset, axis=1) if offset else matrix


def _waves(angles: Tensor, blocks: int) -> tuple[Tensor, Tensor]:
    angles = ops.reshape(angles, (blocks, -1, 1))
    return cos(angles), sin(angles)


def _turn(values: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Multiplies complex numbers, stored as pairs of reals, by `cos + i sin`."""
    real, imaginary = values[0], values[1]
    return ops.stack(
        [cosine * real - sine * imaginary, sine * real + cosine * imaginary]
    )


# The matrices below are transposed, `(parts, n, n)`, with one row for each unit: the
# operands of the rotations are then contiguous.
def _rotate(
    matrix: Tensor, tables: tuple[Tensor, ...], layout: list[tuple[int, int]]
) -> Tensor:
    """Applies the layers of one stage."""
    for layer, (blocks, offset) in enumerate(layout):
        first, second = _split(matrix, blocks, offset)
        if len(tables) == 2:
            second = _turn(second, *_waves(tables[1][layer], blocks))
        cosine, sine = _waves(tables[0][layer], blocks)
        matrix = _join(
            cosine * first - sine * second, sine * first + cosine * second, offset
        )
    return matrix


def _rotate_back(
    both: Tensor, tables: tuple[Tensor, ...], layout: list[tuple[int, int]]
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Undoes the layers of one stage, and computes the gradients of their angles."""
    size = both.shape[1]
    gradients: list[list[Tensor]] = [[] for _ in tables]
    for layer, (blocks, offset) in reversed(list(enumerate(layout))):
        first, second = _split(both, blocks, offset)
        # d first / dt = -second, and d second / dt = first.
        along = (
            second[..., size:] * first[..., :size]
            - first[..., size:] * second[..., :size]
        )
        gradients[0].insert(0, ops.reshape(ops.sum(along, axis=(0, 3)), (-1,)))
        cosine, sine = _waves(tables[0][layer], blocks)
        first, second = cosine * first + sine * second, cosine * second - sine * first
        if len(tables) == 2:
            value, upstream = second[..., :size], second[..., size:]
            along = upstream[1] * value[0] - upstream[0] * value[1]
            gradients[1].insert(0, ops.reshape(ops.sum(along, axis=2), (-1,)))
            cosine, sine = _waves(tables[1][layer], blocks)
            second = _turn(second, cosine, -sine)
        both = _join(first, second, offset)
    return both, tuple(ops.stack(g) for g in gradients)


@functools.cache
def rotations(style: str) -> Callable[..., Tensor]:
    """Makes the function that maps angles to the product of all layers."""

    def is_loop(table: Tensor) -> bool:
        return style == "tunable" and 2 * table.shape[0] > MAX_UNROLLED

    def forward(*tables: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        stages, _, pairs = tables[0].shape
        eye = ops.eye(2 * pairs, dtype=tables[0].dtype)
        matrix = ops.stack([eye, ops.zeros_like(eye)][: len(tables)])
        if is_loop(tables[0]):
            layout = _layout(style, 2 * pairs, 0)
            (matrix,), _ = scan(
                lambda carry, _, stage: ((_rotate(carry[0], stage, layout),), ()),
                (matrix,),
                tables,
                length=stages,
            )
        else:
            for i in range(stages):
                stage = tuple(table[i] for table in tables)
                matrix = _rotate(matrix, stage, _layout(style, 2 * pairs, i))
        return matrix, (matrix, *tables)

    def backward(saved: tuple[Tensor, ...], upstream: Tensor) -> list[Tensor]:
        matrix, *tables = saved
        stages, layers, pairs = tables[0].shape
        both = ops.concatenate([matrix, upstream], axis=2)
        if is_loop(tables[0]):
            layout = _layout(style, 2 * pairs, 0)

            def step(
                carry: tuple[Tensor, ...], _: Tensor, stage: tuple[Tensor, ...]
            ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
                both, found = _rotate_back(carry[0], stage, layout)
                return (both,), found

            kind = ((layers, pairs), both.dtype)
            _, found = scan(
                step,
                (both,),
                tuple(tables),
                length=stages,
                collect=(kind,) * len(tables),
                reverse=True,
            )
            return [stack(gradient) for gradient in found]
        gradients: list[tuple[Tensor, ...]] = []
        for i in reversed(range(stages)):
            stage = tuple(table[i] for table in tables)
            both, found = _rotate_back(both, stage, _layout(style, 2 * pairs, i))
            gradients.insert(0, found)
        return [ops.stack(column) for column in zip(*gradients, strict=True)]

    return with_gradient(forward, backward)
