"""The base class of callbacks that act at a fixed interval of updates."""

import math
from typing import Any

import keras

from keras_ortho.checks import check_count
from keras_ortho.optimizers.within import optimizers_within


class PeriodicCallback(keras.callbacks.Callback):
    """Base class of callbacks that act every `every` updates.

    With `steps_per_execution` above 1, the callback acts at the first opportunity. An
    update may take several batches (gradient accumulation). If `fit` starts with a
    later epoch, the updates of the previous epochs also count.
    """

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every: int = check_count("every", every)
        # Batches since the last action; `None` before the first epoch.
        self._batches: int | None = None
        self._last_batch = -1

    def set_model(self, model: keras.Model) -> None:
        """Restarts the count if the model changes."""
        if model is not self._model:
            self._batches = None
        super().set_model(model)

    def act(self) -> None:
        """Performs the action of the callback, after an update of the weights."""
        raise NotImplementedError

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Starts counting the batches of an epoch."""
        self._last_batch = -1
        if self._batches is None:
            together = self.model.steps_per_execution
            period = math.ceil(self._due() / together) * together
            self._batches = epoch * (self.params.get("steps") or 0) % period

    def _due(self) -> int:
        """Returns the number of batches in `every` updates."""
        optimizers = optimizers_within(self.model)
        accumulated = (x.gradient_accumulation_steps or 1 for x in optimizers)
        return self.every * math.lcm(*accumulated)

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Counts the batches, and acts if an action is due."""
        # Keras counts a full execution even if fewer batches were left.
        steps = self.params.get("steps")
        batch = batch if steps is None else min(batch, steps - 1)
        self._batches = (self._batches or 0) + batch - self._last_batch
        self._last_batch = batch
        if self._batches < self._due():
            return
        self._batches = 0
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()  # Writes the state of `fit` to the variables.
        self.act()
