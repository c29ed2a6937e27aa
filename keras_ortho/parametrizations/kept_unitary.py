"""Warning for optimizers that do not keep a unitary matrix unitary."""

import contextlib
import contextvars
import warnings
from collections.abc import Iterator
from typing import Any

import keras

_KEPT = contextvars.ContextVar("kept_unitary", default=False)


@contextlib.contextmanager
def keeping_unitary() -> Iterator[None]:
    """Marks the updates in its context as ones that keep unitary matrices unitary.

    A custom optimizer that does so calls the `apply` of its base class in this context.
    """
    token = _KEPT.set(True)
    try:
        yield
    finally:
        _KEPT.reset(token)


@keras.saving.register_keras_serializable(package="keras_ortho")
class KeptUnitary(keras.constraints.Constraint):
    """Constraint that warns if the optimizer does not keep a unitary matrix unitary.

    Keras's optimizers call the constraint of a variable after each update or, if the
    update is compiled, once during tracing. The matrix is not changed.
    """

    def __call__(self, value: Any) -> Any:
        """Warns, unless the update keeps the matrix unitary: see `keeping_unitary`."""
        if not _KEPT.get():
            warnings.warn(
                "The optimizer does not keep the recurrent matrix of `FullURNN`, "
                "`recurrent_unitary`, unitary. Compile the model with "
                "`keras_ortho.optimizers.paper_optimizer()`, which uses "
                "`keras_ortho.optimizers.StiefelDescent` for it, or use `ScuRNN`, "
                "which any optimizer can train.",
                stacklevel=2,
            )
        return value
