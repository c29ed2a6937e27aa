"""Which layers can process one frame at a time, and why others cannot."""

import re
from typing import Any

import keras
from keras import layers, tree

from keras_ortho.layers import CarriedState, TrainedInitialState
from keras_ortho.layers.parametrized_dense import ParametrizedDense

_KNOWN = ("keras", "keras_ortho")


def method_of_ones_own(layer: Any, *names: str) -> str | None:
    """Returns the first of the methods that neither Keras nor this package defines."""
    for name in names:
        owner = next((cls for cls in type(layer).__mro__ if name in vars(cls)), None)
        if owner and owner.__module__.partition(".")[0] not in _KNOWN:
            return name
    return None


# Layers that act on each frame separately, if their `axis`, where they have one, is
# not that of the time. Dropout and noise do nothing in a call for inference.
_LAYERS = (
    *(ParametrizedDense, layers.Dense, layers.EinsumDense, layers.Embedding),
    *(layers.TimeDistributed, layers.Rescaling, layers.Identity, layers.InputLayer),
    *(layers.Activation, layers.ReLU, layers.LeakyReLU, layers.ELU, layers.Softmax),
    *(layers.Normalization, layers.BatchNormalization, layers.LayerNormalization),
    *(layers.UnitNormalization, layers.RMSNormalization, layers.Discretization),
    *(layers.Add, layers.Subtract, layers.Multiply, layers.Average, layers.Maximum),
    *(layers.Minimum, layers.Concatenate, layers.ActivityRegularization),
    *(layers.Dropout, layers.SpatialDropout1D, layers.AlphaDropout),
    *(layers.GaussianNoise, layers.GaussianDropout),
)
# The same for operations of `keras.ops` on symbolic tensors, by the name of the class.
_OPERATIONS = re.compile(
    "Absolute|Add|Arctan2?|Cast|Celu|Clip|Concatenate|Cosh?|Divide|Elu|Exp|Expm1|Gelu|"
    "GetItem|HardSigmoid|HardSilu|HardTanh|LeakyRelu|Log|Log10|Log1p|Log2|LogSigmoid|"
    "LogSoftmax|Logaddexp|Matmul|Max|Maximum|Mean|Min|Minimum|Mod|Multiply|Negative|"
    "OneHot|Power|Reciprocal|Relu6?|Round|Selu|Sigmoid|Sign|Silu|Sinh?|Softmax|"
    "Softplus|Softsign|Sqrt|Square|Subtract|Sum|Tanh?|TrueDivide|All|Any|Equal|"
    "Greater|GreaterEqual|Less|LessEqual|LogicalAnd|LogicalNot|LogicalOr|NotEqual|Where"
)


def no_step(operation: Any, reason: str) -> ValueError:
    """Creates the error for a layer that has no single step, and says why."""
    return ValueError(
        f"`model` has no single step: `{operation.name}` {reason}. "
        f"Received: {operation.name}, of type {type(operation).__name__}"
    )


def recurrent_layer(operation: Any) -> keras.layers.RNN | None:
    """Returns the recurrent layer that an operation is or wraps, or `None`."""
    if isinstance(operation, CarriedState | TrainedInitialState):
        operation = operation.layer
    return operation if isinstance(operation, keras.layers.RNN) else None


def check_call(operation: Any, kwargs: dict[str, Any]) -> None:
    """Rejects cells, bidirectional layers, masks and calls with `training=True`."""
    if hasattr(operation, "state_size") and recurrent_layer(operation) is None:
        raise no_step(operation, "is a cell, not a layer that reads sequences")
    if isinstance(operation, keras.layers.Bidirectional):
        raise no_step(operation, "also reads the sequence from its end")
    masks = isinstance(operation, keras.layers.Masking)
    masks = masks or getattr(operation, "mask_zero", False)
    if masks or kwargs.get("mask") is not None:
        raise no_step(operation, "has a mask, which leaves frames out")
    if kwargs.get("training"):
        raise no_step(operation, "is called with `training=True`")


def check_graph(model: Any) -> None:
    """Rejects a model that overrides `call`, as its graph may be incomplete."""
    if method_of_ones_own(model, "call"):
        raise no_step(model, "overrides `call`")


def check_recurrent(
    operation: Any,
    layer: keras.layers.RNN,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    last: list[Any],
) -> None:
    """Rejects a layer that has no single step; `last` are arguments without time."""
    if layer.go_backwards:
        raise no_step(layer, "reads the sequence from its end")
    # The state may be a tensor or an array. Keras also accepts a list of the sequence
    # and the state. The third positional argument is the mask.
    named = kwargs.get("sequences"), kwargs.get("initial_state")
    given = tree.flatten([args[:3], named])
    if sum(each is not None for each in given) > 1:
        raise no_step(layer, "is given an initial state")
    if last:
        raise no_step(layer, "follows a layer with `return_sequences=False`")
    for each in (operation, layer):
        own = method_of_ones_own(each, "call", "inner_loop")
        if own:
            raise no_step(each, f"overrides `{own}`")


def check_each_frame(operation: Any, args: tuple[Any, ...], tensors: list[Any]) -> None:
    """Rejects what is not known to act on each frame separately."""
    if isinstance(operation, keras.layers.Layer):
        known = isinstance(operation, _LAYERS)
        known = known and not method_of_ones_own(operation, "call")
    else:
        known = _OPERATIONS.fullmatch(type(operation).__name__) is not None
    if type(operation).__name__ == "GetItem":
        first = args[1] if isinstance(args[1], tuple) else args[1:]
        known = first[0] is Ellipsis or first[:2] == (slice(None), slice(None))
    rank = len(tensors[0].shape)
    axis = getattr(operation, "axis", ())
    axes = range(rank) if axis is None else [each % rank for each in tree.flatten(axis)]
    if not known or 1 in axes:
        raise no_step(
            operation,
            "is not known to process each frame independently; if it does, wrap it in "
            "`keras.layers.TimeDistributed`",
        )
