"""Base class of parametrizations: sets of matrices made from free variables."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from keras_ortho import configs
from keras_ortho.backend import eagerly
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check, check_all_finite
from keras_ortho.parametrizations.arithmetic import (
    block_diagonal,
    blocks_shape,
    complex_matrix,
    only_blocks,
    orthogonality_error,
    real_form,
)
from keras_ortho.parametrizations.free_initializers import FreeInitializer, check_array


@dataclasses.dataclass(frozen=True)
class FreeVariable:
    """Specification of a variable that a layer creates for its matrix.

    Attributes:
        name: Name of the weight, and of a new attribute of the cell.
        shape: Shape of the variable.
        initializer: Initializer for the variable.
        trainable: Whether the variable is trained. Default: `True`.
        group: Group of the variable in `keras_ortho.optimizers.paper_optimizer`:
            `"recurrent"`, `"unitary"` or `"others"`. Default: `"recurrent"`.
        dtype: Dtype of the variable. Default: `None`, that of the layer.
        constraint: Constraint for the variable. Default: `None`.
        exact: Whether to store it in at least float32. Default: `False`.
    """

    name: str
    shape: tuple[int, ...]
    initializer: Any
    trainable: bool = True
    group: str = "recurrent"
    dtype: str | None = None
    constraint: Any = None
    exact: bool = False


def check_parametrization(
    parametrization: Any, real: bool = False
) -> "Parametrization":
    """Checks the `parametrization` argument of a layer, and if it must be `real`."""
    if isinstance(parametrization, dict):
        parametrization = keras.saving.deserialize_keras_object(parametrization)
    is_one = isinstance(parametrization, Parametrization)
    wanted = "be a `keras_ortho.parametrizations.Parametrization`"
    check(is_one, "parametrization", wanted, repr(parametrization))
    fits = not (real and parametrization.is_complex)
    received = type(parametrization).__name__
    check(fits, "parametrization", "make real matrices", received)
    return parametrization


class Parametrization:
    """Base class of parametrizations: maps from free variables to a square matrix.

    A subclass, which `keras_ortho.OrthoRNN` and `keras_ortho.OrthoDense` accept,
    implements `variables` and `matrix`; `inverse`, if the map has one; and `distance`
    and `parts`, if its matrices are not orthogonal as a whole. It must be registered
    with Keras, and store its arguments as attributes of the same names.

    With complex units (`is_complex`), `matrix` returns the real form
    `[[Re W, Im W], [-Im W, Re W]]`, of shape `(2n, 2n)`; `inverse` and `distance`
    take the complex matrix, of shape `(n, n)`.

    Example:
    >>> @keras.saving.register_keras_serializable(package="mine")
    ... class Rotation(Parametrization):
    ...     def variables(self, size, initializer=None):
    ...         return [FreeVariable("angle", (), initializer or "zeros")]
    ...
    ...     def matrix(self, angle):
    ...         cosine, sine = ops.cos(angle), ops.sin(angle)
    ...         rows = [cosine, sine], [-sine, cosine]
    ...         return ops.stack([ops.stack(row) for row in rows])
    >>> OrthoRNN(2, Rotation())(np.ones((2, 3, 1))).shape
    (2, 2)
    """

    # Whether the units are complex.
    is_complex: bool = False
    # Kind of values that an initializer for the free variables must make, see
    # `FreeInitializer.makes`; `""` accepts any.
    takes: str = ""
    # Whether all matrices are orthogonal (or unitary), and variables near zero reach
    # every orthogonal (or unitary) matrix near that of zero: see `Rebased`.
    full_at_zero: ClassVar[bool] = False
    # Number of diagonal blocks of the matrix, which is zero elsewhere: see `Heads`.
    heads: int = 1
    # Number of parts of the inputs of a layer, each read by its own head only.
    input_heads: int = 1
    # Whether there is a base that `rebase` can move: see `Rebased`.
    has_base: bool = False

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Returns the variables that make the matrix, in the order `matrix` takes them.

        Args:
            size: Number of units `n`.
            initializer: Initializer for the free variables. Default: `None`, that of
                the paper.
        """
        raise NotImplementedError(f"`{type(self).__name__}` must have `variables`")

    def check(self, size: int) -> None:
        """Raises a `ValueError` if no matrix of the set has the order `size`."""

    def matrix_shape(self, size: int) -> tuple[int, int]:
        """Returns the shape of the matrix, `(n, n)`."""
        return size, size

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes the matrix, which row vectors multiply from the left.

        Args:
            *values: Values of the variables. Floating values are float32 or float64.

        Returns:
            Tensor of their dtype: `(n, n)`, or `(2n, 2n)` with complex units.
        """
        raise NotImplementedError(f"`{type(self).__name__}` must have `matrix`")

    def blocks(self, *values: Tensor) -> Tensor:
        """Makes only the diagonal blocks, if there are several: see `Heads`."""
        raise NotImplementedError

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds values of the variables, in their order, that make a given matrix.

        Args:
            matrix: Array of shape `(n, n)`.

        Raises:
            ValueError: If the matrix is not in the set, or the map has no inverse.
        """
        raise ValueError(
            f"`{type(self).__name__}` cannot be set to a matrix, or start from that of "
            "a layer that is built: it has no method `inverse`. "
            f"Received: matrix of shape {tuple(np.shape(matrix))}"
        )

    def parts(self, *values: Tensor) -> dict[str, Tensor]:
        """Returns the parts of the matrix that are kept orthogonal or unitary, by name.

        By default, the only part is the whole matrix, whose name is `""`.
        """
        return {"": self.matrix(*values)}

    def distance(self, matrix: np.ndarray) -> float:
        """Measures how far a matrix of shape `(n, n)` is from the set.

        The default is `||W* W - I||_F`, the error of orthogonality or unitarity.
        """
        return orthogonality_error(matrix)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws a matrix of the set, complex if the units are.

        By default, trainable variables are standard normal, others have initial values.

        Args:
            size: Order `n`.
            seed: Random seed. Default: `None`, a new seed at each call.
        """
        random = np.random.default_rng(seed)
        values = self._initial(
            self.variables(size), lambda shape: random.normal(size=shape)
        )
        with eagerly():
            matrix = ops.convert_to_numpy(self.matrix(*values))
        return self._of_units(matrix, size)

    def _initial(
        self, variables: Iterable[FreeVariable], trained: Callable[..., Any]
    ) -> list[Tensor]:
        """Returns float64 values: `trained` makes those of the trainable variables."""
        with eagerly():
            return [
                ops.convert_to_tensor(trained(v.shape), dtype="float64")
                if v.trainable
                else keras.initializers.get(v.initializer)(
                    v.shape, dtype=v.dtype or "float64"
                )
                for v in variables
            ]

    def begin_training_pass(self, variables: Sequence[Any], dtype: str) -> None:
        """Updates non-trainable variables, once in each training call of a layer.

        `dtype` is the one in which the layer then computes the matrix.
        """

    def rebase(self, variables: Sequence[Any], dtype: str) -> None:
        """Moves the base of a `Rebased` parametrization to the current matrix."""
        raise ValueError(
            "`rebase` requires a base matrix, which "
            "`keras_ortho.parametrizations.Rebased` adds. Received: "
            f"{type(self).__name__}"
        )

    def start(
        self, name: str, initializer: Any, size: int, dtype: str
    ) -> list[FreeVariable]:
        """Returns the variables, with the initializer given to a layer."""
        if initializer is None or isinstance(initializer, FreeInitializer):
            return self.variables(size, initializer)
        shape = self.matrix_shape(size)
        if not self.is_complex:  # A complex matrix may be given in its real form.
            check_array(name, initializer, shape)

        @functools.cache  # All variables must come from the same random matrix.
        def values() -> tuple[np.ndarray, ...]:
            if isinstance(initializer, keras.initializers.Constant):
                matrix = np.asarray(initializer.value)
            else:
                # Inverses branch on the values of the matrix, which must be concrete
                # even if the layer is built while a function is traced.
                with eagerly():
                    matrix = ops.convert_to_numpy(initializer(shape, dtype=dtype))
            try:
                return self.inverse(self._of_units(matrix, size))
            except ValueError as error:
                raise ValueError(
                    f"`{name}` returned a matrix that the layer cannot have: {error}"
                ) from error

        def make(index: int) -> Callable[..., Tensor]:
            return lambda shape, dtype=None: ops.cast(values()[index], dtype)

        # `Zeros` is replaced, and draws no seed.
        variables = self.variables(size, keras.initializers.Zeros())
        return [
            dataclasses.replace(variable, initializer=make(index))
            for index, variable in enumerate(variables)
        ]

    def values(self, variables: Iterable[Any], dtype: str) -> list[Tensor]:
        """Returns the values of variables, as `matrix` takes them."""
        return [
            ops.cast(variable, dtype)
            if keras.backend.is_float_dtype(variable.dtype)
            else ops.convert_to_tensor(variable)
            for variable in variables
        ]

    def _of_units(self, matrix: np.ndarray, size: int) -> np.ndarray:
        return complex_matrix("matrix", matrix, size) if self.is_complex else matrix

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the parametrization: its arguments, serialized."""
        config = {}
        for name in configs.argument_names(type(self)):
            wanted = "store its arguments as attributes of the same names"
            received = f"a class without {name}"
            check(hasattr(self, name), type(self).__name__, wanted, received)
            config[name] = keras.saving.serialize_keras_object(getattr(self, name))
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Parametrization":
        """Creates a parametrization from its config."""
        load = keras.saving.deserialize_keras_object
        return cls(**{name: load(value) for name, value in config.items()})


