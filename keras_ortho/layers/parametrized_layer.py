"""Any Keras layer with weights that are made from free variables."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_ortho import configs, initializers
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check, check_built
from keras_ortho.keras_internals import (
    Substitution,
    call_is_training,
    layers_within,
    set_aside,
)
from keras_ortho.parametrizations.base import Parametrization, check_parametrization
from keras_ortho.parametrizations.free_initializers import check_makes
from keras_ortho.parametrizations.wrappers import in_heads
from keras_ortho.parametrized import ParametrizedMatrix

# The order in which Keras concatenates the matrices of the gates.
GATES: dict[type, tuple[str, ...]] = {
    keras.layers.LSTMCell: ("input", "forget", "cell", "output"),
    keras.layers.GRUCell: ("update", "reset", "candidate"),
}


def parametrize(
    layer: keras.layers.Layer,
    weight: str,
    parametrization: Any,
    *,
    gates: Sequence[str] | None = None,
    initializer: Any = None,
    **kwargs: Any,
) -> "ParametrizedLayer":
    """Parametrizes a weight of any Keras layer, for instance as an orthogonal matrix.

    The result takes the place of the layer in a model. In each forward pass it makes
    the weight once, outside of any loop over time steps, and calls the layer with it.
    The weight becomes a matrix as follows:

    - The `recurrent_kernel` of an LSTM, GRU or similar cell, of shape `(n, k n)`, has a
      square block for each of its `k` gates, with free variables of its own.
    - Of any other weight, the last axis is that of the outputs, and all others are
      flattened to one, so that a convolution has `window x inputs` rows. In
      `keras.layers.EinsumDense`, the inputs are the axes that are summed over.
    - A matrix that is not square consists of the first rows or columns of a square one
      of the order of its longer side. If that is orthogonal, they are orthonormal.

    A convolution with such a kernel is not an orthogonal map of its inputs, which
    overlapping windows contain several times. `keras_ortho.freeze` gives the layer
    back, with the matrix as its weight.

    Args:
        layer: A layer, such as `keras.layers.LSTM(128)`, `Bidirectional` around one,
            `RNN` around its cell, `Dense`, `Conv2D` or `MultiHeadAttention`. If it is
            built, the matrix begins as its weight, or as the orthogonal matrix nearest
            to it if the parametrization cannot make the weight.
        weight: Name of the weight, such as `"kernel"`, or the end of its path, such as
            `"query/kernel"`. All weights of that name are parametrized, each by itself.
        parametrization: A `keras_ortho.parametrizations.Parametrization` of real
            matrices.
        gates: Names of the gates whose blocks are parametrized, of `"input"`,
            `"forget"`, `"cell"` and `"output"` in an LSTM, `"update"`, `"reset"` and
            `"candidate"` in a GRU. Default: `None`, all.
        initializer: Initializer of the free variables; if the map has an inverse, also
            an array or any Keras initializer of the square matrix. Default: `None`, the
            weight of a built layer, otherwise that of the parametrization.
        **kwargs: As for `keras.layers.Layer`. The name and dtype are those of `layer`
            by default.

    Returns:
        A layer that is called as `layer` is, with tensors in the same order. Its
        weights are the free variables and the other weights of `layer`.
        A `kernel_regularizer` or `recurrent_regularizer` of the weight acts on the free
        variables.

    Raises:
        ValueError: If an argument is not of these; when the layer is built, if it has
            no such weight or gate, or the weight has a constraint.

    Example:
    >>> from keras_ortho.parametrizations import ScaledCayley
    >>> lstm = keras.layers.LSTM(8)
    >>> layer = parametrize(lstm, "recurrent_kernel", ScaledCayley(), gates=["cell"])
    >>> layer(np.zeros((2, 5, 3))).shape
    (2, 8)
    """
    return ParametrizedLayer(
        layer, weight, parametrization, gates, initializer, **kwargs
    )


@keras.saving.register_keras_serializable(package="keras_ortho")
class ParametrizedLayer(keras.layers.Wrapper):
    """A layer with parametrized weights: see `keras_ortho.parametrize`."""

    def __init__(
        self,
        layer: keras.layers.Layer,
        weight: str,
        parametrization: Any,
        gates: Sequence[str] | None = None,
        initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        fits = isinstance(layer, keras.layers.Layer)
        if hasattr(layer, "state_size"):  # A cell would make its matrix at each step.
            fits = isinstance(layer, keras.layers.RNN)
        wanted = "be a Keras layer, of a recurrent cell the layer around it"
        check(fits, "layer", wanted, repr(layer))
        named = isinstance(weight, str) and weight
        check(named, "weight", "be the name of a weight", repr(weight))
        kwargs = {"name": layer.name, "dtype": layer.dtype_policy, **kwargs}
        # The layer itself casts its inputs.
        super().__init__(layer, **{**kwargs, "autocast": False})
        self.weight = weight
        self.parametrization = check_parametrization(parametrization, real=True)
        self.gates = None if gates is None else list(gates)
        self.initializer: Any = initializers.get(initializer)
        check_makes("initializer", self.initializer, self.parametrization.takes)
        self.supports_masking = layer.supports_masking
        self._begins_as_is = layer.built and initializer is None
        self._made: list[_Made] = []

    def build(self, inputs_shape: Any, others_shape: Any = ()) -> None:
        """Builds the layer, and creates the free variables."""
        if not self.layer.built:
            self.layer.build(inputs_shape, *others_shape)
            self.layer.built = True
        known = {id(each) for each in self.layer.weights}
        owners = {  # The innermost layer comes last.
            id(each): (owner, each)
            for owner in layers_within(self.layer)
            for each in owner.weights
            if id(each) in known and f"/{each.path}".endswith(f"/{self.weight}")
        }
        paths = [each.path for each in self.layer.weights]
        wanted = f"be the name of a weight, or the end of its path, one of {paths}"
        check(owners, "weight", wanted, repr(self.weight))
        for number, each in enumerate(owners.values(), 1):
            prefix = f"{self.weight.replace('/', '_')}_{number}_"
            self._made.append(self._make(*each, prefix if len(owners) > 1 else ""))

    def _make(self, owner: Any, weight: Any, prefix: str) -> "_Made":
        """Creates the free variables of a weight."""
        fits = len(weight.shape) > 1 and weight.constraint is None
        received = f"{weight.path} of shape {weight.shape} with {weight.constraint}"
        check(fits, "weight", "have at least two axes and no constraint", received)
        rows, columns = weight.shape[0], weight.shape[-1]
        form: _Gates | _Rectangle
        if weight.name == "recurrent_kernel" and columns % rows == 0:
            form = _Gates.of(owner, weight, self.gates)
        else:
            received = f"gates={self.gates} for {weight.path}"
            wanted = "be `None` but for the recurrent kernel of a layer with gates"
            check(self.gates is None, "gates", wanted, received)
            form = _Rectangle.of(owner, weight)
        kind = in_heads(self.parametrization, len(form.places))
        start = self.initializer
        if self._begins_as_is:
            start = form.start(ops.convert_to_numpy(weight), self.parametrization)
            start = keras.initializers.Constant(start)
        set_aside(owner, weight)
        plain, penalty = None, weight.regularizer
        matrix = ParametrizedMatrix(
            self, kind, "initializer", start, form.order, lambda _: penalty, prefix
        )
        if form.others:
            plain = self.add_weight(
                name=prefix + weight.name,
                shape=(rows, rows * len(form.others)),
                initializer=lambda shape, dtype: form.rest(weight, dtype),
                regularizer=penalty,
                autocast=False,  # Cast with the matrix.
            )
        return _Made(weight, form, matrix, plain)

    def call(self, inputs: Any, *others: Any, **kwargs: Any) -> Any:
        """Makes the weights, and calls the layer with them."""
        if self.trainable and call_is_training():
            for made in self._made:
                made.matrix.begin_training_pass()
        with Substitution(self, self.made_weights()):
            return self.layer(inputs, *others, **kwargs)

    def made_weights(self) -> list[tuple[keras.Variable, Tensor]]:
        """Returns the variables of the weights of the layer, and their values."""
        return [(made.weight, made.value()) for made in self._made]

    def squares(self) -> dict[str, Tensor]:
        """Returns the parametrized square matrices by the paths of their weights."""
        within = f"{self.layer.name}/"
        return {
            f"{made.weight.path.rpartition(within)[2]}/{name}".removesuffix("/"): square
            for made in self._made
            for name, square in made.squares().items()
        }

    def distances(self) -> dict[str, float]:
        """Measures how far each square matrix is from the set of the parametrization.

        Returns:
            Dictionary by the paths of the weights within `layer`, followed by the gate,
            if any, as in `"lstm_cell/recurrent_kernel/forget"`.

        Raises:
            ValueError: If the layer is not built.
        """
        check_built(self)
        distance = self.parametrization.distance
        return {
            name: distance(ops.convert_to_numpy(square))
            for name, square in self.squares().items()
        }

    def rebase(self) -> None:
        """Moves the bases of a `Rebased` parametrization, with the same weights.

        Raises:
            ValueError: If the layer is not built, or its parametrization has no base.
        """
        check_built(self)
        for made in self._made:
            made.matrix.rebase()

    @property
    def variables(self) -> list[Any]:
        """All variables, without the weights that the free variables make."""
        return self._without_made(super().variables)

    @property
    def weights(self) -> list[Any]:
        """All weights, without those that the free variables make."""
        return self._without_made(super().weights)

    def _without_made(self, variables: list[Any]) -> list[Any]:
        made = {id(each.weight) for each in self._made}
        return [each for each in variables if id(each) not in made]

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """Returns the mask of the outputs."""
        return self.layer.compute_mask(inputs, previous_mask)

    def compute_output_shape(self, *shapes: Any) -> Any:
        """Returns the shape of the outputs."""
        return self.layer.compute_output_shape(*shapes)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the shape and dtype of the outputs."""
        return self.layer.compute_output_spec(*args, **kwargs)

    def get_build_config(self) -> Any:
        """Returns what the layer itself is built from."""
        return self.layer.get_build_config()

    def build_from_config(self, config: dict[str, Any]) -> None:
        """Builds the layer."""
        self.layer.build_from_config(config)
        self.build(None)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that recreate the layer."""
        names = "weight", "parametrization", "gates", "initializer"
        config = super().get_config()
        # A layer that is built before it is wrapped begins as it is.
        config["layer"].pop("build_config", None)
        return config | {name: configs.serialize(getattr(self, name)) for name in names}


def made_within(model: keras.layers.Layer) -> dict[int, Tensor]:
    """Returns the values of all parametrized weights by the ids of their variables."""
    return {
        id(weight): value
        for layer in layers_within(model)
        if isinstance(layer, ParametrizedLayer)
        for weight, value in layer.made_weights()
    }


@dataclass(frozen=True)
class _Made:
    """A weight of a layer, and what makes it: `plain` has the other gates."""

    weight: Any
    form: "_Gates | _Rectangle"
    matrix: ParametrizedMatrix
    plain: Any

    def value(self) -> Tensor:
        """Makes the weight."""
        return self.form.weight(list(self.squares().values()), self.plain)

    def squares(self) -> dict[str, Tensor]:
        """Makes the square matrices, by the names of their gates."""
        names = list(self.form.places)
        if len(names) == 1:
            return {names[0]: self.matrix.make()}
        blocks = ops.unstack(self.matrix.make_blocks(), len(names))
        return dict(zip(names, blocks, strict=True))


@dataclass(frozen=True)
class _Gates:
    """Square blocks side by side: those at `places`, by name, are parametrized."""

    order: int
    places: dict[str, int]
    others: list[int]

    @classmethod
    def of(cls, owner: Any, weight: Any, chosen: list[str] | None) -> "_Gates":
        """Finds the chosen gates of a layer or, by default, all."""
        size, count = weight.shape[0], weight.shape[1] // weight.shape[0]
        named = (names for kind, names in GATES.items() if isinstance(owner, kind))
        names = next(named, ("",) if count == 1 else tuple(map(str, range(count))))
        chosen = list(names) if chosen is None else chosen
        known = chosen and set(chosen) <= set(names)
        check(known, "gates", f"be of {list(names)}", f"gates={chosen}")
        places = {name: i for i, name in enumerate(names) if name in chosen}
        others = [i for i in range(count) if i not in places.values()]
        return cls(size * len(places), places, others)

    def weight(self, made: list[Tensor], plain: Any) -> Tensor:
        parts = dict(zip(self.places.values(), made, strict=True))
        if self.others:
            rest = ops.split(ops.cast(plain, made[0].dtype), len(self.others), axis=1)
            parts |= zip(self.others, rest, strict=True)
        return ops.concatenate([parts[i] for i in sorted(parts)], axis=1)

    def rest(self, weight: Any, dtype: Any) -> Tensor:
        number = len(self.places) + len(self.others)
        blocks = ops.split(ops.cast(weight, dtype), number, axis=1)
        return ops.concatenate([blocks[i] for i in self.others], axis=1)

    def start(self, weight: np.ndarray, kind: Parametrization) -> np.ndarray:
        blocks = np.split(weight, len(self.places) + len(self.others), axis=1)
        chosen = [_possible(blocks[i], kind) for i in self.places.values()]
        rows = np.eye(len(chosen), dtype=weight.dtype)
        return np.vstack([np.kron(*each) for each in zip(rows, chosen, strict=True)])


@dataclass(frozen=True)
class _Rectangle:
    """The first rows or columns of a square matrix, in the shape of a weight."""

    order: int
    shape: tuple[int, ...]
    axes: list[int]
    sides: tuple[int, int]
    places = ("",)
    others = ()

    @classmethod
    def of(cls, owner: Any, weight: Any) -> "_Rectangle":
        """Flattens the axes of the inputs and those of the outputs."""
        shape = tuple(weight.shape)
        inputs = list(range(len(shape) - 1))
        if isinstance(owner, keras.layers.EinsumDense) and weight.name == "kernel":
            names, output = owner.equation.partition(",")[2].split("->")
            inputs = [i for i, name in enumerate(names) if name not in output]
        rows = math.prod(shape[axis] for axis in inputs)
        axes = inputs + [i for i in range(len(shape)) if i not in inputs]
        sides = rows, math.prod(shape) // rows
        return cls(max(sides), shape, axes, sides)

    def weight(self, made: list[Tensor], plain: Any) -> Tensor:
        rows, columns = self.sides
        shape = [self.shape[axis] for axis in self.axes]
        whole = ops.reshape(made[0][:rows, :columns], shape)
        return ops.transpose(whole, np.argsort(self.axes).tolist())

    def start(self, weight: np.ndarray, kind: Parametrization) -> np.ndarray:
        return _possible(weight.transpose(self.axes).reshape(self.sides), kind)


def _possible(matrix: np.ndarray, kind: Parametrization) -> np.ndarray:
    """Returns a square matrix of the set: the given one, or else an orthogonal one.

    Of a matrix that is not square, it has the first rows or columns.
    """
    rows, columns = matrix.shape
    if rows < columns:
        return _possible(matrix.T, kind).T
    left, _, right = np.linalg.svd(matrix.astype("float64"))
    if rows == columns:
        for found in (matrix, left @ right):
            with suppress(ValueError):  # It may not be of the set.
                kind.inverse(found)
                return found
    # Not all sets reach a determinant of -1. The last column is that of the smallest
    # singular value, or not among the columns of the matrix.
    if rows == columns or np.linalg.det(left) * np.linalg.det(right) < 0:
        left[:, -1] *= -1
    left[:, :columns] = left[:, :columns] @ right
    return left
