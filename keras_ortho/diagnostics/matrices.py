"""The recurrent matrices of a model with layers of this package or of Keras."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho.cells import RecurrentCell
from keras_ortho.diagnostics.finding import recurrent_layers
from keras_ortho.parametrizations.complex_rows import complex_matrix

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
