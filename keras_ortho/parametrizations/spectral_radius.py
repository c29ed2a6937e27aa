"""The spectral radius of a real matrix, its gradient, and normalization by it.

The short-term kernel of Helfrich and Ye, "Eigenvalue normalized recurrent neural
networks for short term memory", AAAI 2020, is `T / (rho(T) + epsilon)`.

`dominant_subspace` returns orthonormal bases `Q` and `Z`, of one or two columns, of the
right and the left dominant invariant subspace. The dominant eigenvalues are those of
`H = Q^T T Q`, of order at most two, and `d H = (Z^T Q)^-1 Z^T dT Q` up to a change of
basis. The eigenvalues, the eigenvectors and the gradient follow in closed form, without
complex numbers or factorizations.
"""

from typing import Any, NamedTuple

from keras import ops

from keras_ortho.backend import with_gradient
from keras_ortho.backend.precision import wide_tensor
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_number, check_square
from keras_ortho.parametrizations.arithmetic import (
    divide,
    frobenius_norm,
    machine_epsilon,
)
from keras_ortho.parametrizations.dominant import Subspace, dominant_subspace
from keras_ortho.parametrizations.order_two import (
    determinant,
    eigenvector,
    inverse,
    larger,
    mean_and_discriminant,
    order_two,
    radius_and_slope,
)


def _restriction(matrix: Tensor, basis: Tensor, planar: Tensor) -> Tensor:
    # If the subspace is a line, this is [[h, 0], [0, 0]].
    small = ops.matmul(ops.transpose(basis), ops.matmul(matrix, basis))
    zero = ops.zeros_like(small[0, 0])
    return ops.where(planar, small, order_two(small[0, 0], zero, zero, zero))


def _overlap(subspace: Subspace) -> Tensor:
    # Z^T Q. If the subspace is a line, diag(z^T q, 1).
    overlap = ops.matmul(ops.transpose(subspace.left), subspace.right)
    zero, one = ops.zeros_like(overlap[0, 0]), ops.ones_like(overlap[0, 0])
    return ops.where(
        subspace.planar, overlap, order_two(overlap[0, 0], zero, zero, one)
    )


def _two_sided(matrix: Tensor, subspace: Subspace, overlap: Tensor) -> Tensor:
    # (Z^T Q)^-1 Z^T T Q has the product of the errors of Q and Z as its error, but
    # rounding contributes eps / |Z^T Q|. If the subspaces are nearly orthogonal, as for
    # a defective eigenvalue, Q^T T Q is used instead: it is exact for a matrix that
    # differs from T by the residual.
    one_sided = _restriction(matrix, subspace.right, subspace.planar)
    image = ops.matmul(matrix, subspace.right)
    small = ops.matmul(ops.transpose(subspace.left), image)
    zero = ops.zeros_like(small[0, 0])
    small = ops.where(subspace.planar, small, order_two(small[0, 0], zero, zero, zero))
    regular = ops.abs(determinant(overlap)) > machine_epsilon(matrix) ** 0.5
    return ops.where(regular, ops.matmul(inverse(overlap), small), one_sided)


class _Radius(NamedTuple):
    radius: Tensor
    # The gradient of the radius is `sensitivity Q^T`, and `condition` is its norm.
    sensitivity: Tensor
    condition: Tensor
    # Whether this gradient is used.
    found: Tensor
    subspace: Subspace


def _radius(scaled: Tensor) -> _Radius:
    size, eps = scaled.shape[0], machine_epsilon(scaled)
    subspace = dominant_subspace(scaled)
    overlap = _overlap(subspace)
    radius, slope = radius_and_slope(_two_sided(scaled, subspace, overlap))
    # If very many eigenvalues tie, there may be no subspace to find.
    found = subspace.residual <= eps**0.5
    radius = ops.where(found, radius, subspace.growth)
    factor = ops.transpose(ops.matmul(slope, inverse(overlap)))
    sensitivity = radius * ops.matmul(subspace.left, factor)
    # The norm of the gradient is the condition number of the eigenvalue.
    condition = frobenius_norm(sensitivity)
    found = found & (condition <= 1.0 / (size * eps))
    return _Radius(radius, sensitivity, condition, found, subspace)


