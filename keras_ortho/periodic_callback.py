"""The base of callbacks that act every so many updates of `fit`."""

from typing import Any

import keras

from keras_ortho.checks import check_count


class PeriodicCallback(keras.callbacks.Callback):
    """Base of a callback that does something every so many updates.

    With `steps_per_execution` above 1 it does so at the first opportunity.

    Args:
        every: Number of updates, a positive integer.

    Raises:
        ValueError: If it is not.
    """

    def __init__(self, every: int) -> None:
        super().__init__()
        self.every: int = check_count("every", every)
        self._batches = 0
        self._last_batch = -1

    def act(self) -> None:
        """Does what the callback is for, with the weights after an update."""
        raise NotImplementedError

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Counts the batches of an epoch from its begin."""
        self._last_batch = -1

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Acts, where that is due."""
        self._batches += batch - self._last_batch
        self._last_batch = batch
        batches_per_update = self.optimizer.gradient_accumulation_steps or 1
        if self._batches < self.every * batches_per_update:
            return
        self._batches = 0
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()  # Within `fit` the variables are elsewhere.
        self.act()

    @property
    def optimizer(self) -> keras.optimizers.Optimizer:
        """What updates the weights: of a `LossScaleOptimizer` the one within it."""
        optimizer = self.model.optimizer
        return getattr(optimizer, "inner_optimizer", optimizer)