@keras.saving.register_keras_serializable(package="keras_ortho")
class PlainMatrix(Parametrization):
    """The recurrent matrix itself as a weight, with nothing to keep it orthogonal.

    `keras_ortho.freeze` uses it for the layers of a trained model.
    """

    def __init__(
        self, is_complex: bool = False, heads: int = 1, input_heads: int = 1
    ) -> None:
        self.is_complex = is_complex
        self.heads = heads
        self.input_heads = input_heads

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the matrix, or its blocks."""
        shape: tuple[int, ...] = (size * (1 + self.is_complex),) * 2
        if self.heads > 1:
            shape = blocks_shape(self.heads, size // self.heads, self.is_complex)
        return [FreeVariable("recurrent_kernel", shape, "zeros", group="others")]

    def start(
        self, name: str, initializer: Any, size: int, dtype: str
    ) -> list[FreeVariable]:
        """Lists the matrix, initially zero: `freeze` sets it afterwards."""
        return self.variables(size)

    def matrix(self, *values: Tensor) -> Tensor:
        """Returns the matrix."""
        return block_diagonal(values[0]) if self.heads > 1 else values[0]

    def blocks(self, *values: Tensor) -> Tensor:
        """Returns the blocks."""
        return values[0]

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Returns the matrix, or its blocks if it is zero outside of them."""
        check_all_finite("matrix", matrix)
        blocks = [
            real_form(part) if self.is_complex else part
            for part in only_blocks(matrix, self.heads)
        ]
        (variable,) = self.variables(len(matrix))
        return (np.reshape(blocks, variable.shape),)
