"""The types that the backends share."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

# A tensor of the active backend. The backends' tensors have no common base class.
Tensor: TypeAlias = Any

# inputs -> (output, values saved for the gradient). The saved values are nested tuples
# of tensors, or other values that JAX can trace.
Forward: TypeAlias = Callable[..., tuple[Tensor, Any]]

# (saved values, dL/doutput) -> dL/dinput for every input
Backward: TypeAlias = Callable[[Any, Tensor], Sequence[Tensor]]

# (carry, index, entries of the sequences) -> (next carry, values to collect)
Step: TypeAlias = Callable[
    [tuple[Tensor, ...], Tensor, tuple[Tensor, ...]],
    tuple[tuple[Tensor, ...], tuple[Tensor, ...]],
]
