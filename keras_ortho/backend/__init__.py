"""Functions with one implementation per backend, and the choice between these.

What a backend leaves out, it does not need. All other computations are written with
`keras.ops` and `keras_ortho.backend.elementary`.
"""

import importlib
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor


def _unchanged(value: Any, *_: Any) -> Any:
    return value


def _sum_over_steps(product: Callable[..., Tensor], *sequences: Tensor) -> Tensor:
    """Sums a product over all steps, as the rows of one large product."""
    return product(*(ops.reshape(x, (-1, x.shape[-1])) for x in sequences))


_own: Any = importlib.import_module(f"keras_ortho.backend.{keras.backend.backend()}")

eagerly = _own.eagerly
gradients = _own.gradients
scan = _own.scan
with_gradient = _own.with_gradient

batch_pieces = getattr(_own, "batch_pieces", lambda batch, entries, training: 1)
compiled = getattr(_own, "compiled", _unchanged)
in_graph = getattr(_own, "in_graph", _unchanged)
shared_out = getattr(_own, "shared_out", _unchanged)
stack = getattr(_own, "stack", _unchanged)
sum_over_steps = getattr(_own, "sum_over_steps", _sum_over_steps)
uncompiled = getattr(_own, "uncompiled", _unchanged)
