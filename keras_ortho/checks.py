"""Validation of user arguments."""

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np


def check(holds: Any, name: str, wanted: str, received: Any) -> None:
    """Raises a `ValueError` about an argument unless a condition holds."""
    if not holds:
        raise ValueError(f"`{name}` must {wanted}. Received: {received}")


def is_integer(value: Any) -> bool:
    """Returns whether a value is a Python or NumPy integer, but not a boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_count(name: str, value: Any) -> int:
    """Checks that an argument is a positive integer."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    check(number > 0, name, "be a positive integer", f"{name}={value!r}")
    return number


def check_sizes(name: str, value: Any) -> tuple[int, ...]:
    """Checks that an argument is a shape with known sizes."""
    # A `TensorShape` is neither, and has no length if nothing is known of it.
    is_shape = hasattr(value, "as_list") and value.rank is not None
    sizes = list(value) if is_shape or isinstance(value, list | tuple) else []
    holds = sizes and all(is_integer(size) and size > 0 for size in sizes)
    wanted = "be a tuple or list of positive integers"
    check(holds, name, wanted, f"{name}={value!r}")
    return tuple(map(int, sizes))


def check_fraction(name: str, value: Any) -> float:
    """Checks that an argument is a fraction in `[0, 1)`."""
    wanted = "be a fraction of at least 0 and less than 1"
    return _check_float(name, value, lambda x: 0 <= x < 1, wanted)


def check_finite(name: str, value: Any) -> float:
    """Checks that an argument is a finite number."""
    return _check_float(name, value, np.isfinite, "be a finite number")


def check_decibels(name: str, value: Any) -> float:
    """Checks that an argument is a plausible level or ratio of sound, in dB."""
    wanted = "be from -200 to 200 dB"
    return _check_float(name, value, lambda x: -200 <= x <= 200, wanted)


def check_number(name: str, value: Any, positive: bool = False) -> float:
    """Checks that an argument is a finite, nonnegative number."""
    wanted = f"be a finite number of {'more than' if positive else 'at least'} 0"
    return _check_float(
        name, value, lambda x: 0 <= x < np.inf and (x > 0 or not positive), wanted
    )


def _check_float(
    name: str, value: Any, in_range: Callable[[Any], bool], wanted: str
) -> float:
    numeric = isinstance(value, int | float | np.integer | np.floating)
    holds = numeric and not isinstance(value, bool) and in_range(value)
    check(holds, name, wanted, f"{name}={value!r}")
    return float(value)


def check_bounds(minval: Any, maxval: Any) -> tuple[float, float]:
    """Checks the bounds of a uniform distribution.

    If the bounds are in the wrong order, TensorFlow draws from the interval between
    them, and JAX returns a constant.
    """
    minval, maxval = check_finite("minval", minval), check_finite("maxval", maxval)
    received = f"minval={minval}, maxval={maxval}"
    check(minval <= maxval, "minval", "be at most `maxval`", received)
    return minval, maxval


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Checks that an argument is one of some words."""
    words = tuple(choices)
    holds = isinstance(value, str) and value in words
    check(holds, name, f"be one of {words}", f"{name}={value!r}")


def check_shape(name: str, array: np.ndarray, shape: tuple[int, ...]) -> None:
    """Checks the shape of an array."""
    holds = array.shape == shape
    check(holds, name, f"have the shape {shape}", f"{name}.shape={array.shape}")


def check_fits(name: str, tensor: Any, shape: Any, to: str) -> None:
    """Checks that the known part of a tensor's shape matches the required shape."""
    found, expected = tuple(tensor.shape), tuple(shape)
    holds = len(found) == len(expected) and all(
        a == b or None in (a, b) for a, b in zip(found, expected, strict=True)
    )
    wanted = f"have the shape {expected} to fit {to}"
    check(holds, name, wanted, f"shape {found}")


def check_square(name: str, matrix: Any) -> None:
    """Checks that an argument is a square matrix."""
    shape = tuple(matrix.shape)
    holds = len(shape) == 2 and shape[0] == shape[1] and shape[0]
    check(holds, name, "be square", f"{name}.shape={shape}")


def check_all_finite(name: str, array: np.ndarray) -> None:
    """Checks that all entries of an array are finite."""
    check(np.isfinite(array).all(), name, "be finite", "NaN or infinite values")


def check_real(name: str, array: np.ndarray) -> None:
    """Checks that an array holds real numbers."""
    holds = array.dtype.kind in "biuf"
    check(holds, name, "contain real numbers", f"{name}.dtype={array.dtype}")


def check_real_square(name: str, matrix: Any) -> np.ndarray:
    """Checks that an argument is a square matrix of finite real numbers."""
    matrix = np.asarray(matrix)
    check_square(name, matrix)
    check_real(name, matrix)
    check_all_finite(name, matrix)
    return matrix.astype("float64")


def check_lengths(frame_length: int, hop_length: int, overlap: bool = False) -> None:
    """Checks the frames of an STFT, which must overlap if it has an inverse."""
    check_count("frame_length", frame_length)
    wanted = "be even, and `hop_length` must divide `frame_length`"
    rest = frame_length % 2 or frame_length % check_count("hop_length", hop_length)
    received = f"frame_length={frame_length}, hop_length={hop_length}"
    check(not rest, "frame_length", wanted, received)
    wanted = "be less than `frame_length`: frames must overlap"
    check(hop_length < frame_length or not overlap, "hop_length", wanted, hop_length)


def check_real_tensor(name: str, tensor: Any) -> None:
    """Checks that a tensor is real: casting a complex one drops its imaginary part."""
    dtype = getattr(tensor, "dtype", "")
    wanted = "be real: concatenate the real and the imaginary parts, as features"
    check("complex" not in str(dtype), name, wanted, f"{name}.dtype={dtype}")


def check_last_axis(layer: Any, input_shape: tuple[int | None, ...]) -> int:
    """Checks that the size of the last axis of a layer's inputs is known."""
    size = input_shape[-1]
    if size is None:
        raise ValueError(
            f"The last axis of the input of `{type(layer).__name__}` must be known. "
            f"Received: input_shape={input_shape}"
        )
    return size


def check_built(layer: Any) -> None:
    """Checks that a layer is built, and so has its weights."""
    if not layer.built:
        raise ValueError(
            "The layer has no weights yet: call it, or its `build` method, first. "
            f"Received: {layer.name} with built=False"
        )
