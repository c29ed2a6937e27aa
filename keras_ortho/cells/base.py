"""The base class of all recurrent cells, with their common arguments and weights."""

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import keras
import numpy as np
from keras import ops

from keras_ortho import activations, checks, configs, initializers
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.cells import arguments, modrelu_names
from keras_ortho.cells.each_head import (
    constrain_each_head,
    initialize_each_head,
    regularize_each_head,
)
from keras_ortho.cells.step import StepCell
from keras_ortho.optimizers.groups import set_group
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.complex_rows import complex_matrix
from keras_ortho.parametrizations.free import check_makes
from keras_ortho.parametrizations.plain_matrix import PlainMatrix
from keras_ortho.parametrized import ParametrizedMatrix
from keras_ortho.saved_shapes import check_saved

# Weights that `build` makes after those of the recurrent matrix.
LATER_WEIGHTS = ("bias", "initial_state")


class RecurrentCell(StepCell):
    """Base class of cells `h' = activation(x U + h W)` with a parametrized `W`.

    All cells of the package take the arguments below, all but `units` by keyword only;
    `ENRNNCell` sets `units` itself. A subclass declares its own arguments in
    `__init__`, lists the defaults that it changes in `default_arguments`, and passes
    the rest on, together with the `parametrization` that makes `W`: see
    `keras_ortho.parametrizations.Parametrization`. It lists in `given_arguments` the
    arguments of its base class that it sets itself and does not accept.

    A cell with gates creates their weights in `build_recurrent`. It either describes
    its step with `step_weights`, from which both the step and the recurrence over a
    whole sequence are made, or overrides `step`, which Keras's loop then runs.
    `keras_ortho.optimizers.paper_optimizer` trains all variables that
    `build_recurrent` creates by the rule for the recurrent matrix; the class attribute
    `optimizer_groups` maps the names of exceptions, such as the weights of gates, to
    `"others"`.

    A complex state of `n` units (`complex_state`) is stored as `2n` real numbers, the
    real parts first: `kernel` has the shape `(m, 2n)`, `W` is a real `(2n, 2n)` matrix,
    and modReLU acts on the modulus of each unit. Other activations act on each real
    number, and their bias has the shape `(2n,)`.

    Args:
        units: Number of units `n`, a positive integer.
        activation: `"modrelu"`, which adds the bias itself, or an activation that is
            applied to `x U + h W + b`: any of Keras's, or `"oplu"`, which sorts pairs
            of units and preserves every norm, see `keras_ortho.activations`. Complex
            units may also use `"smoothed_modrelu"`, the variant of the authors' code,
            which is smoothed at zero: its gradient is bounded, but it loses a little of
            the norm. Default: `"modrelu"`.
        use_bias: Whether to use a bias. Without one, modReLU is the identity, so
            `False` requires another activation. Default: `True`.
        kernel_initializer: Initializer for the input kernel `U`. Default:
            `"glorot_uniform"`. Several papers use `"small_uniform"`, uniform on
            (-0.01, 0.01): see `from_paper`.
        recurrent_initializer: Initializer for the free variables, by default the
            paper's. If the map from them to `W` has an inverse, also any Keras
            initializer that returns a matrix, such as `"orthogonal"` or `"identity"`,
            or an array.
        bias_initializer: Initializer for the bias. Default: `"zeros"`.
        initial_state_initializer: Initializer for the initial state, if it is
            trained. Default: `"small_uniform"`.
        kernel_regularizer: Regularizer for the input kernel. Default: `None`.
        recurrent_regularizer: Regularizer for the free variables. Default:
            `None`.
        bias_regularizer: Regularizer for the bias. Default: `None`.
        kernel_constraint: Constraint for the input kernel. Default: `None`.
        bias_constraint: Constraint for the bias. Default: `None`.
        trainable_initial_state: Whether the state before the first step is a
            trained vector, the same for every sequence, rather than zero. A
            stateful layer starts from it in the first batch and after
            `reset_state()`. A stateful `keras.layers.RNN` does not train it, and
            `reset_state()` sets the state to zero. Default: `False`.
        dropout: Fraction of the inputs to drop, in `[0, 1)`. Default: 0.
        recurrent_dropout: Fraction of the state to drop before it is multiplied
            by `W`, in `[0, 1)`. Default: 0. As everywhere in Keras, both dropout
            masks are the same at all time steps, and the remaining entries are
            scaled up; the norm of the state is then no longer preserved.
        seed: Seed for the dropout. Default: `None`.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: Tensor of shape `(batch, m)`.
        states: The state, a tensor of shape `(batch, n)` or a list with that tensor.
        training: Whether to apply dropout to the inputs and states.

    Weights:
        `kernel` of shape `(m, n)`; the free variables; `bias` of shape `(n,)`;
        `initial_state` of shape `(n,)`, if it is trained. With complex units, `kernel`
        and `initial_state` have `2n` instead of `n`.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    >>> from keras_ortho.parametrizations import ScaledCayley
    >>> class RotationCell(RecurrentCell):
    ...     default_arguments = {"recurrent_initializer": "henaff_skew"}
    ...
    ...     def __init__(self, units, **kwargs):
    ...         kwargs = {**self.default_arguments, **kwargs}
    ...         super().__init__(units, parametrization=ScaledCayley(0), **kwargs)
    >>> keras.layers.RNN(RotationCell(8))(np.ones((2, 3, 1))).shape
    (2, 8)
    """

    # Whether the units, and so the state, are complex.
    complex_state: bool = False
    # The groups, by name, of the variables of `build_recurrent` that do not belong to
    # `"recurrent"`: see `keras_ortho.optimizers.paper_optimizer`.
    optimizer_groups: ClassVar[Mapping[str, str]] = {}
    # Defaults that differ from those of the base class. A class's `__init__` merges
    # them into its keyword arguments. Inherited entries are added for each subclass.
    default_arguments: ClassVar[Mapping[str, Any]] = {}
    # Arguments of the base class that a class sets itself.
    given_arguments: ClassVar[frozenset[str]] = frozenset()
    # The paper's settings that differ from the defaults: see `from_paper`.
    paper_arguments: ClassVar[Mapping[str, Any]] = {}
    # Whether `W` itself is a weight: see `keras_ortho.freeze`.
    frozen: bool = False

    __signature__: ClassVar[inspect.Signature]
    # How `W` is made; `None` if the class makes it itself.
    parametrization: Parametrization | None
    # Created by `build`.
    kernel: keras.Variable
    bias: keras.Variable | None
    initial_state: keras.Variable

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.default_arguments = {
            **super(cls, cls).default_arguments,
            **cls.default_arguments,
        }
        inherited = [
            parameter.replace(
                default=cls.default_arguments.get(name, parameter.default)
            )
            for name, parameter in cls.__signature__.parameters.items()
            if name not in cls.given_arguments
        ]
        cls.__signature__ = inspect.Signature(inherited)
        if "__init__" in vars(cls):
            cls.__signature__ = arguments.join(configs.declared(cls), inherited)

    def __init__(
        self,
        units: int,
        *,
        parametrization: Parametrization | None = None,
        activation: Any = "modrelu",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any,
        bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable_initial_state: bool = False,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        complex_state = self.complex_state
        if parametrization is not None:
            complex_state = parametrization.is_complex
        units = checks.check_count("units", units)
        dropout = checks.check_fraction("dropout", dropout)
        recurrent_dropout = checks.check_fraction(
            "recurrent_dropout", recurrent_dropout
        )
        activation = modrelu_names.known_name(activation, complex_state)
        if modrelu_names.is_modrelu(activation) and not use_bias:
            raise ValueError(
                "modReLU without a bias is the identity: `use_bias=False` requires "
                f"another `activation`. Received: activation={activation!r}, "
                f"use_bias={use_bias}"
            )
        numbers = str(getattr(recurrent_initializer, "dtype", ""))
        if "complex" in numbers and not complex_state:
            raise ValueError(
                "`recurrent_initializer` must be real, as the state is. Received: an "
                f"array of {numbers}"
            )
        super().__init__(**kwargs)
        self.units = units
        self.complex_state = complex_state
        self.activation: Any = (
            activation
            if modrelu_names.is_modrelu(activation)
            else activations.get(activation)
        )
        self.use_bias = use_bias
        self.kernel_initializer: Any = initializers.get(kernel_initializer)
        self.recurrent_initializer: Any = initializers.get(recurrent_initializer)
        self.parametrization = parametrization
        if parametrization is not None:
            check_makes(
                "recurrent_initializer",
                self.recurrent_initializer,
                parametrization.takes,
            )
            parametrization.check(units)
        self.bias_initializer: Any = initializers.get(bias_initializer)
        self.initial_state_initializer: Any = initializers.get(
            initial_state_initializer
        )
        self.kernel_regularizer: Any = keras.regularizers.get(kernel_regularizer)
        self.recurrent_regularizer: Any = keras.regularizers.get(recurrent_regularizer)
        self.bias_regularizer: Any = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint: Any = keras.constraints.get(kernel_constraint)
        self.bias_constraint: Any = keras.constraints.get(bias_constraint)
        self.trainable_initial_state = trainable_initial_state
        self.dropout = dropout
        self.recurrent_dropout = recurrent_dropout
        self.seed = seed
        self.seed_generator: Any = keras.random.SeedGenerator(seed)
        self.state_size: int = 2 * units if complex_state else units
        self.output_size: int = self.state_size
        # Created by `build_recurrent`, unless a class overrides that.
        self._matrix: ParametrizedMatrix | None = None

    @classmethod
    def from_paper(cls, *args: Any, **kwargs: Any) -> Self:
        """Creates a cell with the settings of the paper's experiments.

        The defaults suit a model of your own that has a single optimizer. Where the
        settings of the paper, or of its authors' code, differ from them, the class
        lists these in `paper_arguments`.

        Args:
            *args: Positional arguments of the cell.
            **kwargs: Keyword arguments of the cell, which override the paper's.

        Returns:
            A new cell.

        Raises:
            ValueError: If an argument is out of range.

        Example:
        >>> cell = ScoRNNCell.from_paper(170, negative_ones=17)
        >>> type(cell.kernel_initializer).__name__
        'SmallUniform'
        """
        return cls(*args, **{**cls.paper_arguments, **kwargs})

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the weights.

        Args:
            input_shape: Shape of the inputs of one step, `(batch, m)`.

        Raises:
            ValueError: If the last axis is unknown, or an initializer is an array of
                the wrong shape. With `mix_inputs=False`, also if the last axis is not a
                multiple of the heads, or the class has its own step or matrix.
        """
        self._features = checks.check_last_axis(self, input_shape)
        self.kernel = self._make_kernel(self._features)
        others = {id(variable) for variable in self.weights}
        self.build_recurrent()
        if self._matrix is not None:
            others |= {id(variable) for variable in self._matrix.variables}
        for variable in self.weights:
            if id(variable) not in others:
                group = self.optimizer_groups.get(variable.name, "recurrent")
                set_group(variable, group)
        modulus = self.complex_state and modrelu_names.is_modrelu(self.activation)
        size = self.units if modulus else self.state_size
        self.bias = self.add_bias("bias", size, self.bias_initializer)
        if self.trainable_initial_state:
            initializers.check_array(
                "initial_state_initializer",
                self.initial_state_initializer,
                (self.state_size,),
            )
            self.initial_state = self.add_weight(
                shape=(self.state_size,),
                name="initial_state",
                initializer=self.initial_state_initializer,
            )

    def _make_kernel(self, features: int) -> keras.Variable:
        heads = self.input_heads
        if heads == 1:
            return self.add_input_kernel(
                "kernel", (features, self.state_size), self.kernel_initializer
            )
        if self.step_heads == 1:
            raise ValueError(
                "`mix_inputs=False` requires a cell with the step and the recurrent "
                f"matrix of `RecurrentCell`. Received: {type(self).__name__}, which "
                "defines its own"
            )
        if features % heads:
            raise ValueError(
                "With `mix_inputs=False`, the number of inputs must be a multiple of "
                f"`heads`. Received: inputs of shape (batch, {features}), heads={heads}"
            )
        shape = (heads, features // heads, self.state_size // heads)
        initializers.check_array("kernel_initializer", self.kernel_initializer, shape)
        return self.add_weight(
            shape=shape,
            name="kernel",
            initializer=initialize_each_head(self.kernel_initializer, heads),
            regularizer=regularize_each_head(self.kernel_regularizer),
            constraint=constrain_each_head(self.kernel_constraint),
        )

    def add_input_kernel(
        self, name: str, shape: tuple[int, ...], initializer: Any
    ) -> keras.Variable:
        """Creates an input kernel with the regularizer and constraint for kernels.

        Args:
            name: Name of the weight.
            shape: Shape of the weight, inputs first.
            initializer: Initializer for the weight.

        Returns:
            The weight.

        Raises:
            ValueError: If the initializer is an array of the wrong shape.
        """
        initializers.check_array("kernel_initializer", initializer, shape)
        return self.add_weight(
            shape=shape,
            name=name,
            initializer=initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )

    def add_bias(self, name: str, size: int, initializer: Any) -> keras.Variable | None:
        """Creates a bias with the regularizer and constraint for biases.

        Args:
            name: Name of the weight.
            size: Size of the weight.
            initializer: Initializer for the weight.

        Returns:
            The weight, or `None` if `use_bias=False`.

        Raises:
            ValueError: If the initializer is an array of the wrong shape.
        """
        if not self.use_bias:
            return None
        initializers.check_array(f"{name}_initializer", initializer, (size,))
        return self.add_weight(
            shape=(size,),
            name=name,
            initializer=initializer,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
        )

    def build_recurrent(self) -> None:
        """Creates the free variables of the recurrent matrix.

        Raises:
            NotImplementedError: If there is no `parametrization`.
            ValueError: If a variable has the name of another attribute of the cell.
        """
        if self.parametrization is None:
            raise NotImplementedError(
                f"`{type(self).__name__}` must have a `parametrization`, or override "
                "`build_recurrent` and `recurrent_matrix`"
            )
        self._matrix = ParametrizedMatrix(
            self,
            self.parametrization,
            "recurrent_initializer",
            self.units,
            lambda variable: None if self.frozen else self.regularizer_of(variable),
        )
        for weight in self._matrix.variables:
            known = getattr(self, weight.name, None) is not None
            if known or weight.name in LATER_WEIGHTS:
                raise ValueError(
                    f"`{type(self.parametrization).__name__}.variables` must give its "
                    "variables names that no attribute of the cell has: choose another,"
                    f" such as recurrent_{weight.name}. Received: {weight.name}"
                )
            setattr(self, weight.name, weight)

    def regularizer_of(self, variable: FreeVariable) -> Any:
        """Returns the regularizer for a free variable.

        Args:
            variable: The free variable.

        Returns:
            `recurrent_regularizer`, unless a subclass overrides this method.
        """
        return self.recurrent_regularizer

    def _built_matrix(self) -> ParametrizedMatrix:
        checks.check_built(self)
        if self._matrix is None:
            raise NotImplementedError(
                f"The recurrent matrix of `{type(self).__name__}` does not come from a "
                "`parametrization`"
            )
        return self._matrix

    def free_values(self) -> list[Tensor]:
        """Returns the values of the free variables that the parametrization takes.

        Returns:
            A list of tensors. Those of floating-point numbers have the dtype in which
            `W` is made.

        Raises:
            ValueError: If the cell is not built.
        """
        return self._built_matrix().values()

    def recurrent_matrix(self) -> Tensor:
        """Computes the recurrent matrix `W`, for row vectors, from its variables.

        Returns:
            Tensor of shape `(n, n)`, in the dtype of the variables and at least
            float32. With complex units, its real form `[[Re W, Im W], [-Im W, Re W]]`,
            of shape `(2n, 2n)`.

        Raises:
            ValueError: If the cell is not built.
        """
        return self._built_matrix().make()

    def set_recurrent_matrix(self, matrix: Tensor | np.ndarray) -> None:
        """Sets the free variables so that `W` equals a given matrix.

        Args:
            matrix: Tensor or array of shape `(n, n)`; with complex units real or
                complex, or of shape `(2n, 2n)` as returned by `recurrent_matrix`. It
                must be a matrix that the parametrization can make, up to `100 n` times
                the machine epsilon of its dtype; the nearest such matrix is used.

        Raises:
            ValueError: If the cell is not built, the matrix has the wrong shape, the
                parametrization cannot make it, or the map has no inverse. No weight has
                then changed.
        """
        own = self._built_matrix()
        matrix = ops.convert_to_numpy(matrix)
        if self.complex_state:
            matrix = complex_matrix("matrix", matrix, self.units)
        else:
            checks.check_shape("matrix", matrix, (self.units, self.units))
        own.set(matrix)

    def rebase(self) -> None:
        """Moves the base of a `Rebased` parametrization to `W`, which does not change.

        The free variables are zero afterwards.

        Raises:
            ValueError: If the cell is not built, or its parametrization has no base.
        """
        self._built_matrix().rebase()

    @property
    def factorization_dtype(self) -> str:
        """The dtype in which `W` is made: that of the variables, at least float32."""
        return wide_dtype(self.variable_dtype)

    def get_initial_state(self, batch_size: int | Tensor | None = None) -> list[Tensor]:
        """Returns the state before the first step.

        Args:
            batch_size: Number of sequences.

        Returns:
            A list with one tensor of shape `(batch_size, state_size)`.
        """
        if self.trainable_initial_state:
            checks.check_built(self)
        shape = (batch_size, self.state_size)
        if not self.trainable_initial_state:
            return [ops.zeros(shape, dtype=self.compute_dtype)]
        state = ops.cast(self.initial_state, self.compute_dtype)
        # A copy: with PyTorch, a stateful layer writes into the tensor returned here.
        return [ops.copy(ops.broadcast_to(state, shape))]

    @property
    def step_heads(self) -> int:
        """Number of heads in a step: one if the class makes `W` itself."""
        own = type(self).recurrent_matrix is not RecurrentCell.recurrent_matrix
        return 1 if own else super().step_heads

    def step_kernel(self) -> Tensor:
        """Computes `W` in the form that `step` takes.

        Returns:
            Tensor of shape `(n, n)`, as returned by `recurrent_matrix`. If the
            parametrization has heads and the class overrides neither the step nor
            `recurrent_matrix`, only the blocks, as its method `blocks` returns them.
        """
        if self.frozen:
            return self.recurrent_kernel
        if self.step_heads > 1:
            return self._built_matrix().make_blocks()
        return self.recurrent_matrix()

    def begin_training_pass(self) -> None:
        """Lets the parametrization update untrained variables, such as its base."""
        if self._matrix is not None and self.trainable:
            self._matrix.begin_training_pass()

    def load_own_variables(self, store: Any) -> None:
        """Loads the weights.

        Args:
            store: Saved arrays, keyed by their index as a string.

        Raises:
            ValueError: If the weights are those of a cell with other arguments.
        """
        if self.built:
            check_saved(self, (None, self._features), store)
        super().load_own_variables(store)

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the cell."""
        own = {
            name: configs.serialize(getattr(self, name))
            for name in arguments.names(type(self))
        }
        if "activation" in own:
            own["activation"] = modrelu_names.to_config(
                own["activation"], self.complex_state
            )
        if self.frozen:
            own["frozen"] = True
        return {**super().get_config(), **own}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "RecurrentCell":
        """Creates a cell from its config."""
        config = modrelu_names.from_config(config, cls.complex_state)
        frozen = config.get("frozen", False)
        cell = super().from_config({k: v for k, v in config.items() if k != "frozen"})
        if frozen:
            cell.freeze()
        return cell

    def freeze(self) -> None:
        """Makes `W` a weight, `recurrent_kernel`, in place of the free variables.

        Use it on a cell without weights. `keras_ortho.freeze` makes a frozen copy of a
        cell that has them.

        Raises:
            ValueError: If the cell is built.
        """
        if self.built:
            raise ValueError(
                "A cell can only be made a frozen one before it is built. Received: "
                f"{self.name} with built=True"
            )
        self.parametrization = PlainMatrix(
            self.complex_state, self.step_heads, self.input_heads
        )
        self.frozen = True


# The arguments that users pass: a subclass supplies the parametrization itself.
RecurrentCell.__signature__ = arguments.join(
    [p for p in configs.declared(RecurrentCell) if p.name != "parametrization"], []
)
