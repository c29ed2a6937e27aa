"""A check that saved weights fit a layer, which names the argument that differs."""

from collections.abc import Iterator
from typing import Any


def check_saved(layer: Any, input_shape: tuple[int | None, ...], store: Any) -> None:
    """Names the argument with which saved arrays would fit; Keras says if none does."""
    found = [tuple(store[str(i)].shape) for i in range(len(store.keys()))]
    if not found or found == _shapes(layer):
        return
    config = layer.get_config()
    for name, value in _alternatives(config):
        try:
            other = type(layer).from_config({**config, name: value})
            other.build(input_shape)
        except (TypeError, ValueError):
            continue
        if _shapes(other) == found:
            raise ValueError(
                f"These weights were saved with `{name}={value}`: create "
                f"{layer.name} with it to load them. Received: {name}={config[name]}"
            )


def _shapes(layer: Any) -> list[tuple[int, ...]]:
    variables = layer._trainable_variables + layer._non_trainable_variables
    return [tuple(variable.shape) for variable in variables]


def _alternatives(config: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in config.items():
        if name == "rebase_every":
            yield name, None if value else 1
        elif name == "heads":
            yield from ((name, n) for n in range(1, config["units"] + 1) if n != value)
        elif isinstance(value, bool):
            yield name, not value
