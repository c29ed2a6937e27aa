"""Recurrent matrices: distances from the manifold, singular values, eigenvalues."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_ortho.cells import RecurrentCell
from keras_ortho.checks import check
from keras_ortho.diagnostics.probe import recurrent_layers
from keras_ortho.keras_internals import layers_within
from keras_ortho.layers.parametrized_layer import GATES, ParametrizedLayer, made_within
from keras_ortho.parametrizations.arithmetic import complex_matrix, orthogonality_error


def recurrent_matrices(model: keras.layers.Layer) -> dict[str, np.ndarray]:
    """Returns all recurrent matrices of a model, complex of complex units, by name.

    Of a layer of this package, it is `recurrent_matrix()`, and no kernel of a gate; of
    another, there is a matrix for each gate, as `"lstm/forget"`.
    """
    made = made_within(model)
    return _of_cells(model, lambda cell: _matrices(cell, made))


def manifold_parts(model: keras.layers.Layer) -> dict[str, np.ndarray]:
    """Returns what is kept orthogonal or unitary, also of layers of `parametrize`."""
    made = made_within(model)

    def parts(cell: Any) -> dict[str, Any]:
        parametrization = getattr(cell, "parametrization", None)
        if parametrization is None or cell.frozen:
            return _matrices(cell, made)
        return parametrization.parts(*cell.free_values())

    others = {
        f"{layer.name}/{name}": ops.convert_to_numpy(square)
        for layer in layers_within(model)
        if isinstance(layer, ParametrizedLayer)
        for name, square in layer.squares().items()
        if "recurrent_kernel" not in name
    }
    return _of_cells(model, parts) | others


def _of_cells(
    model: keras.layers.Layer, parts: Callable[[Any], dict[str, Any]]
) -> dict[str, np.ndarray]:
    """Collects the results of `parts` for all cells, by full name."""
    found: dict[str, np.ndarray] = {}
    for layer in recurrent_layers(model):
        cells = {"": layer.cell}
        if isinstance(layer.cell, keras.layers.StackedRNNCells):
            cells = {cell.name: cell for cell in layer.cell.cells}
        for of_cell, cell in cells.items():
            for part, values in parts(cell).items():
                name = "/".join(filter(None, (layer.name, of_cell, part)))
                wanted = "not have recurrent layers with the same name"
                check(name not in found, "model", wanted, f"two named {name!r}")
                matrix = np.asarray(ops.convert_to_numpy(values)).astype("float64")
                if getattr(cell, "complex_state", False):
                    matrix = complex_matrix("recurrent_matrix", matrix, cell.units)
                found[name] = matrix
    return found


def _matrices(cell: Any, made: dict[int, Any]) -> dict[str, Any]:
    if isinstance(cell, RecurrentCell):
        return {"": cell.recurrent_matrix()}
    kernel = cell.recurrent_kernel
    kernel = ops.convert_to_numpy(made.get(id(kernel), kernel))
    matrices = np.split(kernel, kernel.shape[1] // len(kernel), axis=1)
    if len(matrices) == 1:
        return {"": kernel}
    gates = next((names for of, names in GATES.items() if isinstance(cell, of)), None)
    return dict(zip(gates or map(str, range(len(matrices))), matrices, strict=True))


class SpectralMargin(NamedTuple):
    """Smallest and largest singular value, and the margin `max |sigma - center|`."""

    smallest: float
    largest: float
    margin: float


def manifold_distances(model: keras.layers.Layer) -> dict[str, float]:
    """Measures how far each recurrent matrix is from orthogonal or unitary.

    It is `||W* W - I||_F`, for `SVDRNN` and `FactorizedRNN` of both orthogonal factors,
    for `ENRNN` of the long-term block. As in figure 4 of
    [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html).

    Args:
        model: As for `recurrent_matrices`.

    Returns:
        Dictionary with the keys of `recurrent_matrices`, or those of parts, as
        `"svdrnn/left"`.

    Example:
    >>> manifold_distances(model)
    {'sco_rnn': 3.1e-07}
    """
    parts = manifold_parts(model)
    return {name: orthogonality_error(matrix) for name, matrix in parts.items()}


def singular_values(model: keras.layers.Layer) -> dict[str, np.ndarray]:
    """Computes the singular values of all recurrent matrices of a model.

    Args:
        model: As for `recurrent_matrices`.

    Returns:
        Dictionary of arrays of shape `(n,)`, float64, in descending order, with the
        keys of `recurrent_matrices`. NaN for a matrix that is not finite.

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

    As in [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html), fig. 2.

    Args:
        model: A built model, or a built recurrent layer.
        center: Value with which to compare the singular values. Default: 1.

    Returns:
        Dictionary of `SpectralMargin`s, with the keys of `recurrent_matrices`.

    Example:
    >>> spectral_margins(model)
    {'sco_rnn': SpectralMargin(smallest=1.0, largest=1.0, margin=1.2e-07)}
    """
    found = {}
    for name, values in singular_values(model).items():
        measured = values.min(), values.max(), np.abs(values - center).max()
        found[name] = SpectralMargin(*map(float, measured))
    return found


def kernel_eigenvalues(model: keras.layers.Layer) -> dict[str, np.ndarray]:
    """Computes the eigenvalues of all recurrent matrices of a model.

    Args:
        model: A built model, or a built recurrent layer.

    Returns:
        Dictionary of arrays of shape `(n,)`, complex128, with the keys of
        `recurrent_matrices`. NaN for a matrix that is not finite.

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
