"""The matrix of ENRNN: an orthogonal block, and one of spectral radius at most 1."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho import checks
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.arithmetic import rounding_tolerance
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.cayley import ScaledCayley
from keras_ortho.parametrizations.free_initializers import check_array, get
from keras_ortho.parametrizations.schur import rotation_blocks
from keras_ortho.parametrizations.spectral_radius import normalize_spectral_radius


@keras.saving.register_keras_serializable(package="keras_ortho")
class ScaledRotations(keras.initializers.RandomUniform):
    """Initializer that makes a block-diagonal matrix of scaled rotations.

    The blocks are `g [[cos t, -sin t], [sin t, cos t]]`, with the angle `t` uniform on
    `(0, max_angle)` and the factor `g` uniform on `(-max_radius, max_radius)`. The last
    block of an odd order is a single factor `g`.

    Args:
        max_angle: Upper bound of the angles, in radians, in `[0, pi]`. Default: pi / 2.
        max_radius: Upper bound of the moduli of the eigenvalues, more than 0.
            Default: 1.
        seed: Int or `keras.random.SeedGenerator`. Default: `None`, a random seed.

    Raises:
        ValueError: If a bound is not finite or is out of range.

    Example:
    >>> ScaledRotations(seed=0)((4, 4))

    Reference:
    [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964), section 4
    """

    def __init__(
        self,
        max_angle: float = math.pi / 2,
        max_radius: float = 1.0,
        seed: Any = None,
    ) -> None:
        max_angle = checks.check_finite("max_angle", max_angle)
        max_radius = checks.check_number("max_radius", max_radius, positive=True)
        fits, received = 0 <= max_angle <= math.pi, f"max_angle={max_angle}"
        checks.check(fits, "max_angle", "lie between 0 and pi", received)
        super().__init__(minval=0.0, maxval=1.0, seed=seed)
        self.max_angle = max_angle
        self.max_radius = max_radius

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        """Draws the matrix, of shape `(n, n)`."""
        square = len(shape) == 2 and shape[0] == shape[1]
        checks.check(square, "shape", "be that of a square matrix", f"shape={shape}")
        size = shape[0]
        drawn = super().__call__((2, (size + 1) // 2), dtype=dtype)
        angles = self.max_angle * drawn[0, : size // 2]
        return rotation_blocks(self.max_radius * (2.0 * drawn[1] - 1.0), angles)

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the initializer."""
        seed = super().get_config()["seed"]
        radius = self.max_radius
        return {"max_angle": self.max_angle, "max_radius": radius, "seed": seed}


