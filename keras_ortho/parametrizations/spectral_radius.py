"""The spectral radius of a real matrix, its gradient, and normalization by it.

The short-term kernel of Helfrich and Ye, "Eigenvalue normalized recurrent neural
networks for short term memory", AAAI 2020, is `T / (rho(T) + epsilon)`.

`dominant_subspace` returns orthonormal bases `Q` and `Z`, of one or two columns, of the
right and the left dominant invariant subspace. The dominant eigenvalues are those of
`H = Q^T T Q`, of order at most two, and `d H = (Z^T Q)^-1 Z^T dT Q` up to a change of
basis. The eigenvalues, the eigenvectors and the gradient follow in closed form, in real
arithmetic. In case of a line, `H` has a second row and column of zeros.
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
    frobenius_norms,
    machine_epsilon,
)
from keras_ortho.parametrizations.dominant import Subspace, dominant_subspace


def _determinant(small: Tensor) -> Tensor:
    return small[0, 0] * small[1, 1] - small[0, 1] * small[1, 0]


def _inverse(small: Tensor) -> Tensor:
    # The adjugate if the matrix is singular.
    identity = ops.eye(2, dtype=small.dtype)
    return divide(ops.trace(small) * identity - small, _determinant(small))


def _eigenvalues(small: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # The mean of both, their discriminant, and the difference of the real one of larger
    # modulus, in a tie the positive one, from the mean.
    mean = 0.5 * (small[0, 0] + small[1, 1])
    half = 0.5 * (small[0, 0] - small[1, 1])
    discriminant = half * half + small[0, 1] * small[1, 0]
    root = ops.sqrt(ops.maximum(discriminant, 0.0))
    return mean, discriminant, ops.where(mean < 0, -root, root)


def _radius_and_slope(small: Tensor) -> tuple[Tensor, Tensor]:
    # The spectral radius of `H`, and the derivative of its logarithm. A complex pair
    # has the modulus `sqrt(det H)`, whose logarithm has the derivative `H^-1 / 2`. A
    # real eigenvalue `a` beside `b` has the spectral projector `(H - b I) / (a - b)`.
    # Two real eigenvalues that differ only by rounding are treated as a pair.
    mean, discriminant, root = _eigenvalues(small)
    identity = ops.eye(2, dtype=small.dtype)
    value, apart = mean + root, small - mean * identity
    of_one = divide(divide(apart + root * identity, 2.0 * root), value)
    # The right-hand side bounds the change of the discriminant by rounding in H. The
    # discriminant is the square of half the gap: rounding hides a relative gap of some
    # eps in a symmetric matrix, and one of about sqrt(eps) in a nearly defective one.
    error = 4.0 * machine_epsilon(small) * frobenius_norm(small)
    is_pair = discriminant <= error * (error + frobenius_norm(apart))
    radius = ops.where(is_pair, ops.sqrt(ops.abs(_determinant(small))), ops.abs(value))
    return radius, ops.where(is_pair, 0.5 * _inverse(small), of_one)


class _Radius(NamedTuple):
    radius: Tensor
    # The gradient of the radius is `sensitivity Q^T`, and `condition` is its norm.
    sensitivity: Tensor
    condition: Tensor
    # Whether this gradient is used.
    found: Tensor
    subspace: Subspace


def _scaled(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # The matrix with the norm 1, and two factors. Neither they nor squares overflow.
    largest = ops.max(ops.abs(matrix))
    matrix = divide(matrix, largest)
    norm = frobenius_norm(matrix)
    return divide(matrix, norm), norm, largest


def _radius(matrix: Tensor) -> _Radius:
    size, eps = matrix.shape[0], machine_epsilon(matrix)
    subspace = dominant_subspace(matrix)
    right, left = subspace.bases[0], subspace.bases[1]
    image = ops.matmul(matrix, right)
    # (Z^T Q)^-1 Z^T T Q has the product of the errors of Q and Z as its error, but
    # rounding contributes eps / |Z^T Q|. If the subspaces are nearly orthogonal, as for
    # a defective eigenvalue, Q^T T Q is used instead: it is exact for a matrix that
    # differs from T by the residual.
    overlap = ops.matmul(ops.transpose(left), right)
    of_line = ops.convert_to_tensor([[0.0, 0.0], [0.0, 1.0]], dtype=matrix.dtype)
    overlap = ops.where(subspace.planar, overlap, overlap + of_line)
    two_sided = ops.matmul(_inverse(overlap), ops.matmul(ops.transpose(left), image))
    one_sided = ops.matmul(ops.transpose(right), image)
    defect = _determinant(overlap)
    regular = ops.abs(defect) > eps**0.5
    radius, slope = _radius_and_slope(ops.where(regular, two_sided, one_sided))
    # If more than two eigenvalues tie, there may be no subspace to find. The growth is
    # the radius, or somewhat more.
    found = (subspace.residual <= eps**0.5) & (radius >= 0.5 * subspace.growth)
    radius = ops.where(found, radius, subspace.growth)
    factor = ops.transpose(ops.matmul(slope, _inverse(overlap)))
    sensitivity = radius * ops.matmul(left, factor)
    # The norm of the gradient is the condition number of the eigenvalue.
    condition = frobenius_norm(sensitivity)
    found = found & (defect != 0) & (condition <= 1.0 / (size * eps))
    return _Radius(radius, sensitivity, condition, found, subspace)


def _forward(matrix: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    scaled, norm, largest = _scaled(matrix)
    radius, sensitivity, _, found, subspace = _radius(scaled)
    sensitivity = ops.where(found, sensitivity, ops.zeros_like(sensitivity))
    radial = ops.where(found, ops.zeros_like(radius), radius)
    return radius * norm * largest, (scaled, radial, sensitivity, subspace.bases[0])


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
    - If more than two eigenvalues tie, as in an orthogonal matrix, or if the condition
      number of the dominant eigenvalue exceeds `1 / (n eps)`, the gradient is
      `rho T / ||T||_F^2`, which only changes the scale of `T`. For an orthogonal
      matrix, this is the mean over the eigenvalues. `eigenpair_report` tells whether
      this gradient is used.
    - If a matrix is so far from normal that its powers reveal no subspace, the value is
      `||T^N||_F^(1 / N)` for some large `N`, which is at least the radius up to
      rounding, with the same gradient.
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
        - `products`: Number of products of the matrix with two columns that followed,
          0 if none were needed.

    Raises:
        ValueError: If the matrix is not square, or its dtype is not float32 or float64.

    Example:
    >>> eigenpair_report(np.array([[0.0, 4.0], [1.0, 0.0]]))["gradient_found"]
    True
    """
    matrix = ops.stop_gradient(_check_square(matrix))
    scaled, norm, largest = _scaled(matrix)
    radius, _, condition, found, subspace = _radius(scaled)
    return {
        "radius": float(radius * norm * largest),
        "gradient_found": bool(found),
        "residual": float(subspace.residual),
        "condition": float(condition),
        "planar": bool(subspace.planar),
        "squarings": int(subspace.squarings),
        "products": int(subspace.products),
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
    matrix, norm, largest = _scaled(ops.stop_gradient(_check_square(matrix)))
    bases = dominant_subspace(matrix).bases
    both = ops.stack([matrix, ops.transpose(matrix)])
    small = ops.matmul(ops.transpose(bases, (0, 2, 1)), ops.matmul(both, bases))
    mean, discriminant, root = _eigenvalues(small[0])
    imaginary = ops.sqrt(ops.maximum(-discriminant, 0.0))
    identity = ops.eye(2, dtype=matrix.dtype)
    # The columns of H - b I, with the other eigenvalue b, are eigenvectors, or zero;
    # both are if H = b I.
    real = small - (mean - root) * identity
    columns = ops.stack([real, ops.zeros_like(real) + imaginary * identity], axis=1)
    norms = ops.sum(columns * columns, axis=(1, 2))
    first = norms[:, :1, None] >= norms[:, 1:, None]
    vectors = ops.where(first, columns[..., 0], columns[..., 1])
    any_one = ops.stack([identity[0], ops.zeros_like(identity[0])])
    vectors = ops.where(ops.max(norms, axis=1)[:, None, None] == 0, any_one, vectors)
    vectors = divide(vectors, frobenius_norms(vectors))
    vectors = ops.matmul(vectors, ops.transpose(bases, (0, 2, 1)))
    # The left eigenvector is the conjugate of that of the transpose.
    conjugate = ops.convert_to_tensor([[1.0], [-1.0]], dtype=matrix.dtype)
    value = ops.stack([mean + root, imaginary]) * norm * largest
    return value, vectors[0], conjugate * vectors[1]
