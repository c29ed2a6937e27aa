"""Whether the optimizer of a unitary matrix keeps it unitary."""

import contextlib
import contextvars
import warnings
from collections.abc import Iterator
from typing import Any

import keras

_KEPT = contextvars.ContextVar("kept_unitary", default=False)


@contextlib.contextmanager
def keeping_unitary() -> Iterator[None]:
    """Says that the update within keeps unitary matrices unitary.

    An optimizer of your own that does so calls the `apply` of its base within.

    Yields:
        Nothing.

    Example:
    >>> class Geodesic(keras.optimizers.SGD):
    ...     def apply(self, *args, **kwargs):
    ...         with keeping_unitary():
    ...             super().apply(*args, **kwargs)
    """
    token = _KEPT.set(True)
    try:
        yield
    finally:
        _KEPT.reset(token)


@keras.saving.register_keras_serializable(package="keras_ortho")
class KeptUnitary(keras.constraints.Constraint):
    """Warns where an optimizer does not keep a unitary matrix unitary.

    Every optimizer of Keras calls the constraint of a variable after each update, or,
    where the update is compiled, once while that is traced. The matrix stays as it is.
    """

    def __call__(self, value: Any) -> Any:
        """Warns, unless the update is one that keeps the matrix unitary.

        Args:
            value: The matrix.

        Returns:
            The same.
        """
        if not _KEPT.get():
            warnings.warn(
                "The optimizer does not keep the recurrent matrix of `FullURNN`, "
                "`recurrent_unitary`, unitary. Compile the model with "
                "`keras_ortho.optimizers.paper_optimizer()`, which steps it by "
                "`keras_ortho.optimizers.StiefelDescent`, or take `ScuRNN`, whose "
                "variables any optimizer may step.",
                stacklevel=2,
            )
        return value
