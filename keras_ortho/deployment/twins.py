"""Twins: the layers that replace layers with frozen kernels, and their weights."""

import functools
from typing import Any

import keras

from keras_ortho.backend.types import Tensor
from keras_ortho.cells.cell import RecurrentCell, is_modrelu
from keras_ortho.cells.layer import RecurrentLayer
from keras_ortho.deployment.overrides import method_of_ones_own
from keras_ortho.layers.bnp_dense import BNPDense
from keras_ortho.layers.parametrized_dense import ParametrizedDense

_OF_EVERY_LAYER = (
    "name",
    "dtype",
    "trainable",
    "activation",
    "use_bias",
    "bias_regularizer",
    "bias_constraint",
)
# Without the regularizer of the free variables, which does not apply to a matrix.
_OF_RECURRENT_CELLS = (
    *_OF_EVERY_LAYER,
    "kernel_regularizer",
    "kernel_constraint",
    "dropout",
    "recurrent_dropout",
)
_OF_RECURRENT_LAYERS = (
    *_OF_RECURRENT_CELLS,
    "return_sequences",
    "return_state",
    "go_backwards",
    "stateful",
    "unroll",
    "zero_output_for_mask",
)
# Keras's orthogonal initializer does not support half precision, and the weights are
# assigned later anyway.
_UNDRAWN = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}
_OF_DENSE_LAYERS = (*_OF_EVERY_LAYER, "activity_regularizer")

# The classes of layers that have a twin.
FREEZABLE = (RecurrentCell, RecurrentLayer, ParametrizedDense)


@functools.singledispatch
def twin(layer: keras.layers.Layer) -> keras.layers.Layer:
    """Creates an unbuilt layer that computes the same from a plain kernel.

    It is Keras's `SimpleRNN`, `SimpleRNNCell` or `Dense` where these do, and otherwise
    a frozen layer of the same class.
    """
    raise NotImplementedError(type(layer).__name__)


@twin.register
def _(layer: RecurrentLayer) -> keras.layers.Layer:
    _check_has_map(layer.cell)
    config = layer.get_config()
    # Keras's `SimpleRNN` ignores its `activity_regularizer`.
    regularized = layer.activity_regularizer is not None
    if regularized or not (_is_ours(layer) and _is_simple(layer.cell)):
        return type(layer).from_config({**config, "frozen": True})
    same = {name: config[name] for name in _OF_RECURRENT_LAYERS} | _UNDRAWN
    return keras.layers.SimpleRNN.from_config({**same, "units": layer.cell.state_size})


@twin.register
def _(cell: RecurrentCell) -> keras.layers.Layer:
    _check_has_map(cell)
    config = cell.get_config()
    if not _is_simple(cell):
        return type(cell).from_config({**config, "frozen": True})
    same = {name: config[name] for name in _OF_RECURRENT_CELLS} | _UNDRAWN
    return keras.layers.SimpleRNNCell.from_config({**same, "units": cell.state_size})


@twin.register
def _(layer: ParametrizedDense) -> keras.layers.Layer:
    if method_of_ones_own(layer, "call"):
        raise ValueError(
            f"`{type(layer).__name__}` overrides `call`, so that it is unknown what it "
            f"computes, and cannot be frozen. Received: {layer.name}"
        )
    names = [*_OF_DENSE_LAYERS]
    if isinstance(layer, BNPDense):
        names += ["kernel_regularizer", "kernel_constraint"]
    config = layer.get_config()
    same = {name: config[name] for name in names if name in config}
    return keras.layers.Dense.from_config({**same, "units": layer.units})


def twin_weights(layer: Any) -> dict[str, Tensor]:
    """Returns the weights of the twin of a built cell or dense layer, by name."""
    made = {}
    if isinstance(layer, RecurrentCell):
        made = {"recurrent_kernel": layer.step_kernel()}
    elif isinstance(layer, ParametrizedDense):
        made = {"kernel": layer.kernel_matrix()}
    return {**{weight.name: weight for weight in layer.weights}, **made}


def _is_ours(layer: keras.layers.Layer) -> bool:
    name = keras.saving.get_registered_name(type(layer))
    return name.startswith("keras_ortho>")


def _is_simple(cell: RecurrentCell) -> bool:
    """Returns whether the step is that of Keras's `SimpleRNNCell`."""
    return (
        _is_ours(cell)
        and cell.is_plain
        and cell.step_heads == 1
        and cell.output_size == cell.state_size
        and not cell.trainable_initial_state
        and not is_modrelu(cell.activation)
    )


def _check_has_map(cell: RecurrentCell) -> None:
    if cell.parametrization is None:
        raise ValueError(
            f"`{type(cell).__name__}` has no `parametrization`, so that it is unknown "
            "which variables make the recurrent matrix, and cannot be frozen. "
            f"Received: {cell.name}"
        )
