"""A check that saved weights fit a layer, which names the argument that differs."""

import contextlib
from collections.abc import Iterator
from typing import Any


def check_saved(layer: Any, input_shape: tuple[int | None, ...], store: Any) -> None:
    """Checks the shapes of saved arrays; on an error, names what would fit them."""
    found = [tuple(store[str(i)].shape) for i in range(len(store.keys()))]
    expected = _shapes(layer)
    if not found or found == expected:
        return
    config = layer.get_config()
    for name, value in _alternatives(config):
        shapes = None
        with contextlib.suppress(TypeError, ValueError):
            other = type(layer).from_config({**config, name: value})
            other.build(input_shape)
            shapes = _shapes(other)
        if shapes == found:
            raise ValueError(
                f"These weights were saved with `{name}={value}`: create "
                f"{layer.name} with it to load them. Received: {name}={config[name]}"
            )
    raise ValueError(
        f"The arguments of {layer.name} must be those with which the weights were "
        f"saved: they have the shapes {found}, and the weights of the layer "
        f"{expected}. Received: {config}"
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
