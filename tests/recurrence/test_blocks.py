"""A recurrence over blocks against one in NumPy over the matrix, with its zeros."""

import numpy as np
import pytest
import scipy.linalg
from keras import ops

from keras_ortho.recurrence.blocks import (
    outer_sum,
    times,
    times_at_all_steps,
    transposed,
)
from tests import reference

pytestmark = [pytest.mark.backends, pytest.mark.usefixtures("cut_in_two", "full_turns")]

EPS = np.finfo("float64").eps
HEADS, ORDER, ROWS = 2, 3, 5
UNITS = HEADS * ORDER
both = pytest.mark.parametrize("complex_state", [False, True], ids=["real", "complex"])


def blocks_of(complex_state, seed=0):
    random = np.random.default_rng(seed)
    blocks = random.normal(size=(HEADS, ORDER, ORDER))
    if complex_state:
        blocks = blocks + 1j * random.normal(size=blocks.shape)
    return np.linalg.qr(blocks)[0]


def as_kernel(blocks):
    """Blocks as the recurrence takes them."""
    if not np.iscomplexobj(blocks):
        return blocks
    forms = [reference.complex_block(block) for block in blocks]
    return np.reshape(forms, (HEADS, 2, ORDER, 2, ORDER))


def as_matrix(blocks):
    """The whole matrix."""
    matrix = scipy.linalg.block_diag(*blocks)
    return reference.complex_block(matrix) if np.iscomplexobj(blocks) else matrix


@both
def test_products(complex_state):
    blocks = blocks_of(complex_state)
    kernel, matrix = as_kernel(blocks), as_matrix(blocks)
    random = np.random.default_rng(1)
    states, upstream = random.normal(size=(2, ROWS, len(matrix)))
    atol = 10 * len(matrix) * EPS * np.abs(states).max() * np.abs(upstream).max()
    np.testing.assert_allclose(times(states, kernel), states @ matrix, atol=atol)
    np.testing.assert_allclose(
        times(states, transposed(kernel)), states @ matrix.T, atol=atol
    )
    # Its product with any other kernel is the derivative in the direction of that.
    other = blocks_of(complex_state, seed=2)
    np.testing.assert_allclose(
        np.sum(ops.convert_to_numpy(outer_sum(states, upstream, kernel)) * kernel),
        np.sum(upstream * (states @ matrix)),
        atol=ROWS * len(matrix) * atol,
    )
    np.testing.assert_allclose(
        np.sum(
            ops.convert_to_numpy(outer_sum(states, upstream, kernel)) * as_kernel(other)
        ),
        np.sum(upstream * (states @ as_matrix(other))),
        atol=ROWS * len(matrix) * atol,
    )


@both
def test_products_with_other_inputs(complex_state):
    """Of three inputs a head, where a head has two units."""
    inputs, order = 3, 2
    random = np.random.default_rng(5)
    blocks = random.normal(size=(HEADS, 1, inputs, 1 + complex_state, order))
    kernel = blocks if complex_state else blocks[:, 0, :, 0]
    parts = [
        scipy.linalg.block_diag(*blocks[:, 0, :, part])
        for part in range(1 + complex_state)
    ]
    matrix = np.concatenate(parts, axis=1)
    x, upstream = (random.normal(size=(4, ROWS, size)) for size in matrix.shape)
    atol = 100 * ROWS * len(matrix) * EPS * np.abs(x).max() * np.abs(upstream).max()
    found = times_at_all_steps(x, kernel)
    np.testing.assert_allclose(found, x @ matrix, atol=atol)
    found = times_at_all_steps(upstream, transposed(kernel))
    np.testing.assert_allclose(found, upstream @ matrix.T, atol=atol)
    whole = np.einsum("tbm,tbn->mn", x, upstream)
    halves = np.split(whole, len(parts), axis=1)
    wanted = np.stack(
        [
            [
                half[h * inputs : (h + 1) * inputs, h * order : (h + 1) * order]
                for half in halves
            ]
            for h in range(HEADS)
        ]
    )
    found = ops.convert_to_numpy(outer_sum(x, upstream, kernel))
    wanted = np.moveaxis(wanted, 1, 2).reshape(found.shape)
    np.testing.assert_allclose(found, wanted, atol=atol)


@both
def test_no_steps_add_up_to_zero(complex_state):
    """A segment of one step has none that comes after another."""
    kernel = as_kernel(blocks_of(complex_state))
    none = np.zeros((0, ROWS, UNITS * (1 + complex_state)))
    found = ops.convert_to_numpy(outer_sum(none, none, kernel))
    np.testing.assert_array_equal(found, np.zeros(kernel.shape))
