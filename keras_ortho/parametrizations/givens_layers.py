"""Products of layers of rotations of pairs, and their gradient.

The layers are applied to the identity, each as a few elementwise operations on the
whole matrix: `O(n^2)` work a layer. Up to `MAX_UNROLLED` layers they follow each
other in the program; more are one loop in it. The gradient needs no intermediate
results: a rotation is undone by its inverse, and the gradient goes the same way.
"""

import functools
from collections.abc import Callable

from keras import ops

from keras_ortho.backend import scan, stack, with_gradient
from keras_ortho.backend.elementary import cos, sin
from keras_ortho.backend.types import Tensor

# Layers that are written one after the other rather than as a loop.
MAX_UNROLLED = 16


def pair_table(values: Tensor, style: str) -> Tensor:
    """Arranges angles as one entry for each pair of each layer.

    A stage is two layers of the tunable style, one of the FFT style. In the second
    of two the pairs go around the end, and the last of them, of the last unit and
    the first, is not rotated.

    Args:
        values: Tensor of the shape that `angles_shape` tells.
        style: `"tunable"` or `"fft"`.

    Returns:
        Tensor of shape `(stages, layers, n / 2)`.
    """
    if style == "fft":
        return values[:, None]
    pairs = (values.shape[1] + 1) // 2
    rest = ops.pad(values[:, pairs:], ((0, 0), (0, 1)))
    return ops.stack([values[:, :pairs], rest], axis=1)


def _layout(style: str, size: int, stage: int) -> list[tuple[int, int]]:
    """For each layer of a stage how many blocks of pairs, and where they begin."""
    return [(2**stage, 0)] if style == "fft" else [(size // 2, 0), (size // 2, 1)]


def _split(matrix: Tensor, blocks: int, offset: int) -> tuple[Tensor, Tensor]:
    """The first and the second units of the pairs, `(parts, blocks, r, columns)`."""
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
    """Multiplies complex numbers, as pairs of reals, with `cos + i sin`."""
    real, imaginary = values[0], values[1]
    return ops.stack(
        [cosine * real - sine * imaginary, sine * real + cosine * imaginary]
    )


# The matrices below are transposed, `(parts, n, n)`: a row for each unit, so that the
# pairs are along the first axis and what is multiplied is contiguous.
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
    """Undoes the layers of one stage, and takes the gradient of their angles.

    Args:
        both: The matrix and the gradient with respect to it, side by side.
        tables: Angles, and phases, of the stage.
        layout: That of the stage.

    Returns:
        Both before the stage, and the gradients of the tables.
    """
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
    """Makes the function from angles to the product of all layers.

    Args:
        style: `"tunable"` or `"fft"`.

    Returns:
        Function of a table of angles, and in the complex case of one of phases, as
        `pair_table` makes them. It returns the transposed product, of shape
        `(1, n, n)`, or `(2, n, n)` with real and imaginary parts. Its gradient can
        be taken once, in reverse mode.
    """

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
