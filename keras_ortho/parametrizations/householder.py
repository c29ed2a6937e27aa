"""Products of Householder reflectors, through the compact WY form.

    Q = H_n(u_n) H_{n-1}(u_{n-1}) ... H_{n-m+1}(u_{n-m+1})

`H_k(u)` is the reflector `I - 2 u u^T / u^T u` of the last `k` of `n` coordinates, and
`u` has `k` entries. They are packed into one vector, the longest first. Mhammedi et
al., "Efficient orthogonal parametrisation of recurrent neural networks using
Householder reflections", ICML 2017.

Two conventions make the map total. A reflector that is zero is the identity, as in
Zhang, Lei and Dhillon, ICML 2018; its gradient is zero, so it stays one. `H_1(u)` is
the sign of `u`, 1 at zero, as in oRNN, rather than always -1: so with `m = n` both
determinants can be reached from any other reflectors, and every orthogonal matrix is a
product of reflectors none of which is zero.
"""

from keras import ops

from keras_ortho.backend import with_gradient
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.reflectors import (
    num_reflector_entries,
    reflector_rows,
    unit_rows,
)


def _forward(gram: Tensor) -> tuple[Tensor, Tensor]:
    identity = ops.eye(gram.shape[0], dtype=gram.dtype)
    inverse = ops.solve_triangular(
        identity + 2.0 * ops.triu(gram, 1), 2.0 * identity, lower=False
    )
    return inverse, inverse


def _backward(inverse: Tensor, upstream: Tensor) -> tuple[Tensor]:
    # dT = -T dS T, and what was inverted need not be solved with again.
    transpose = ops.transpose(inverse)
    product = ops.matmul(ops.matmul(transpose, upstream), transpose)
    return (-ops.triu(product, 1),)


# T = S^-1, with S = 1/2 I + the strict upper triangle of the Gram matrix.
_wy_inverse = with_gradient(_forward, _backward)


def householder_product(
    reflectors: Tensor, size: int, columns: int | None = None
) -> Tensor:
    """The product `H_n(u_n) ... H_{n-m+1}(u_{n-m+1})` of `m` reflectors.

    With the reflectors, scaled to the length 1, in the rows of `Y` it is
    `I - Y^T T Y`, where `T^-1` is half the identity plus the strict upper triangle of
    `Y Y^T`: one triangular solve of order `m` and products of matrices. The same `T`
    serves the gradient, which has all three terms of equation 15 of Zhang, Lei and
    Dhillon.

    The length of a reflector plays no part. A zero reflector is the identity, and
    one of a single entry the sign of that entry, which has no gradient.

    Args:
        reflectors: Tensor of shape `(m n - m (m - 1) / 2,)`, float32 or float64: the
            reflector of all `n` coordinates, that of the last `n - 1`, and so on.
        size: Order `n` of the matrix.
        columns: How many of the first columns to compute. Default: `None`, all.

    Returns:
        The orthogonal matrix, of shape `(n, n)`, or its first columns, in the dtype of
        the reflectors.

    Raises:
        ValueError: If no number of reflectors has so many entries.

    Example:
    >>> householder_product(np.array([1.0, 1.0, -2.0]), 2)
    [[0, 1], [-1, 0]]

    Reference:

    - [Mhammedi et al., 2017](https://proceedings.mlr.press/v70/mhammedi17a.html)
    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html)
    - [Joffrain et al., 2006](https://doi.org/10.1145/1141885.1141886), the compact
      WY form
    """
    columns = size if columns is None else columns
    reflectors = ops.convert_to_tensor(reflectors)
    all_of_them = reflectors.shape[0] == num_reflector_entries(size, size)
    if all_of_them:
        # Nothing but rounding would be the gradient of a sign, and optimizers make
        # something of it.
        last = ops.stop_gradient(reflectors[-1:])
        reflectors = ops.concatenate([reflectors[:-1], last])
    rows = unit_rows(reflector_rows(reflectors, size))
    inverse = _wy_inverse(ops.matmul(rows, ops.transpose(rows)))
    product = ops.matmul(inverse, rows[:, :columns])
    identity = ops.eye(size, columns, dtype=reflectors.dtype)
    matrix = identity - ops.matmul(ops.transpose(rows), product)
    if not all_of_them or columns < size:
        return matrix
    # The last reflector has multiplied the last column by -1, unless it is zero.
    flip = ops.where(last > 0, -ops.ones_like(last), ops.ones_like(last))
    ones = ops.ones((size - 1,), dtype=reflectors.dtype)
    return matrix * ops.concatenate([ones, flip])
