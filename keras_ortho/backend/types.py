"""The types that the backends share."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

# A tensor of the active backend. They have no common base class.
Tensor: TypeAlias = Any

# inputs -> output
Forward: TypeAlias = Callable[..., Tensor]

# (inputs, output, dL/doutput) -> dL/dinput for every input
Backward: TypeAlias = Callable[[Sequence[Tensor], Tensor, Tensor], Sequence[Tensor]]
