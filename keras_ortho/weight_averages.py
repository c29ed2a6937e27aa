"""The weight averages of optimizers with `use_ema` in a run."""

from typing import Any

import keras

from keras_ortho.optimizers.within import optimizers_within


class WeightAverages(keras.callbacks.SwapEMAWeights):
    """Replaces weights with their averages for validation and at the end of an epoch.

    It must be the first callback, so that the others see the averages; the last
    callback calls `give_back`. Without `use_ema`, it does nothing.
    """

    def set_model(self, model: keras.Model) -> None:
        """Checks whether an optimizer of the model keeps averages."""
        super().set_model(model)
        self._are_there = any(each.use_ema for each in optimizers_within(model))

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Replaces the weights with the averages, if there are any."""
        if self._are_there:
            super().on_test_begin(logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Replaces the weights with the averages, for the other callbacks."""
        self.on_test_begin()

    def give_back(self) -> None:
        """Restores the weights."""
        self.on_test_end()
