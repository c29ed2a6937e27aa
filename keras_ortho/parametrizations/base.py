"""What a parametrization is: a set of matrices, and free variables that reach it."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import keras
import numpy as np
from keras import ops

from keras_ortho import configs
from keras_ortho.backend import eagerly
from keras_ortho.backend.types import Tensor
from keras_ortho.parametrizations.complex_rows import complex_matrix
from keras_ortho.parametrizations.free import FreeInitializer, initializers_from_matrix
from keras_ortho.parametrizations.orthogonality import orthogonality_error


@dataclasses.dataclass(frozen=True)
class FreeVariable:
    """A variable behind a matrix, as a layer has to create it.

    Attributes:
        name: Its name among the weights of the layer.
        shape: Its shape.
        initializer: What makes its first value.
        trainable: Whether it is trained. Default: `True`.
        group: The optimizer that `keras_ortho.optimizers.paper_optimizer` gives it:
            `"recurrent"`, `"unitary"` or `"others"`. Default: `"recurrent"`.
        dtype: Its dtype, where that is not the layer's. Default: `None`.
        constraint: Its constraint. Default: `None`.
        exact: Whether it is held in the dtype that the matrix is made in, float32 at
            least, as what is rounded over and over must be. Default: `False`.
    """

    name: str
    shape: tuple[int, ...]
    initializer: Any
    trainable: bool = True
    group: str = "recurrent"
    dtype: str | None = None
    constraint: Any = None
    exact: bool = False

    def weight_arguments(self, dtype: str) -> dict[str, Any]:
        """Gives what a layer's `add_weight` takes of it.

        Args:
            dtype: The dtype that the matrix is made in.

        Returns:
            A dictionary of arguments, all but `group`.
        """
        names = ("name", "shape", "initializer", "trainable", "dtype", "constraint")
        arguments = {name: getattr(self, name) for name in names}
        return {**arguments, "dtype": dtype} if self.exact else arguments


def check_parametrization(parametrization: Any) -> "Parametrization":
    """Checks the argument of a layer.

    Args:
        parametrization: A parametrization, or as a config holds it.

    Returns:
        The parametrization.

    Raises:
        ValueError: If it is not one.

    Example:
    >>> check_parametrization(Parametrization()).takes
    ''
    """
    if isinstance(parametrization, dict):
        parametrization = keras.saving.deserialize_keras_object(parametrization)
    if not isinstance(parametrization, Parametrization):
        raise ValueError(
            "`parametrization` must be a `keras_ortho.parametrizations.Parametrization`"
            f". Received: {parametrization!r}"
        )
    return parametrization


class Parametrization:
    """A set of square matrices, reached from variables without a constraint.

    What a layer needs to know of how its matrix is made, it asks this object:
    `keras_ortho.OrthoRNN` and `keras_ortho.OrthoDense` take any, and each architecture
    of the package has its own. A subclass gives `variables` and `matrix`; `inverse`
    where there is one, and `distance` and `parts` where its matrices are not orthogonal
    as a whole. It is registered as every class that a saved model holds, and keeps its
    arguments as attributes of the same names.

    A matrix of complex units (`is_complex`) is made in its real form
    `[[Re W, Im W], [-Im W, Re W]]`, of shape `(2n, 2n)`, and given to `inverse` and
    `distance` as a complex one of shape `(n, n)`.

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
    # What an initializer of the free variables must make; `""` takes all.
    takes: str = ""
    # Whether the map is orthogonal, or unitary, and near zero reaches every such matrix
    # near the one of zero: see `Rebased`.
    full_at_zero: ClassVar[bool] = False
    # Number of blocks on the diagonal, beside which there are only zeros: see `Heads`.
    heads: int = 1
    # Number of parts of the inputs of a layer, each of which only its own head reads.
    input_heads: int = 1
    # Whether there is a base for `rebase` to move: see `Rebased`.
    has_base: bool = False

    def variables(self, size: int, initializer: Any = None) -> list[FreeVariable]:
        """Lists the variables behind a matrix.

        Args:
            size: Number of units `n`.
            initializer: Initializer of the free variables. Default: `None`, the
                paper's.

        Returns:
            The variables, in the order in which `matrix` takes their values.

        Raises:
            ValueError: If there is no such matrix of that order.
        """
        raise NotImplementedError(f"`{type(self).__name__}` must have `variables`")

    def check(self, size: int) -> None:
        """Checks that there are matrices of an order; by default there are of any.

        Args:
            size: Number of units `n`.

        Raises:
            ValueError: If there are none.
        """

    def matrix(self, *values: Tensor) -> Tensor:
        """Makes the matrix, for row vectors.

        Args:
            *values: The values of the variables, floating ones in float32 or float64.

        Returns:
            Tensor of shape `(n, n)`, of complex units `(2n, 2n)`, in their dtype.
        """
        raise NotImplementedError(f"`{type(self).__name__}` must have `matrix`")

    def blocks(self, *values: Tensor) -> Tensor:
        """Makes the blocks alone, where there are several.

        Args:
            *values: The values of the variables, as `matrix` takes them.

        Returns:
            Tensor of shape `(heads, n / heads, n / heads)`, of complex units
            `(heads, 2, n / heads, 2, n / heads)`.
        """
        raise NotImplementedError

    def inverse(self, matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Finds values of the variables that make a given matrix.

        Args:
            matrix: Array of shape `(n, n)`.

        Returns:
            The values, in the order of `variables`.

        Raises:
            ValueError: If the set does not hold the matrix, or the map has no inverse.
        """
        raise ValueError(
            f"`{type(self).__name__}` cannot be set to a given matrix: its map has no "
            f"inverse. Received: matrix of shape {tuple(np.shape(matrix))}"
        )

    def parts(self, *values: Tensor) -> dict[str, Tensor]:
        """Gives the matrix, or those of its blocks that are held orthogonal or unitary.

        Args:
            *values: The values of the variables.

        Returns:
            The parts by name, for `keras_ortho.diagnostics` to show how far each is
            from that. `""` is the whole matrix, and the only one by default.
        """
        return {"": self.matrix(*values)}

    def distance(self, matrix: np.ndarray) -> float:
        """Measures how far a matrix is from the set.

        Args:
            matrix: Array of shape `(n, n)`.

        Returns:
            By default `||W* W - I||_F`, the distance from the orthogonal or unitary
            matrices. 0 for one that the map makes, but for rounding.
        """
        return orthogonality_error(matrix)

    def sample(self, size: int, seed: int | None = None) -> np.ndarray:
        """Draws a matrix of the set.

        Args:
            size: Order `n`.
            seed: Seed of the random numbers. Default: `None`, another at each call.

        Returns:
            Array of shape `(n, n)`, real, or complex where the units are: by default
            that of standard normal variables, those that are not trained as they
            start, in float64 where the backend has it.
        """
        random = np.random.default_rng(seed)
        with eagerly():
            values = [
                ops.convert_to_tensor(random.normal(size=v.shape), dtype="float64")
                if v.trainable
                else keras.initializers.get(v.initializer)(
                    v.shape, dtype=v.dtype or "float64"
                )
                for v in self.variables(size)
            ]
            matrix = ops.convert_to_numpy(self.matrix(*values))
        return self._of_units(matrix, size)

    def begin_training_pass(self, variables: Sequence[Any], dtype: str) -> None:
        """Changes variables that are not trained, before a layer makes its matrix.

        A layer calls it once in each of its calls for training, within the compiled
        step. By default nothing changes.

        Args:
            variables: What a layer has created for `variables`.
            dtype: Dtype to make the matrix in.
        """

    def rebase(self, variables: Sequence[Any], dtype: str) -> None:
        """Moves the base of a `Rebased` to the matrix as it is.

        Args:
            variables: What a layer has created for `variables`.
            dtype: Dtype to make the matrix in.

        Raises:
            ValueError: If there is no base.
        """
        raise ValueError(
            "`rebase` needs a base, which `keras_ortho.parametrizations.Rebased` adds. "
            f"Received: {type(self).__name__}"
        )

    def start(
        self, name: str, initializer: Any, size: int, dtype: str
    ) -> list[FreeVariable]:
        """Lists the variables, started as an argument of a layer says.

        Args:
            name: Name of the argument.
            initializer: Its value, an initializer of the free variables or of a matrix,
                or `None` for the paper's.
            size: Number of units `n`.
            dtype: Dtype to make a matrix in.

        Returns:
            As `variables`.

        Raises:
            ValueError: If there is no such matrix of that order, or the initializer is
                an array of another shape. The initializers raise it, where the set
                does not hold the matrix.
        """
        if initializer is None or isinstance(initializer, FreeInitializer):
            return self.variables(size, initializer)
        # Any that draws no seed of its own takes the place of the paper's.
        variables = self.variables(size, keras.initializers.Zeros())
        initializers = initializers_from_matrix(
            name,
            initializer,
            (size, size),
            lambda matrix: self.inverse(self._of_units(matrix, size)),
            len(variables),
            dtype,
            # An array may be the real form of a complex matrix.
            check_shape=not self.is_complex,
        )
        return [
            dataclasses.replace(variable, initializer=initializer)
            for variable, initializer in zip(variables, initializers, strict=True)
        ]

    def values(self, variables: Iterable[Any], dtype: str) -> list[Tensor]:
        """Gives the values of variables as `matrix` takes them.

        Args:
            variables: What a layer has created for `variables`.
            dtype: Dtype to make the matrix in.

        Returns:
            The values, the floating ones in that dtype.
        """
        return [
            ops.cast(variable, dtype)
            if keras.backend.is_float_dtype(variable.dtype)
            else ops.convert_to_tensor(variable)
            for variable in variables
        ]

    def _of_units(self, matrix: np.ndarray, size: int) -> np.ndarray:
        return complex_matrix("matrix", matrix, size) if self.is_complex else matrix

    def get_config(self) -> dict[str, Any]:
        """Gives the arguments that make an equal parametrization."""
        names = configs.argument_names(type(self))
        missing = [name for name in names if not hasattr(self, name)]
        if missing:
            raise ValueError(
                f"`{type(self).__name__}` must keep its arguments as attributes of the "
                "same names, or have a `get_config` and a `from_config` of its own. "
                f"Received: one without {', '.join(missing)}"
            )
        return {
            name: keras.saving.serialize_keras_object(getattr(self, name))
            for name in names
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Parametrization":
        """Makes a parametrization from a config."""
        arguments = {
            name: keras.saving.deserialize_keras_object(value)
            for name, value in config.items()
        }
        return cls(**arguments)
