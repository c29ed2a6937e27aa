"""Distance from the manifold, singular values, eigenvalues: of recurrent matrices.

All of it in NumPy and float64, from the values that the variables have at the time.
"""

from typing import NamedTuple

import keras
import numpy as np

from keras_ortho.checks import check_finite
from keras_ortho.diagnostics import spectra
from keras_ortho.diagnostics.matrices import manifold_parts, recurrent_matrices
from keras_ortho.parametrizations.orthogonality import orthogonality_error


class SpectralMargin(NamedTuple):
    """The singular values of a matrix, in short.

    Attributes:
        smallest: The smallest of them.
        largest: The largest of them.
        margin: `max |sigma - center|`, the spectral margin.
    """

    smallest: float
    largest: float
    margin: float


def manifold_distances(model: keras.layers.Layer) -> dict[str, float]:
    """Measures how far each recurrent matrix is from the orthogonal or unitary ones.

    That is `||W* W - I||_F` of the matrix that the forward pass makes, in its own
    precision. Of `SVDRNN` and `FactorizedRNN` it is that of their two orthogonal
    factors, of `ENRNN` that of its long-term block: the parts that a map holds on the
    manifold. Of all others it is that of the whole matrix, be it meant to be
    orthogonal or not.

    It costs making the matrices, and one product of matrices of order `n` for each.

    Args:
        model: A built model, or a built recurrent layer.

    Returns:
        The distances, by the names of `recurrent_matrices`, with those of parts after
        them, as in `"svdrnn/left"`.

    Raises:
        ValueError: As `recurrent_matrices`.

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

    It costs making the matrices, and a singular value decomposition of each, `O(n^3)`.

    Args:
        model: A built model, or a built recurrent layer.

    Returns:
        Arrays of shape `(n,)`, float64, the largest value first, by the names of
        `recurrent_matrices`; NaN of a matrix that is not finite.

    Raises:
        ValueError: As `recurrent_matrices`.

    Example:

    >>> singular_values(model)
    {'sco_rnn': array([1., 1., 1., 1.])}
    """
    return {
        name: spectra.singular_values(matrix)
        for name, matrix in recurrent_matrices(model).items()
    }


def spectral_margins(
    model: keras.layers.Layer, center: float = 1.0
) -> dict[str, SpectralMargin]:
    """Measures how far the singular values of the recurrent matrices are from 1.

    It costs what `singular_values` costs.

    Args:
        model: A built model, or a built recurrent layer.
        center: What they are compared with. Default: 1.

    Returns:
        Triples of the smallest and the largest singular value and the margin
        `max |sigma - center|`, by the names of `recurrent_matrices`.

    Raises:
        ValueError: As `recurrent_matrices`; if `center` is not finite.

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

    It costs making the matrices, and an eigenvalue decomposition of each, `O(n^3)`.

    Args:
        model: A built model, or a built recurrent layer.

    Returns:
        Arrays of shape `(n,)`, complex128, by the names of `recurrent_matrices`; NaN
        of a matrix that is not finite.

    Raises:
        ValueError: As `recurrent_matrices`.

    Example:

    >>> {name: np.abs(values) for name, values in kernel_eigenvalues(model).items()}
    {'sco_rnn': array([1., 1., 1., 1.])}
    """
    return {
        name: spectra.eigenvalues(matrix)
        for name, matrix in recurrent_matrices(model).items()
    }
