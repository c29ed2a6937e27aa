"""PyTorch, which computes eagerly: custom gradients, and loops over time.

See `keras_ortho.backend.tensorflow` for the arguments and results of each function.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import keras
import torch
from keras import ops, tree
from torch.autograd.function import once_differentiable

from keras_ortho.backend.types import Backward, Forward, Step, Tensor

_TENSOR = object()

eagerly = contextlib.nullcontext
# PyTorch's compiler gives up on a loop over time with a custom gradient.
uncompiled = torch.compiler.disable


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


def gradients(
    function: Callable[..., Tensor], inputs: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Computes the gradient of a function with respect to each of its inputs."""
    inputs = [x.detach().requires_grad_() for x in inputs]
    return torch.autograd.grad(
        function(*inputs), inputs, allow_unused=True, materialize_grads=True
    )


def scan(
    step: Step,
    carry: tuple[Tensor, ...],
    sequences: tuple[Tensor, ...] = (),
    *,
    length: int,
    reverse: bool = False,
    **_: Any,
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Loops over steps with `keras.ops.scan`."""
    return ops.scan(
        lambda carry, entries: step(carry, *entries),
        carry,
        (ops.arange(length, dtype="int32"), sequences),
        length=length,
        reverse=reverse,
    )