def _forward(matrix: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    largest = ops.max(ops.abs(matrix))
    scaled = divide(matrix, largest)
    radius, sensitivity, _, found, subspace = _radius(scaled)
    sensitivity = ops.where(found, sensitivity, ops.zeros_like(sensitivity))
    radial = divide(radius, ops.sum(scaled * scaled))
    radial = ops.where(found, ops.zeros_like(radial), radial)
    return radius * largest, (scaled, radial, sensitivity, subspace.right)


def _backward(saved: tuple[Tensor, ...], upstream: Tensor) -> tuple[Tensor]:
    scaled, radial, sensitivity, right = saved
    gradient = ops.matmul(sensitivity, ops.transpose(right)) + radial * scaled
    return (upstream * gradient,)


_spectral_radius = with_gradient(_forward, _backward, once=True)


def _check_square(matrix: Tensor) -> Tensor:
    matrix = wide_tensor("matrix", matrix)
    check_square("matrix", matrix)
    return matrix


def spectral_radius(matrix: Tensor) -> Tensor:
    """Computes the spectral radius, the largest modulus of the eigenvalues.

    The gradient is `(alpha Re S + beta Im S) / rho`, with the dominant eigenvalue
    `lambda = alpha + i beta`, its eigenvectors `T u = lambda u`, `v* T = lambda v*`,
    and `S = conj(v) u^T / (v* u)`. The function can be differentiated once, in reverse
    mode.

    If `rho` has no gradient, or it cannot be computed, another value takes its place:

    - Of two real eigenvalues with the same modulus and opposite signs, the positive one
      is used.
    - Two real eigenvalues that are equal up to rounding are treated as a pair, with the
      geometric mean of their moduli. If they are defective, the true gradient tends to
      infinity. Rounding hides a relative gap of some eps if their eigenvectors are
      orthogonal, and one of `sqrt(eps)` if these nearly agree.
    - If more than two eigenvalues tie, one of them is used, and rounding decides which
      one. The gradient is one of the subgradients.
    - If more eigenvalues tie than fit in the block of `block_iteration`, as in many
      orthogonal matrices of order above 16, or if the condition number of the dominant
      eigenvalue exceeds `1 / (n eps)`, the gradient is `rho T / ||T||_F^2`, which only
      changes the scale of `T`. For an orthogonal matrix, this is the mean over the
      eigenvalues. `eigenpair_report` tells whether this gradient is used.
    - If a matrix is so far from normal that its powers reveal no subspace, the value is
      `||T^N||_F^(1 / N)`, which is at least the radius, with the same gradient.
    - A zero matrix has radius 0 and gradient 0.

    Args:
        matrix: `T`, a tensor of shape `(n, n)`, float32 or float64.

    Returns:
        A scalar of the same dtype.

    Raises:
        ValueError: If the matrix is not square, or its dtype is not float32 or float64.

    Example:
    >>> spectral_radius(np.array([[0.0, -2.0], [2.0, 0.0]]))
    2.0

    Reference:

    - [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964), proposition 1
    """
    return _spectral_radius(_check_square(matrix))


def normalize_spectral_radius(
    matrix: Tensor, always: Tensor | bool = True, epsilon: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Divides a matrix by its spectral radius, `T / (rho(T) + epsilon)`.

    With the upstream gradient `G` of the result `W` and `r = rho + epsilon`, the
    gradient is `(G - sum(G * W) (alpha Re S + beta Im S) / rho) / r`. For the notation
    and the cases without a gradient, see `spectral_radius`. If `rho` and `epsilon` are
    both zero, the matrix is returned unchanged.

    Args:
        matrix: `T`, a tensor of shape `(n, n)`, float32 or float64.
        always: Boolean or boolean scalar tensor. If `True`, divides for every `rho`;
            otherwise only if `rho` exceeds 1. Default: `True`.
        epsilon: A nonnegative number. Default: 0.

    Returns:
        A pair of the result, a tensor of shape `(n, n)`, and a boolean scalar tensor,
        whether the matrix was divided.

    Raises:
        ValueError: If the matrix is not square, its dtype is not float32 or float64, or
            `epsilon` is negative.

    Example:
    >>> normalize_spectral_radius(np.array([[0.0, 4.0], [1.0, 0.0]]))[0]
    [[0, 2], [0.5, 0]]

    Reference:

    - [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964), proposition 1
    """
    matrix = _check_square(matrix)
    epsilon = check_number("epsilon", epsilon)
    radius = _spectral_radius(matrix)
    divides = ops.logical_or(always, radius > 1)
    divisor = radius + epsilon
    divisor = ops.where(divides & (divisor > 0), divisor, ops.ones_like(divisor))
    return matrix / divisor, divides


def eigenpair_report(matrix: Tensor) -> dict[str, Any]:
    """Reports how the dominant eigenpair of a matrix was found, and how accurate it is.

    Args:
        matrix: `T`, a tensor of shape `(n, n)`, float32 or float64, not symbolic.

    Returns:
        A dictionary with these entries:

        - `radius`: Spectral radius.
        - `gradient_found`: Whether `spectral_radius` uses the gradient of the
          eigenvalue, rather than `rho T / ||T||_F^2`.
        - `residual`: The larger of `||T Q - Q H||_F / ||T||_F` for the right and the
          left subspace.
        - `condition`: Norm of the gradient, the condition number of the eigenvalue.
        - `planar`: Whether the subspace is a plane, of a complex pair or of two
          eigenvalues that nearly tie.
        - `squarings`: Number of times that the matrix was squared.
        - `block_steps`: Number of steps of block iteration that followed, or -1 if
          none were needed.

    Raises:
        ValueError: If the matrix is not square, or its dtype is not float32 or float64.

    Example:
    >>> eigenpair_report(np.array([[0.0, 4.0], [1.0, 0.0]]))["gradient_found"]
    True
    """
    matrix = ops.stop_gradient(_check_square(matrix))
    largest = ops.max(ops.abs(matrix))
    radius, _, condition, found, subspace = _radius(divide(matrix, largest))
    return {
        "radius": float(radius * largest),
        "gradient_found": bool(found),
        "residual": float(subspace.residual),
        "condition": float(condition),
        "planar": bool(subspace.planar),
        "squarings": int(subspace.squarings),
        "block_steps": int(subspace.block_steps),
    }


def dominant_eigenpair(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Computes the dominant eigenvalue with a right and a left eigenvector.

    If more than two eigenvalues tie, see `spectral_radius`.

    Args:
        matrix: `T`, a tensor of shape `(n, n)`, float32 or float64.

    Returns:
        A tuple `(lambda, u, v)` of tensors, through which no gradient flows. The
        eigenvalue `lambda`, of shape `(2,)`, holds the real part and the imaginary
        part, which is nonnegative. The right eigenvector `u`, with `T u = lambda u`,
        has norm 1 and shape `(2, n)`, the real and imaginary parts; the left one `v`,
        with `v* T = lambda v*`, likewise. For a zero matrix, both are zero.

    Raises:
        ValueError: If the matrix is not square, or its dtype is not float32 or float64.

    Example:
    >>> dominant_eigenpair(np.array([[0.0, 4.0], [1.0, 0.0]]))[0]
    [2, 0]
    """
    matrix = ops.stop_gradient(_check_square(matrix))
    subspace = dominant_subspace(matrix)
    small = _restriction(matrix, subspace.right, subspace.planar)
    mean, discriminant = mean_and_discriminant(small)
    value, gap = larger(mean, discriminant)
    imaginary = ops.sqrt(ops.maximum(-discriminant, 0.0))
    other = (value - gap, -imaginary)
    right = eigenvector(small, other)
    transposed = ops.transpose(matrix)
    small = _restriction(transposed, subspace.left, subspace.planar)
    conjugate = eigenvector(small, other)
    left = ops.stack([conjugate[0], -conjugate[1]])
    return (
        ops.stack([value, imaginary]),
        ops.matmul(right, ops.transpose(subspace.right)),
        ops.matmul(left, ops.transpose(subspace.left)),
    )
