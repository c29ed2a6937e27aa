"""Unique names for the operations of a functional model."""

import itertools
import re
from collections.abc import Iterable
from typing import Any

import keras
from keras import tree


class OperationNames:
    """Calls operations with symbolic tensors, under names not `taken` or `reserved`.

    `reserved` is a regular expression. Layers within others may have the same name,
    such as the cells of two Keras layers. The second is wrapped in a model with another
    name.
    """

    def __init__(self, taken: Iterable[str], reserved: str) -> None:
        self._owners: dict[str, Any] = dict.fromkeys(taken)
        self._reserved = reserved
        self._apart: dict[tuple[int, str], keras.Model] = {}

    def call(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls a layer, or another Keras operation."""
        is_free = not re.fullmatch(self._reserved, operation.name)
        if is_free and self._owners.setdefault(operation.name, operation) is operation:
            return operation(*args, **kwargs)
        outer: list[Any] = []
        inner: list[Any] = []

        def enter(x: Any) -> Any:
            if not isinstance(x, keras.KerasTensor):
                return x
            outer.append(x)
            inner.append(keras.Input(x.shape[1:], x.shape[0], dtype=x.dtype))
            return inner[-1]

        entered = tree.map_structure(enter, (args, kwargs))
        # One model per signature: in two models, a file would store the layer twice.
        signature = (id(operation), repr(tree.map_structure(_kind, entered)))
        if signature not in self._apart:
            args, kwargs = entered
            outputs = operation(*args, **kwargs)
            model = keras.Model(inner, outputs, name=self._free_name(operation.name))
            self._owners[model.name] = self._apart[signature] = model
        return self._apart[signature](outer)

    def _free_name(self, name: str) -> str:
        names = (f"{name}_{number}" for number in itertools.count(1))
        return next(each for each in names if each not in self._owners)


def _kind(x: Any) -> Any:
    return (x.shape, x.dtype) if isinstance(x, keras.KerasTensor) else x
