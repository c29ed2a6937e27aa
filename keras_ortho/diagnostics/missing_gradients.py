"""A callback that counts how often ENRNN has no gradient of the spectral radius."""

from typing import Any

import keras

from keras_ortho.cells import ENRNNCell
from keras_ortho.checks import check_count
from keras_ortho.keras_internals import layers_within


class MissingRadiusGradients(keras.callbacks.Callback):
    """Counts the matrices `T` of ENRNN for whose radius another gradient stands in.

    That is so where too many eigenvalues tie or the dominant one is too ill
    conditioned: see `keras_ortho.parametrizations.spectral_radius`. The count of the
    epoch is put into its logs as `missing_radius_gradients`, so that it is printed and
    that `CSVLogger` and `History` keep it, if they come after this callback;
    `count` is that of the whole training.

    Each look costs finding the eigenpair once more.

    Args:
        every: After how many updates to look, a positive integer. Default: 1.

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
        super().__init__()
        self.every: int = check_count("every", every)
        self.count: int = 0
        self._updates = 0
        self._of_epoch = 0
        self._cells: list[ENRNNCell] = []

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Begins to count."""
        self.count = self._updates = 0
        self._cells = []

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Begins the count of an epoch."""
        self._of_epoch = 0

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Looks at the matrices that an update has left."""
        self._updates += 1
        if self._updates % self.every:
            return
        if not self._cells:  # A model may be built by its first batch.
            cells = {id(x): x for x in layers_within(self.model)}.values()
            self._cells = [x for x in cells if isinstance(x, ENRNNCell)]
        if hasattr(self.model, "jax_state_sync"):
            # On JAX `fit` holds the weights by itself, and the variables have none.
            self.model.jax_state_sync()
        missing = sum(
            not cell.eigenpair_report()["gradient_found"] for cell in self._cells
        )
        self.count += missing
        self._of_epoch += missing

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Puts the count of the epoch into its logs."""
        if logs is not None:
            logs["missing_radius_gradients"] = self._of_epoch
