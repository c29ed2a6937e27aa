"""The spectral radius of a real matrix, with its gradient, and division by it.

The short-term kernel of Helfrich and Ye, "Eigenvalue normalized recurrent neural
networks for short term memory", AAAI 2020, is `T / (rho(T) + epsilon)`.

`dominant_subspace` gives orthonormal bases `Q` and `Z` of the dominant invariant
subspace, right and left, of one or two columns. Its eigenvalues are those of
`H = Q^T T Q`, of order two at most, and `d H = (Z^T Q)^-1 Z^T dT Q` up to a change of
basis: the eigenvalues, their vectors and the gradient follow in closed form, without a
complex number or a factorization.
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
    # A line gives the matrix [[h, 0], [0, 0]].
    small = ops.matmul(ops.transpose(basis), ops.matmul(matrix, basis))
    zero = ops.zeros_like(small[0, 0])
    return ops.where(planar, small, order_two(small[0, 0], zero, zero, zero))


def _overlap(subspace: Subspace) -> Tensor:
    # Z^T Q, with a 1 for the column that a line lacks.
    overlap = ops.matmul(ops.transpose(subspace.left), subspace.right)
    zero, one = ops.zeros_like(overlap[0, 0]), ops.ones_like(overlap[0, 0])
    return ops.where(
        subspace.planar, overlap, order_two(overlap[0, 0], zero, zero, one)
    )


def _two_sided(matrix: Tensor, subspace: Subspace, overlap: Tensor) -> Tensor:
    # (Z^T Q)^-1 Z^T T Q: the error is the product of those of Q and Z, but rounding
    # counts eps / |Z^T Q|. Where the spaces are all but orthogonal, as of a defective
    # eigenvalue, Q^T T Q: exact for a matrix that differs by the residual.
    one_sided = _restriction(matrix, subspace.right, subspace.planar)
    image = ops.matmul(matrix, subspace.right)
    small = ops.matmul(ops.transpose(subspace.left), image)
    zero = ops.zeros_like(small[0, 0])
    small = ops.where(subspace.planar, small, order_two(small[0, 0], zero, zero, zero))
    regular = ops.abs(determinant(overlap)) > machine_epsilon(matrix) ** 0.5
    return ops.where(regular, ops.matmul(inverse(overlap), small), one_sided)


class _Radius(NamedTuple):
    radius: Tensor
    # Times Q^T the gradient of the radius, and its Frobenius norm.
    sensitivity: Tensor
    condition: Tensor
    # Whether that is the gradient that counts.
    found: Tensor
    subspace: Subspace


def _radius(scaled: Tensor) -> _Radius:
    size, eps = scaled.shape[0], machine_epsilon(scaled)
    subspace = dominant_subspace(scaled)
    overlap = _overlap(subspace)
    radius, slope = radius_and_slope(_two_sided(scaled, subspace, overlap))
    # Where very many eigenvalues tie there may be no subspace to be found.
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
    """The largest modulus of an eigenvalue, with its gradient.

    The gradient is `(alpha Re S + beta Im S) / rho`, with the dominant eigenvalue
    `alpha + i beta`, its eigenvectors `T u = lambda u`, `v* T = lambda v*`, and
    `S = conj(v) u^T / (v* u)`. It can be differentiated once, in reverse mode.

    Where `rho` has no gradient there is a value in its stead:

    - Of two real eigenvalues of opposite sign and the same modulus the positive one
      counts.
    - Two real eigenvalues that are equal, to within rounding, count as a pair, with
      the mean of their moduli. Where they are defective the true gradient tends to
      infinity. What rounding is depends on the vectors: a relative gap of some eps
      where they are orthogonal, of `sqrt(eps)` where they nearly agree.
    - If more than two eigenvalues tie, one of them counts, and which one rounding
      decides: the gradient is one of the subgradients.
    - If so many tie that the block of `block_iteration` does not hold them, as in an
      orthogonal matrix of order 16 and more, or if the condition number of the
      dominant one is above `1 / (n eps)`, the gradient is `rho T / ||T||_F^2`, which
      changes nothing but the scale of `T`. In an orthogonal matrix that is the mean
      over the eigenvalues. `eigenpair_report` tells whether it is so.
    - Of a matrix so far from normal that its powers show no subspace, the value is
      `||T^N||_F^(1 / N)`, which is at least the radius, with that gradient.
    - A matrix of zeros has the radius 0 and the gradient 0.

    Args:
        matrix: Tensor of shape `(n, n)`, float32 or float64.

    Returns:
        A scalar of the same dtype.

    Raises:
        ValueError: If the matrix is not square, or of another dtype.

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

    With `G` the gradient with respect to the result `W` and `r = rho + epsilon`, the
    gradient is `(G - sum(G * W) (alpha Re S + beta Im S) / rho) / r`; for the letters
    and the cases without a gradient see `spectral_radius`. A matrix of which both
    `rho` and `epsilon` are zero stays as it is.

    Args:
        matrix: `T`, a tensor of shape `(n, n)`, float32 or float64.
        always: Boolean, or a boolean scalar tensor: whether to divide whatever
            `rho` is. Otherwise only if it exceeds 1. Default: `True`.
        epsilon: A number of at least 0. Default: 0.

    Returns:
        A pair of a tensor of shape `(n, n)` and a boolean scalar tensor, whether it
        was divided.

    Raises:
        ValueError: If the matrix is not square, or of another dtype, or `epsilon` is
            negative.

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
    """Says how the dominant eigenpair of a matrix was found, and what it is worth.

    Args:
        matrix: `T`, a tensor of shape `(n, n)`, float32 or float64, not symbolic.

    Returns:
        A dict of numbers. `radius`: the spectral radius. `gradient_found`: whether
        `spectral_radius` gives its gradient, and not `rho T / ||T||_F^2` in its stead.
        `residual`: the larger of `||T Q - Q H||_F` for the right subspace and the left
        one, over `||T||_F`. `condition`: the norm of the gradient, the condition
        number of the eigenvalue. `planar`: whether the subspace is a plane, of a
        complex pair or of two that nearly tie. `squarings`: how often the matrix was
        squared. `block_steps`: how many steps with a block of columns followed; -1
        if there was no need of a block.

    Raises:
        ValueError: If the matrix is not square, or of another dtype.

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
    """The dominant eigenvalue, one right and one left eigenvector of it.

    Args:
        matrix: Tensor of shape `(n, n)`, float32 or float64.

    Returns:
        A triple of tensors: the eigenvalue `lambda`, of shape `(2,)`, its real
        part and its imaginary part, which is not negative; `u` with
        `T u = lambda u`, of norm 1 and shape `(2, n)`, real and imaginary part; and
        `v` with `v* T = lambda v*`, the same. They are not to be differentiated.
        What they are worth where more than two eigenvalues tie: see
        `spectral_radius`. A matrix of zeros gives vectors of zeros.

    Raises:
        ValueError: If the matrix is not square, or of another dtype.

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
