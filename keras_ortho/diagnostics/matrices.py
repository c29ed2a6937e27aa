"""Recurrent matrices: distances from the manifold, singular values, eigenvalues.

All are computed in NumPy in float64, from the current values of the variables.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_ortho.cells import RecurrentCell
from keras_ortho.checks import check_finite
from keras_ortho.diagnostics.probe import recurrent_layers
from keras_ortho.parametrizations.arithmetic import complex_matrix
from keras_ortho.parametrizations.orthogonality import orthogonality_error

# The order in which Keras concatenates the matrices of the gates.
_GATES: dict[type, tuple[str, ...]] = {
    keras.layers.LSTMCell: ("input", "forget", "cell", "output"),
    keras.layers.GRUCell: ("update", "reset", "candidate"),
}


def recurrent_matrices(model: keras.layers.Layer) -> dict[str, np.ndarray]:
    """Returns the recurrent matrices of all recurrent layers of a model.

    For a layer of this package, that is `recurrent_matrix()`, complex if its units are.
    Other recurrent weights of its gated layers are not included. For any other layer,
    it is `recurrent_kernel`, split into one matrix per gate for LSTM and GRU.

    The cost is that of computing the matrices once.

    Args:
        model: A built model, or a built recurrent layer.

    Returns:
        Dictionary of arrays of shape `(n, n)`, float64 or complex128. Each key is the
        name of the layer, followed by that of the cell in `StackedRNNCells` and by that
        of the gate if there are several matrices, as in `"lstm/forget"`.

    Raises:
        ValueError: If the model is not built or has no recurrent layer; if a cell has
            neither `recurrent_matrix()` nor a `recurrent_kernel` of square matrices;
            if several recurrent layers have the same name.

    Example:

    >>> {name: matrix.shape for name, matrix in recurrent_matrices(model).items()}
    {'sco_rnn': (4, 4)}
    """
    return _of_cells(model, _matrices)


def manifold_parts(model: keras.layers.Layer) -> dict[str, np.ndarray]:
    """Returns the parts of the recurrent matrices kept orthogonal or unitary.

    They are the two orthogonal factors for `SVDRNN` and `FactorizedRNN`, the long-term
    block for `ENRNN`, and otherwise, as for frozen layers, the whole matrices.
    """
    return _of_cells(model, _manifold_parts)


def _of_cells(
    model: keras.layers.Layer, parts: Callable[[Any], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """Collects the results of `parts` for all cells, by full name."""
    found = {}
    for layer in recurrent_layers(model):
        stacked = isinstance(layer.cell, keras.layers.StackedRNNCells)
        for cell in layer.cell.cells if stacked else [layer.cell]:
            names = [layer.name, cell.name] if stacked else [layer.name]
            for part, matrix in parts(cell).items():
                name = "/".join([*names, part] if part else names)
                if name in found:  # Possible in nested models.
                    raise ValueError(
                        "`model` must not have recurrent layers with the same name. "
                        f"Received: model={model.name} with two named {name!r}"
                    )
                found[name] = matrix
    return found


def _manifold_parts(cell: Any) -> dict[str, np.ndarray]:
    parametrization = getattr(cell, "parametrization", None)
    if parametrization is None or getattr(cell, "frozen", False):
        return _matrices(cell)
    return {
        name: _of_units(cell, _array(part))
        for name, part in parametrization.parts(*cell.free_values()).items()
    }


def _matrices(cell: Any) -> dict[str, np.ndarray]:
    if isinstance(cell, RecurrentCell):
        return {"": _of_units(cell, _array(cell.recurrent_matrix()))}
    kernel = getattr(cell, "recurrent_kernel", None)
    shape = tuple(getattr(kernel, "shape", ()))
    if len(shape) != 2 or not shape[0] or shape[1] % shape[0]:
        raise ValueError(
            "The cell of every recurrent layer must have `recurrent_matrix()`, or a "
            "`recurrent_kernel` of one square matrix or several side by side. "
            f"Received: {cell.name} with recurrent_kernel.shape={shape}"
        )
    matrices = np.split(_array(kernel), shape[1] // shape[0], axis=1)
    names = next((n for kind, n in _GATES.items() if isinstance(cell, kind)), ())
    if len(names) != len(matrices):
        names = tuple(f"{i}" for i in range(len(matrices)))
    return dict(zip([""] if len(matrices) == 1 else names, matrices, strict=True))


def _of_units(cell: RecurrentCell, matrix: np.ndarray) -> np.ndarray:
    if not cell.complex_state:
        return matrix
    return complex_matrix("recurrent_matrix", matrix, cell.units)


def _array(values: Any) -> np.ndarray:
    return np.asarray(ops.convert_to_numpy(values)).astype("float64")


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
