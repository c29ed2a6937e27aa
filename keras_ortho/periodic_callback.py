"""The base class of callbacks that act at a fixed interval of updates."""

from typing import Any

import keras

from keras_ortho.checks import check_count
from keras_ortho.optimizers.within import optimizers_within


class PeriodicCallback(keras.callbacks.Callback):
    """Base class of callbacks that act every `every` updates of the weights.

    An update may take several batches (gradient accumulation). With
    `steps_per_execution` above 1, the callback acts after the execution.
    """

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every: int = check_count("every", every)
        self._periods = 0

    def act(self) -> None:
        """Performs the action of the callback, after an update of the weights."""
        raise NotImplementedError

    def _completed(self) -> int:
        """Returns the number of periods since the optimizer began."""
        updates = (int(each.iterations) for each in optimizers_within(self.model))
        return max(updates) // self.every

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Notes the updates of previous epochs, also of an earlier `fit`."""
        self._periods = self._completed()

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Acts if an action is due."""
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()  # Writes the state of `fit` to the variables.
        periods, self._periods = self._periods, self._completed()
        if self._periods > periods:
            self.act()
