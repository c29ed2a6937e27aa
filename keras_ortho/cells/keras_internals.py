"""What the cells need of Keras that is not public, imported here and nowhere else."""

from typing import Any

from keras.src.backend import rnn
from keras.src.backend.common.global_state import get_global_attribute
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell

__all__ = ["DropoutRNNCell", "current_call", "rnn"]


def current_call(cell: Any) -> Any:
    """Finds the outermost call of a layer or model, around a cell's, under way.

    Args:
        cell: The cell. A call that begins with it is not around it.

    Returns:
        The object that stands for that call, be it by `__call__` or by
        `stateless_call`, or `None` outside of any.
    """
    call = get_global_attribute("current_call_ctx")
    if call is not None and call.entry_layer is not cell:
        return call
    return get_global_attribute("stateless_scope")
