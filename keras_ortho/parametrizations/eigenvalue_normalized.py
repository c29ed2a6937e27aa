"""ENRNN's matrix: an orthogonal block, and one of spectral radius at most 1.

    W = [[W_L, 0], [W_C, W_S]]

for row vectors, with an orthogonal `W_L`, `W_S = T / rho(T)` once `rho(T)` has been
more than 1, and a free `W_C`. Helfrich and Ye, "Eigenvalue normalized recurrent neural
networks for short term memory", AAAI 2020.
"""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.backend.elementary import cos, sin
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import rounding_tolerance
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.cayley import ScaledCayley
from keras_ortho.parametrizations.free import check_array, given_initializer
from keras_ortho.parametrizations.spectral_radius import normalize_spectral_radius


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScaledRotations(keras.initializers.RandomUniform):
    """Block diagonal matrix of scaled rotations `g [[cos t, -sin t], [sin t, cos t]]`.

    Each block has an angle `t` uniform on `(0, max_angle)` and a factor `g` uniform on
    `(-max_radius, max_radius)`, and so the eigenvalues `g exp(+-i t)`. Where the order
    is odd the last entry is a factor by itself.

    Args:
        max_angle: Upper bound of the angles, in radians. Default: pi / 2.
        max_radius: Upper bound of the moduli of the eigenvalues, more than 0.
            Default: 1.
        seed: Int or `keras.random.SeedGenerator`. Default: `None`, one of its own.

    Raises:
        ValueError: If a bound is not a finite number or out of its range.

    Example:
    >>> ScaledRotations(seed=0)((4, 4))

    Reference:

    - [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964), section 4
    """

    def __init__(
        self,
        max_angle: float = math.pi / 2,
        max_radius: float = 1.0,
        seed: Any = None,
    ) -> None:
        max_angle = checks.check_finite("max_angle", max_angle)
        max_radius = checks.check_number("max_radius", max_radius, positive=True)
        if not 0 <= max_angle <= math.pi:
            raise ValueError(
                "`max_angle` must lie between 0 and pi. "
                f"Received: max_angle={max_angle}"
            )
        super().__init__(minval=0.0, maxval=1.0, seed=seed)
        self.max_angle = max_angle
        self.max_radius = max_radius

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Draws the matrix.

        Args:
            shape: `(n, n)`.
            dtype: Floating dtype. Default: Keras's.

        Returns:
            Tensor of that shape and dtype.

        Raises:
            ValueError: If the shape is not that of a square matrix.
        """
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(
                f"`shape` must be that of a square matrix. Received: shape={shape}"
            )
        size = shape[0]
        drawn = super().__call__((2, (size + 1) // 2), dtype=dtype)
        # Of the last row, where that is by itself, the angle is zero.
        angles = self.max_angle * drawn[0] * (np.arange(1, size + 1, 2) < size)
        factors = self.max_radius * (2.0 * drawn[1] - 1.0)
        cosines = ops.repeat(factors * cos(angles), 2)[:size]
        sines = ops.repeat(factors * sin(angles), 2)[: size - 1]
        # Those between two blocks are not there.
        sines = sines * (np.arange(size - 1) % 2 == 0)
        matrix = ops.diag(cosines)
        if size > 1:
            matrix = matrix + ops.diag(sines, k=-1) - ops.diag(sines, k=1)
        return matrix

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal initializer."""
        config = super().get_config()
        return {
            "max_angle": self.max_angle,
            "max_radius": self.max_radius,
            "seed": config["seed"],
        }


