"""Manifold distance, singular values and eigenvalues of recurrent matrices.

All are computed in NumPy in float64, from the current values of the variables.
"""

from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np

from keras_ortho.checks import check_finite
from keras_ortho.diagnostics.matrices import manifold_parts, recurrent_matrices
from keras_ortho.parametrizations.orthogonality import orthogonality_error


class SpectralMargin(NamedTuple):
    """Summary of the singular values of a matrix.

    Attributes:
        smallest: Smallest singular value.
        largest: Largest singular value.
        margin: `max |sigma - center|`, the spectral margin.
    """

    smallest: float
    largest: float
    margin: float


def manifold_distances(model: keras.layers.Layer) -> dict[str, float]:
    """Measures how far each recurrent matrix is from orthogonal or unitary.

    The distance is `||W* W - I||_F`, where `W` is computed as in the forward pass, in
    the layer's own precision. For `SVDRNN` and `FactorizedRNN`, it is measured for
    each of the two orthogonal factors, and for `ENRNN`, for the long-term block: the
    parts that the parametrization keeps on the manifold. For all other layers, it is
    measured for the whole matrix, whether it should be orthogonal or not.

    The cost is that of computing the matrices, and one product of `n x n` matrices for
    each.

    Args:
        model: A built model, or a built recurrent layer.

    Returns:
        Dictionary of the distances. Its keys are those of `recurrent_matrices`,
        followed by the name of the part if there is one, as in `"svdrnn/left"`.

    Raises:
        ValueError: As in `recurrent_matrices`.

    Example:

    >>> manifold_distances(model)
    {'sco_rnn': 3.1e-07}

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      figure 4
    """
    return {
        name: orthogonality_error(matrix)
        for name, matrix in manifold_parts(model).items()
    }


def singular_values(model: keras.layers.Layer) -> dict[str, np.ndarray]:
    """Computes the singular values of all recurrent matrices of a model.

    The cost is that of computing the matrices, and a singular value decomposition of
    each, `O(n^3)`.

    Args:
        model: A built model, or a built recurrent layer.

    Returns:
        Dictionary of arrays of shape `(n,)`, float64, in descending order, with the
        keys of `recurrent_matrices`. NaN for a matrix that is not finite.

    Raises:
        ValueError: As in `recurrent_matrices`.

    Example:

    >>> singular_values(model)
    {'sco_rnn': array([1., 1., 1., 1.])}
    """
    return {
        name: of_finite(matrix, lambda each: np.linalg.svd(each, compute_uv=False))
        for name, matrix in recurrent_matrices(model).items()
    }


def spectral_margins(
    model: keras.layers.Layer, center: float = 1.0
) -> dict[str, SpectralMargin]:
    """Measures how far the singular values of the recurrent matrices are from 1.

    The cost is that of `singular_values`.

    Args:
        model: A built model, or a built recurrent layer.
        center: Value with which to compare the singular values. Default: 1.

    Returns:
        Dictionary of `SpectralMargin` triples, which hold the smallest and the largest
        singular value and the margin `max |sigma - center|`, with the keys of
        `recurrent_matrices`.

    Raises:
        ValueError: As in `recurrent_matrices`, or if `center` is not finite.

    Example:

    >>> spectral_margins(model)
    {'sco_rnn': SpectralMargin(smallest=1.0, largest=1.0, margin=1.2e-07)}

    Reference:

    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html), figure 2
    """
    center = check_finite("center", center)
    return {
        name: SpectralMargin(
            float(values.min()),
            float(values.max()),
            float(np.abs(values - center).max()),
        )
        for name, values in singular_values(model).items()
    }


def kernel_eigenvalues(model: keras.layers.Layer) -> dict[str, np.ndarray]:
    """Computes the eigenvalues of all recurrent matrices of a model.

    The cost is that of computing the matrices, and an eigenvalue decomposition of
    each, `O(n^3)`.

    Args:
        model: A built model, or a built recurrent layer.

    Returns:
        Dictionary of arrays of shape `(n,)`, complex128, with the keys of
        `recurrent_matrices`. NaN for a matrix that is not finite.

    Raises:
        ValueError: As in `recurrent_matrices`.

    Example:

    >>> {name: np.abs(values) for name, values in kernel_eigenvalues(model).items()}
    {'sco_rnn': array([1., 1., 1., 1.])}
    """
    return {
        name: of_finite(matrix, np.linalg.eigvals).astype("complex128")
        for name, matrix in recurrent_matrices(model).items()
    }


def of_finite(
    matrices: np.ndarray, function: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Computes `n` values of each matrix, NaN for one that is not finite."""
    finite = np.isfinite(matrices).all(axis=(-2, -1))[..., None]
    values = function(np.where(finite[..., None], matrices, 0))
    return np.where(finite, values, np.nan)
