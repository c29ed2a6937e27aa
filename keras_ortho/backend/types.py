"""The types that the backends share."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

# A tensor of the active backend. They have no common base class.
Tensor: TypeAlias = Any

# inputs -> output, and what the gradient needs: tensors in tuples, or nothing else
# that JAX would not trace.
Forward: TypeAlias = Callable[..., tuple[Tensor, Any]]

# (what was saved, dL/doutput) -> dL/dinput for every input
Backward: TypeAlias = Callable[[Any, Tensor], Sequence[Tensor]]

# (carry, index, entries of the sequences) -> next carry, what to collect
Step: TypeAlias = Callable[
    [tuple[Tensor, ...], Tensor, tuple[Tensor, ...]],
    tuple[tuple[Tensor, ...], tuple[Tensor, ...]],
]
