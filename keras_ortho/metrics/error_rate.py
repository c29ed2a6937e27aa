"""Keras metric of the share of wrong answers, which is to be small as a loss is."""

import keras

from keras_ortho.backend.types import Tensor


@keras.saving.register_keras_serializable("keras_ortho", "metrics.ErrorRate")
class ErrorRate(keras.metrics.SparseCategoricalAccuracy):
    """Share of the examples whose class is not the one of the largest output.

    It is finite for a network whose outputs are not, and so tells the epochs and the
    settings of a run apart where a loss cannot.

    Args:
        name: Default: `"error_rate"`.
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
        """Gives the share so far.

        Returns:
            A scalar tensor; 1 before the first batch.
        """
        return 1.0 - super().result()
