"""What the cells need of Keras that is not public, imported here and nowhere else."""

from typing import Any

from keras.src.backend import rnn
from keras.src.backend.common.global_state import get_global_attribute
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell

__all__ = ["DropoutRNNCell", "current_call", "rnn"]


def current_call() -> Any:
    """Finds the outermost call of a layer or model that is under way.

    Returns:
        The object that stands for that call, or `None` outside of any.
    """
    return get_global_attribute("current_call_ctx")