@keras.saving.register_keras_serializable(package="keras_ortho")
class EigenvalueNormalized(Parametrization):
    """Matrices `W = [[W_L, 0], [W_C, W_S]]`, as in ENRNN.

    `W_L` is orthogonal, and `W_S` has a spectral radius of at most 1: it is `T`, or
    `T / (rho(T) + epsilon)` if `rho(T) > 1` or the variable `normalize` is set. `ENRNN`
    sets `normalize` in training, once `rho(T)` exceeds 1; `OrthoRNN` never sets it.

    Args:
        long_term_units: Number of long-term units `q`, a positive integer.
        short_term_units: Number of short-term units `s`, a positive integer.
        negative_ones: How many entries of the `D` of `W_L` are -1, as in
            `ScaledCayley`. Default: 0.5.
        coupling: Whether `W_C` is a variable, rather than zero. Default: `True`.
        epsilon: Number added to the spectral radius, at least 0. Default: 0.
        short_term_initializer: Initializer for `T`. Default: `None`,
            `ScaledRotations`.
        coupling_initializer: Initializer for `W_C`. Default: `None`, Glorot uniform.

    Raises:
        ValueError: If an argument is out of range.

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
        self.short_term_initializer = get(short_term_initializer)
        self.coupling_initializer = get(coupling_initializer)
        self._long_term = ScaledCayley(negative_ones)

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns the variables: those of `W_L`, `T`, any `W_C`, and `normalize`."""
        long_term = self._long_term.variables(self.long_term_units, initializer)
        return [*long_term, *self._others(size)]

    def start(
        self, name: str, initializer: Any, size: int, dtype: str
    ) -> list[FreeVariable]:
        """Returns the variables. An initializer for a matrix makes `W_L`."""
        q = self.long_term_units
        long_term = self._long_term.start(name, initializer, q, dtype)
        return [*long_term, *self._others(size)]

    def check(self, size: int) -> None:
        """Checks the number of units and the number of negative ones."""
        q, s = self.long_term_units, self.short_term_units
        wanted = "be `long_term_units` plus `short_term_units`"
        received = f"units={size}, long_term_units={q}, short_term_units={s}"
        checks.check(size == q + s, "units", wanted, received)
        self._long_term.check(q)

    def _others(self, size: int) -> list[FreeVariable]:
        self.check(size)
        q, s = self.long_term_units, self.short_term_units
        short_term = self.short_term_initializer or ScaledRotations()
        rows = [("short_term_matrix", (s, s), short_term)]
        if self.coupling:
            glorot = self.coupling_initializer or keras.initializers.GlorotUniform()
            rows.append(("coupling_kernel", (s, q), glorot))
        for name, shape, start in rows:
            check_array(f"{name.rpartition('_')[0]}_initializer", start, shape)
        zeros = keras.initializers.Zeros()
        return [
            *(FreeVariable(*row, group="others") for row in rows),
            FreeVariable("normalize", (), zeros, trainable=False, dtype="bool"),
        ]

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes `W = [[W_L, 0], [W_C, W_S]]`."""
        _, _, short_term, *_, normalize = values
        kernel, _ = self.normalized(short_term, normalize)
        return self.with_short_term(kernel, *values)

    def with_short_term(self, kernel: Tensor, *values: Tensor) -> Tensor:
        """Assembles the matrix with a given `W_S`, rather than that of `T`."""
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
        """Makes `W_S` from `T`: see `normalize_spectral_radius`."""
        return normalize_spectral_radius(short_term, normalize, self.epsilon)

    def parts(self, *values: Tensor) -> dict[str, Tensor]:
        """Returns the long-term block `W_L`."""
        return {"long_term": self._long_term.matrix(*values[:2])}

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds the values of the variables, with `T = W_S` and `normalize = False`.

        With an `epsilon`, a `W_S` of spectral radius 1 is scaled to slightly less.
        """
        matrix = np.asarray(matrix)
        q, s = self.long_term_units, self.short_term_units
        checks.check_shape("matrix", matrix, (q + s, q + s))
        checks.check_all_finite("matrix", matrix)
        rounding = rounding_tolerance(s, matrix.dtype)
        upper, coupling, short_term = matrix[:q, q:], matrix[q:, :q], matrix[q:, q:]
        fits = not np.any(upper) and (self.coupling or not np.any(coupling))
        wanted = "be of the form [[W_L, 0], [W_C, W_S]], with W_C = 0 without coupling"
        received = f"another matrix, coupling={self.coupling}"
        checks.check(fits, "matrix", wanted, received)
        radius = _radius(short_term)
        wanted = "have a block W_S with a spectral radius of at most 1"
        checks.check(radius <= 1 + rounding, "matrix", wanted, radius)
        if self.epsilon and radius > 1 - rounding:
            # Rounding must not make it exceed 1, or `T` would be divided.
            short_term = short_term * ((1 - rounding) / radius)
        others = [short_term, coupling] if self.coupling else [short_term]
        return *self._long_term.inverse(matrix[:q, :q]), *others, np.asarray(False)

    def distance(self, matrix: np.ndarray) -> float:
        """Returns the largest distance of a block from its set."""
        checks.check_square("matrix", matrix)
        checks.check_all_finite("matrix", matrix)
        self.check(len(matrix))
        q = self.long_term_units
        above = np.linalg.norm(matrix[:q, q:])
        coupling = 0.0 if self.coupling else np.linalg.norm(matrix[q:, :q])
        long_term = self._long_term.distance(matrix[:q, :q])
        excess = _radius(matrix[q:, q:]) - 1.0
        return float(max(long_term, above, coupling, excess))


def _radius(matrix: np.ndarray) -> float:
    return float(np.abs(np.linalg.eigvals(matrix.astype("float64"))).max())
