"""Elementary functions that keep the precision of their argument on every backend."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_ortho.backend.types import Tensor

_functions: Any = ops
if keras.backend.backend() == "jax":
    import jax

    _functions = jax.numpy  # On JAX, those of Keras return float32 for float64.

cos: Callable[[Tensor], Tensor] = _functions.cos
sin: Callable[[Tensor], Tensor] = _functions.sin
tan: Callable[[Tensor], Tensor] = _functions.tan
tanh: Callable[[Tensor], Tensor] = _functions.tanh
