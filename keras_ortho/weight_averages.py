"""Averages of the weights, which an optimizer with `use_ema` keeps, in a run."""

from typing import Any

import keras

from keras_ortho.optimizers.within import optimizers_within


class WeightAverages(keras.callbacks.SwapEMAWeights):
    """Puts averages in the place of weights, to validate and at the end of an epoch.

    The first of the callbacks, so that the others find them there; the last one calls
    `give_back`. Without `use_ema` it does nothing.
    """

    def set_model(self, model: keras.Model) -> None:
        """Finds out whether there are averages."""
        super().set_model(model)
        self._are_there = any(each.use_ema for each in optimizers_within(model))

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Puts them in place."""
        if self._are_there:
            super().on_test_begin(logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Puts them in place, also for other callbacks."""
        self.on_test_begin()

    def give_back(self) -> None:
        """Puts the weights back."""
        self.on_test_end()
