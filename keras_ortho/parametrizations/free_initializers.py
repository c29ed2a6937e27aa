"""Initializers of free variables, and of matrices from which these follow."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.parametrizations.arithmetic import real_form


class FreeInitializer:
    """Marks initializers that make the free variables of a recurrent matrix.

    A cell calls such an initializer with the shape of the variable, and any other one
    with the shape `(n, n)` of the matrix. `makes` names the kind of the values, by
    which a cell rejects it if it takes another; an empty one fits every cell. `seeds`
    is the number of consecutive seeds in use.
    """

    makes: ClassVar[str] = ""
    seeds: ClassVar[int] = 1


class SeedOnly:
    """Mixin that turns a Keras initializer into one whose only argument is the seed."""

    # The other arguments of the Keras initializer.
    settings: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, seed: Any = None) -> None:
        super().__init__(**self.settings, seed=seed)  # type: ignore[call-arg]

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the initializer."""
        return {"seed": super().get_config()["seed"]}  # type: ignore[misc]


@keras.saving.register_keras_serializable(package="keras_ortho")
class UniformPhases(FreeInitializer, keras.initializers.RandomUniform):
    """Initializer for angles and phases, uniform on `(-pi, pi)` by default.

    Args:
        minval: Lower bound, in radians. Default: -pi.
        maxval: Upper bound, in radians. Default: pi.
        seed: Integer or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Raises:
        ValueError: If a bound is not a finite number, or `minval` exceeds `maxval`.

    Example:
    >>> angles = UniformPhases(seed=0)((1, 511))

    Reference:
    [Jing et al., 2017](https://proceedings.mlr.press/v70/jing17a.html)
    """

    makes = "phases"

    def __init__(
        self, minval: float = -math.pi, maxval: float = math.pi, seed: Any = None
    ) -> None:
        minval, maxval = checks.check_bounds(minval, maxval)
        super().__init__(minval=minval, maxval=maxval, seed=seed)


def check_makes(name: str, initializer: Any, wanted: str) -> None:
    """Checks that an initializer fits the free variables of a parametrization."""
    makes = initializer.makes if isinstance(initializer, FreeInitializer) else ""
    fits = not makes or not wanted or makes == wanted
    received = f"{name}={type(initializer).__name__}, which returns {makes}"
    checks.check(fits, name, f"return {wanted}, or a matrix", received)


def get(identifier: Any) -> Any:
    """Finds an initializer: one of this package, or one that Keras knows.

    Args:
        identifier: A name such as `"henaff_skew"`, an array, or any identifier that
            `keras.initializers.get` accepts.

    Returns:
        A new initializer for a name or config, a `Constant` for an array, of its real
        form if it is complex; otherwise the initializer itself.

    Raises:
        ValueError: If no such initializer exists.

    Example:
    >>> get("henaff_skew").maxval
    1.5707963267948966
    """
    if isinstance(identifier, str):
        name = "".join(word.capitalize() for word in identifier.split("_"))
        found = keras.saving.get_registered_object(f"keras_ortho>{name}")
        of_keras = keras.initializers.Initializer
        if isinstance(found, type) and issubclass(found, of_keras):
            return found()
    if ops.is_tensor(identifier) or isinstance(identifier, np.ndarray):
        # Keras would make a function of it, and a config can contain neither
        # functions nor complex numbers.
        array = ops.convert_to_numpy(identifier)
        is_complex = np.iscomplexobj(array)
        return keras.initializers.Constant(real_form(array) if is_complex else array)
    return keras.initializers.get(identifier)


def independent(initializer: Any) -> Any:
    """Returns an initializer with the same settings that draws different values.

    A random initializer of Keras returns the same values at every call, unless its seed
    is a `keras.random.SeedGenerator`, so weights must not share it.
    """
    config = _config(initializer)
    seed = config.get("seed", "none")
    if seed is not None and not isinstance(seed, int):
        return initializer
    config["seed"] = None if seed is None else seed + 1
    return type(initializer).from_config(config)


def next_seed(initializer: Any) -> int | None:
    """Returns the seed of what is drawn beside an initializer's values."""
    seed = _config(initializer).get("seed")
    return seed + 1 if isinstance(seed, int) else None


def _config(initializer: Any) -> dict[str, Any]:
    is_one = isinstance(initializer, keras.initializers.Initializer)
    return initializer.get_config() if is_one else {}


def independents(initializer: Any, count: int) -> list[Any]:
    """Returns several initializers of the same settings that draw different values."""
    chain = [initializer]
    while len(chain) < count:
        chain.append(independent(chain[-1]))
    return chain


def check_array(argument: str, initializer: Any, shape: tuple[int, ...]) -> None:
    """Checks the shape of an initializer that is an array: Keras would broadcast it."""
    if isinstance(initializer, keras.initializers.Constant):
        value = np.asarray(initializer.value)
        if value.ndim:
            checks.check_shape(argument, value, shape)
