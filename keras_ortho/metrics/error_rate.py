"""Keras metric of the error rate, which like a loss is to be minimized."""

import keras

from keras_ortho.backend.types import Tensor


@keras.saving.register_keras_serializable("keras_ortho", "metrics.ErrorRate")
class ErrorRate(keras.metrics.SparseCategoricalAccuracy):
    """Fraction of the examples whose class is not that of the largest output.

    It is finite even if the outputs of a network are not, so it can rank the epochs and
    the settings of a run where a loss cannot.

    Args:
        name: Name of the metric. Default: `"error_rate"`.
        dtype: The dtype to compute in. Default: Keras's `floatx`.

    Example:
    >>> metric = ErrorRate()
    >>> metric.update_state([0, 0, 1, 1], np.array([[2.0, 1.0]] * 4))
    >>> float(metric.result())
    0.5
    """

    def __init__(self, name: str = "error_rate", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self._direction = "down"

    def result(self) -> Tensor:
        """Returns the error rate so far.

        Returns:
            A scalar tensor; 1 before the first batch.
        """
        return 1.0 - super().result()
