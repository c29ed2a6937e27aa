"""Another initializer of the same kind, for a second weight."""

from typing import Any

import keras


def independent(initializer: Any) -> Any:
    """Makes an initializer with the same settings that draws other values.

    Every call of one of Keras's random initializers gives the same values, unless
    its seed is a `keras.random.SeedGenerator`. Two weights that share an argument
    such as `kernel_initializer` need one each.

    Args:
        initializer: An initializer of Keras or of this package, or a function.

    Returns:
        An initializer with the next seed where it was given an int, with a new one
        where it was given none. The initializer itself where it draws nothing, or
        something new at each call.

    Example:
    >>> independent(keras.initializers.GlorotUniform(seed=1)).get_config()["seed"]
    2
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    seed = config.get("seed")
    if "seed" not in config or not (seed is None or isinstance(seed, int)):
        return initializer
    config["seed"] = None if seed is None else seed + 1
    return type(initializer).from_config(config)
