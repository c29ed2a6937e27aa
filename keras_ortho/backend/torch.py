"""PyTorch: gradients by hand. Its loops are those of `keras_ortho.backend.autodiff`.

What each function takes and returns is said in `keras_ortho.backend.tensorflow`.
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
    """Gives `forward` the gradient that `backward` computes."""

    def save(context: Any, *inputs: Tensor) -> Tensor:
        output, saved = forward(*inputs)
        # Kept by PyTorch: the output, kept here, would keep itself.
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
