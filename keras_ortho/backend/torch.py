"""PyTorch: custom gradients. The loops are those of `keras_ortho.backend.autodiff`.

See `keras_ortho.backend.tensorflow` for the arguments and results of each function.
"""

from collections.abc import Callable
from typing import Any

import keras
import torch
from keras import tree
from torch.autograd.function import once_differentiable

from keras_ortho.backend.types import Backward, Forward, Tensor

_TENSOR = object()


def with_gradient(
    forward: Forward, backward: Backward, *, once: bool = False
) -> Callable[..., Tensor]:
    """Makes a function with the value of `forward` and the gradient of `backward`."""

    def save(context: Any, *inputs: Tensor) -> Tensor:
        output, saved = forward(*inputs)
        # PyTorch stores the tensors: an output stored here would keep itself alive.
        leaves = tree.flatten(saved)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        context.save_for_backward(*tensors)
        context.rest = tree.map_structure(
            lambda leaf: _TENSOR if isinstance(leaf, torch.Tensor) else leaf, saved
        )
        return output

    def gradient(context: Any, upstream: Tensor) -> tuple[Tensor, ...]:
        tensors = iter(context.saved_tensors)
        saved = tree.map_structure(
            lambda leaf: next(tensors) if leaf is _TENSOR else leaf, context.rest
        )
        return tuple(backward(saved, upstream))

    members = {
        "forward": staticmethod(save),
        "backward": staticmethod(once_differentiable(gradient) if once else gradient),
    }
    function: Any = type(forward.__name__, (torch.autograd.Function,), members)
    return lambda *inputs: function.apply(*map(keras.ops.convert_to_tensor, inputs))
