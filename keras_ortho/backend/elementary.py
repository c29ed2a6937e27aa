"""Elementary functions in the precision of their argument, on every backend."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor

_functions: Any = ops
if keras.backend.backend() == "jax":
    import jax

    _functions = jax.numpy  # Keras's give float32 on JAX, whatever they get.

cos: Callable[[Tensor], Tensor] = _functions.cos
sin: Callable[[Tensor], Tensor] = _functions.sin
tan: Callable[[Tensor], Tensor] = _functions.tan
tanh: Callable[[Tensor], Tensor] = _functions.tanh
