"""Keras metric for the prediction of the next character of a text."""

import math
from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor
from keras_ortho.keras_internals import get_keras_mask


@keras.saving.register_keras_serializable("keras_ortho", "metrics.BitsPerCharacter")
class BitsPerCharacter(keras.metrics.SparseCategoricalCrossentropy):
    """Mean cross-entropy in bits over all characters of all batches.

    Each character has the same weight. In Keras's metric each row of a batch has the
    same weight, whatever its length.

    Args:
        from_logits: Whether the outputs are logits rather than probabilities.
            Default: `True`.
        name: Name of the metric. Default: `"bits_per_character"`.
        dtype: The dtype to compute in. Default: Keras's `floatx`.

    Example:
    >>> metric = BitsPerCharacter()
    >>> metric.update_state(np.zeros((2, 5)), np.zeros((2, 5, 8)))
    >>> float(metric.result())
    3.0
    """

    def __init__(
        self,
        from_logits: bool = True,
        name: str = "bits_per_character",
        dtype: str | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype, from_logits=from_logits)

    def update_state(
        self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> None:
        """Adds a batch.

        Args:
            y_true: The characters, integers of shape `(batch, time)`.
            y_pred: Tensor of shape `(batch, time, classes)`. If it carries a Keras
                mask, masked characters do not count.
            sample_weight: Weights of shape `(batch, time)` or `(batch,)`. Default:
                `None`.
        """
        y_pred = ops.convert_to_tensor(y_pred)
        mask = get_keras_mask(y_pred)
        if sample_weight is not None or mask is not None:
            given = 1.0 if sample_weight is None else sample_weight
            weights = ops.convert_to_tensor(given, dtype=self.dtype)
            characters = ops.shape(y_pred)[:-1]
            while len(weights.shape) < len(characters):
                weights = ops.expand_dims(weights, -1)
            weights = ops.broadcast_to(weights, characters)
            if mask is not None:
                weights = weights * ops.cast(mask, weights.dtype)
            sample_weight = ops.reshape(weights, (-1,))
        super().update_state(
            ops.reshape(y_true, (-1,)),
            ops.reshape(y_pred, (-1, y_pred.shape[-1])),
            sample_weight,
        )

    def result(self) -> Tensor:
        """Returns the bits per character so far.

        Returns:
            A scalar tensor; 0 before the first batch.
        """
        return super().result() / math.log(2)

    def get_config(self) -> dict[str, Any]:
        """Returns the config, from which `from_config` makes an equal metric."""
        config = super().get_config()
        return {name: config[name] for name in ("from_logits", "name", "dtype")}
