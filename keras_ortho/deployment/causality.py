"""The layers and operations that are known to act on each frame separately."""

import re
from typing import Any

from keras import layers, tree

from keras_ortho.layers.dense import ParametrizedDense

# If their `axis`, where they have one, is not that of the time. Dropout and noise do
# nothing in a call for inference.
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


def overrides_call(layer: Any) -> bool:
    """Returns whether neither Keras nor this package defines `call` of a layer."""
    module = type(layer).call.__module__
    return module.partition(".")[0] not in ("keras", "keras_ortho")


def acts_on_each_frame(operation: Any, args: tuple[Any, ...], rank: int) -> bool:
    """Returns whether an operation is known to act on each frame separately."""
    if isinstance(operation, layers.Layer):
        # The mask of an embedding leaves frames out.
        masks = getattr(operation, "mask_zero", False)
        known = isinstance(operation, _LAYERS) and not masks
        known = known and not overrides_call(operation)
    else:
        known = _OPERATIONS.fullmatch(type(operation).__name__) is not None
    if type(operation).__name__ == "GetItem":
        first = args[1] if isinstance(args[1], tuple) else args[1:]
        known = first[:2] == (slice(None), slice(None))
        if first[0] is Ellipsis:  # What comes after it is of the last axes.
            known = rank - sum(each is not None for each in first[1:]) >= 2
    axis = getattr(operation, "axis", ())
    rank += type(operation).__name__ == "OneHot"
    axes = range(rank) if axis is None else [each % rank for each in tree.flatten(axis)]
    return known and 1 not in axes
