"""A callback that counts missing gradients of the spectral radius of ENRNN."""

from typing import Any

from keras_ortho.cells import ENRNNCell
from keras_ortho.keras_internals import layers_within
from keras_ortho.periodic_callback import PeriodicCallback


class MissingRadiusGradients(PeriodicCallback):
    """Counts ENRNN matrices `T` whose spectral radius uses a substitute gradient.

    A substitute is used if too many eigenvalues tie, or the dominant one is too ill
    conditioned: see `keras_ortho.parametrizations.spectral_radius`. The count of each
    epoch is added to its logs as `missing_radius_gradients`, so it is printed, and
    recorded by a `CSVLogger` or `History` that comes after this callback. The
    attribute `count` holds the total since training began.

    Each check computes the dominant eigenpair once more.

    Args:
        every: Number of updates between checks, a positive integer. With
            `steps_per_execution` above 1, the check runs at the first opportunity.
            Default: 1.

    Raises:
        ValueError: If `every` is not a positive integer.

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
        """Resets the total count."""
        self.count = 0

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Resets the count of the epoch."""
        super().on_epoch_begin(epoch, logs)
        self._of_epoch = 0

    def act(self) -> None:
        """Checks the matrices after an update."""
        cells = (
            layer
            for layer in layers_within(self.model)
            if isinstance(layer, ENRNNCell) and not layer.frozen
        )
        missing = sum(not cell.eigenpair_report()["gradient_found"] for cell in cells)
        self.count += missing
        self._of_epoch += missing

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Adds the count of the epoch to its logs."""
        if logs is not None:
            logs["missing_radius_gradients"] = self._of_epoch
