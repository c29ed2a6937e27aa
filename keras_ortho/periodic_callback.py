"""The base of callbacks that act every so many updates of `fit`."""

import math
from typing import Any

import keras

from keras_ortho.checks import check_count
from keras_ortho.optimizers.within import optimizers_within


class PeriodicCallback(keras.callbacks.Callback):
    """Base of a callback that does something every so many updates.

    With `steps_per_execution` above 1 it does so at the first opportunity. Where
    gradients are accumulated, an update takes several batches; with optimizers that
    accumulate different numbers of them, the least common multiple of these. Updates
    that are left out as the loss was scaled too far count, too. Where `fit` begins with
    a later epoch, as in a run that goes on, those of the epochs before count as well.

    Args:
        every: Number of updates, a positive integer.

    Raises:
        ValueError: If it is not.
    """

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every: int = check_count("every", every)
        # Since it acted last; `None` before the first epoch.
        self._batches: int | None = None
        self._last_batch = -1

    def set_model(self, model: keras.Model) -> None:
        """Begins to count anew where the model is another one."""
        if model is not self._model:
            self._batches = None
        super().set_model(model)

    def act(self) -> None:
        """Does what the callback is for, with the weights after an update."""
        raise NotImplementedError

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Counts the batches of an epoch from its begin."""
        self._last_batch = -1
        if self._batches is None:
            together = self.model.steps_per_execution
            period = math.ceil(self._due() / together) * together
            self._batches = epoch * (self.params.get("steps") or 0) % period

    def _due(self) -> int:
        """The number of batches in as many updates."""
        optimizers = optimizers_within(self.model)
        accumulated = (x.gradient_accumulation_steps or 1 for x in optimizers)
        return self.every * math.lcm(*accumulated)

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Acts, where that is due."""
        # Keras counts a whole execution where fewer batches were left.
        steps = self.params.get("steps")
        batch = batch if steps is None else min(batch, steps - 1)
        self._batches = (self._batches or 0) + batch - self._last_batch
        self._last_batch = batch
        if self._batches < self._due():
            return
        self._batches = 0
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()  # Within `fit` the variables are elsewhere.
        self.act()