@keras.saving.register_keras_serializable(package="keras_ortho")
class EigenvalueNormalized(Parametrization):
    """Matrices `[[W_L, 0], [W_C, W_S]]`: ENRNN's.

    Whether `T` is always to be divided is a variable, `normalize`, which `ENRNN` writes
    in training. In `OrthoRNN` nothing does: `T` is divided while its spectral radius is
    above 1.

    Args:
        long_term_units: Number of long-term units `q`, a positive integer.
        short_term_units: Number of short-term units `s`, a positive integer.
        negative_ones: How many entries of the `D` of `W_L` are -1: see `ScaledCayley`.
            Default: 0.5.
        coupling: Whether there is `W_C`. Default: `True`.
        epsilon: What is added to the spectral radius, at least 0. Default: 0.
        short_term_initializer: Initializer of `T`. Default: `None`,
            `ScaledRotations`.
        coupling_initializer: Initializer of `W_C`. Default: `None`, Glorot's uniform.

    Raises:
        ValueError: If an argument is out of its range.

    Example:
    >>> [variable.shape for variable in EigenvalueNormalized(4, 2).variables(6)]
    [(6,), (4,), (2, 2), (2, 4), ()]
    """

    takes = "skew entries"

    def __init__(
        self,
        long_term_units: int,
        short_term_units: int,
        negative_ones: int | float = 0.5,
        coupling: bool = True,
        epsilon: float = 0.0,
        short_term_initializer: Any = None,
        coupling_initializer: Any = None,
    ) -> None:
        self.long_term_units = checks.check_count("long_term_units", long_term_units)
        self.short_term_units = checks.check_count("short_term_units", short_term_units)
        self.negative_ones = negative_ones
        self.coupling = coupling
        self.epsilon = checks.check_number("epsilon", epsilon)
        self.short_term_initializer = given_initializer(short_term_initializer)
        self.coupling_initializer = given_initializer(coupling_initializer)
        self._long_term = ScaledCayley(negative_ones)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists what makes `W_L`, `T`, `W_C`, and whether to normalize `T`."""
        long_term = self._long_term.variables(self.long_term_units, initializer)
        return [*long_term, *self._others(size)]

    def start(
        self, name: str, initializer: Any, size: int, dtype: str
    ) -> list[FreeVariable]:
        """Lists the variables; an initializer of a matrix is one of `W_L`."""
        q = self.long_term_units
        return [
            *self._long_term.start(name, initializer, q, dtype),
            *self._others(size),
        ]

    def check(self, size: int) -> None:
        """Checks the numbers of units, and of negative ones."""
        q, s = self.long_term_units, self.short_term_units
        if size != q + s:
            raise ValueError(
                "The units must be the long-term and the short-term ones. "
                f"Received: {size} units, long_term_units={q}, short_term_units={s}"
            )
        self._long_term.check(q)

    def _others(self, size: int) -> list[FreeVariable]:
        self.check(size)
        q, s = self.long_term_units, self.short_term_units
        short_term = self.short_term_initializer or ScaledRotations()
        rows = [_of_shape("short_term", (s, s), "matrix", short_term)]
        if self.coupling:
            glorot = self.coupling_initializer or keras.initializers.GlorotUniform()
            rows.append(_of_shape("coupling", (s, q), "kernel", glorot))
        zeros = keras.initializers.Zeros()
        return [
            *rows,
            FreeVariable("normalize", (), zeros, trainable=False, dtype="bool"),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = [[W_L, 0], [W_C, W_S]]`."""
        _, _, short_term, *_, normalize = values
        kernel, _ = self.normalized(short_term, normalize)
        return self.with_short_term(kernel, *values)

    def with_short_term(self, kernel: Tensor, *values: Tensor) -> Tensor:
        """Puts the blocks together around a short-term one.

        Args:
            kernel: `W_S`, of shape `(s, s)`.
            *values: The values of the variables; of `T` and whether to normalize it
                nothing is taken.

        Returns:
            Tensor of shape `(q + s, q + s)`.
        """
        skew, signs, _, *coupling, _ = values
        q, s = self.long_term_units, self.short_term_units
        upper = [self._long_term.matrix(skew, signs), ops.zeros((q, s), kernel.dtype)]
        lower = [*(coupling or [ops.zeros((s, q), kernel.dtype)]), kernel]
        return ops.concatenate(
            [ops.concatenate(upper, axis=1), ops.concatenate(lower, axis=1)]
        )

    def normalized(
        self, short_term: Tensor, normalize: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Makes `W_S`, and tells whether it was normalized.

        Args:
            short_term: `T`, of shape `(s, s)`.
            normalize: Whether it is normalized whatever its radius is, a boolean.

        Returns:
            A pair of `W_S`, of shape `(s, s)`, and a boolean: see
            `keras_ortho.parametrizations.normalize_spectral_radius`.
        """
        return normalize_spectral_radius(short_term, normalize, self.epsilon)

    def parts(self, *values: Tensor) -> dict[str, Tensor]:
        """Gives the long-term block `W_L`."""
        return {"long_term": self._long_term.matrix(*values[:2])}

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the variables; `T` is `W_S`, and `normalize` is `False`.

        Args:
            matrix: Array of shape `(q + s, q + s)`, `[[W_L, 0], [W_C, W_S]]`: `W_L`
                orthogonal; `W_S` with a spectral radius of at most 1, up to `100 s`
                times the machine epsilon of its dtype; `W_C` zero without coupling.

        Returns:
            The values, in the order of `variables`.

        Raises:
            ValueError: If it is of another shape or not of that form.
        """
        matrix = np.asarray(matrix)
        q, s = self.long_term_units, self.short_term_units
        checks.check_shape("matrix", matrix, (q + s, q + s))
        checks.check_all_finite("matrix", matrix)
        rounding = rounding_tolerance(s, matrix.dtype)
        upper, coupling, short_term = matrix[:q, q:], matrix[q:, :q], matrix[q:, q:]
        if np.any(upper) or (not self.coupling and np.any(coupling)):
            raise ValueError(
                "`matrix` must be of the form [[W_L, 0], [W_C, W_S]], with W_C = 0 "
                "without coupling. Received: one with other entries, "
                f"coupling={self.coupling}"
            )
        radius = _radius(short_term)
        if radius > 1 + rounding:
            raise ValueError(
                "`matrix` must have a block W_S with a spectral radius of at most 1. "
                f"Received: one with the spectral radius {radius}"
            )
        if self.epsilon and radius > 1 - rounding:
            # One of 1 up to rounding would be divided by `1 + epsilon`.
            short_term = short_term * ((1 - rounding) / radius)
        return (
            *self._long_term.inverse(matrix[:q, :q]),
            short_term,
            *([coupling] if self.coupling else []),
            np.asarray(False),
        )

    def distance(self, matrix: np.ndarray) -> float:
        """Measures how far the blocks are from theirs, the largest distance of all."""
        checks.check_square("matrix", matrix)
        checks.check_all_finite("matrix", matrix)
        self.check(len(matrix))
        q = self.long_term_units
        above = np.linalg.norm(matrix[:q, q:])
        coupling = 0.0 if self.coupling else np.linalg.norm(matrix[q:, :q])
        long_term = self._long_term.distance(matrix[:q, :q])
        excess = _radius(matrix[q:, q:]) - 1.0
        return float(max(long_term, above, coupling, excess))


def _of_shape(
    name: str, shape: tuple[int, int], kind: str, initializer: Any
) -> FreeVariable:
    check_array(f"{name}_initializer", initializer, shape)
    return FreeVariable(f"{name}_{kind}", shape, initializer, group="others")


def _radius(matrix: np.ndarray) -> float:
    return float(np.abs(np.linalg.eigvals(matrix.astype("float64"))).max())
