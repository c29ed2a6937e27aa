"""A callback that counts how often ENRNN has no gradient of the spectral radius."""

from typing import Any

from keras_ortho.cells import ENRNNCell
from keras_ortho.keras_internals import layers_within
from keras_ortho.periodic_callback import PeriodicCallback


class MissingRadiusGradients(PeriodicCallback):
    """Counts the matrices `T` of ENRNN for whose radius another gradient stands in.

    That is so where too many eigenvalues tie or the dominant one is too ill
    conditioned: see `keras_ortho.parametrizations.spectral_radius`. The count of the
    epoch is put into its logs as `missing_radius_gradients`, so that it is printed and
    that `CSVLogger` and `History` keep it, if they come after this callback;
    `count` is that of the whole training.

    Each look costs finding the eigenpair once more.

    Args:
        every: After how many updates to look, a positive integer; with
            `steps_per_execution` above 1 at the first opportunity. Default: 1.

    Raises:
        ValueError: If `every` is not positive.

    Example:

    ```python
    callback = MissingRadiusGradients(every=10)
    model.fit(x, y, callbacks=[callback, keras.callbacks.CSVLogger("log.csv")])
    print(callback.count)
    ```
    """

    def __init__(self, every: int = 1) -> None:
        super().__init__(every)
        self.count: int = 0
        self._of_epoch = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Begins to count."""
        self.count = 0

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Begins the count of an epoch."""
        super().on_epoch_begin(epoch, logs)
        self._of_epoch = 0

    def act(self) -> None:
        """Looks at the matrices that an update has left."""
        cells = (
            layer
            for layer in layers_within(self.model)
            if isinstance(layer, ENRNNCell) and not layer.frozen
        )
        missing = sum(not cell.eigenpair_report()["gradient_found"] for cell in cells)
        self.count += missing
        self._of_epoch += missing

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Puts the count of the epoch into its logs."""
        if logs is not None:
            logs["missing_radius_gradients"] = self._of_epoch
