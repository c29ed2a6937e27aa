"""The base class of all recurrent cells: their arguments, their weights and their step.

A step is described by its weights and by the update that it computes from the products
with them. Both the step itself, which Keras's loop calls, and the recurrence over a
whole sequence are made from that description.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, TypedDict

import keras
import numpy as np
from keras import ops

from keras_ortho import activations, checks, configs, initializers
from keras_ortho.activations import complex_modrelu, modrelu, precise, smoothed_modrelu
from keras_ortho.backend.precision import wide_dtype
from keras_ortho.backend.types import Tensor
from keras_ortho.cells.each_head import (
    constrain_each_head,
    initialize_each_head,
    regularize_each_head,
)
from keras_ortho.keras_internals import (
    AutocastScope,
    DropoutRNNCell,
    call_is_training,
    current_call,
)
from keras_ortho.optimizers.groups import set_group
from keras_ortho.parametrizations.arithmetic import complex_matrix
from keras_ortho.parametrizations.base import FreeVariable, Parametrization
from keras_ortho.parametrizations.free_initializers import check_makes
from keras_ortho.parametrizations.stored_matrices import PlainMatrix
from keras_ortho.parametrized import ParametrizedMatrix
from keras_ortho.recurrence import Opaque, Plain, Pointwise, Weights, find
from keras_ortho.saved_shapes import check_saved

__all__ = ["RecurrentCell"]

# Weights that `build` makes after those of the recurrent matrix.
LATER_WEIGHTS = ("bias", "initial_state")


class CellArguments(TypedDict, total=False):
    """The keyword arguments of every cell, which `RecurrentCell` describes."""

    activation: Any
    use_bias: bool
    kernel_initializer: Any
    recurrent_initializer: Any
    bias_initializer: Any
    initial_state_initializer: Any
    kernel_regularizer: Any
    recurrent_regularizer: Any
    bias_regularizer: Any
    kernel_constraint: Any
    bias_constraint: Any
    trainable_initial_state: bool
    dropout: float
    recurrent_dropout: float
    seed: int | None
    activity_regularizer: Any
    trainable: bool
    dtype: Any
    autocast: bool
    name: str | None


@dataclasses.dataclass
class Sequence:
    """What stays the same at all steps of a sequence."""

    # `W` or its blocks, in the compute dtype.
    recurrent_kernel: Tensor
    # Dropout masks that multiply the inputs and the states before `W`.
    input_mask: Tensor | None
    state_mask: Tensor | None
    # The Keras call that reads the sequence.
    call: Any


@dataclasses.dataclass(frozen=True)
class KnownStep:
    """Description of a step that the recurrence takes, for one batch of sequences."""

    weights: Weights
    input_mask: Tensor | None
    # In a step that adds to the state, it affects only the products with `W`.
    state_mask: Tensor | None


class RecurrentCell(DropoutRNNCell, keras.layers.Layer):
    """Base class of cells `h' = activation(x U + h W)` with a parametrized `W`.

    All cells of the package take the arguments below, all but `units` by keyword only;
    `ENRNNCell` computes `units` itself. A subclass declares its own arguments in
    `__init__`, stores each as an attribute of the same name, so that it is saved, and
    passes the rest on, together with the `parametrization` that makes `W`: see
    `keras_ortho.parametrizations.Parametrization`. It leaves out of `argument_names`
    the arguments of its base class that it sets itself and does not accept.

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
        parametrization: How `W` is made, which a subclass passes. Default: `None`: the
            subclass overrides `build_recurrent` and `recurrent_matrix`.
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
        recurrent_initializer: Initializer for the free variables. If the map from them
            to `W` has an inverse, also any Keras initializer that returns a matrix,
            such as `"orthogonal"` or `"identity"`, or an array. Default: the paper's,
            or `None`, that of the parametrization.
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
    ...     def __init__(self, units, **kwargs):
    ...         kwargs.setdefault("recurrent_initializer", "henaff_skew")
    ...         super().__init__(units, ScaledCayley(0), **kwargs)
    >>> keras.layers.RNN(RotationCell(8))(np.ones((2, 3, 1))).shape
    (2, 8)
    """

    # Whether the units, and so the state, are complex.
    complex_state: bool = False
    # Whether `step` adds to the state. Recurrent dropout then masks only the product
    # with `W`: masking the state itself would erase the dropped units, and scale up the
    # others from step to step.
    residual: ClassVar[bool] = False
    # The groups, by name, of the variables of `build_recurrent` that do not belong to
    # `"recurrent"`: see `keras_ortho.optimizers.paper_optimizer`.
    optimizer_groups: ClassVar[Mapping[str, str]] = {}
    # The paper's settings that differ from the defaults: see `from_paper`.
    paper_arguments: ClassVar[Mapping[str, Any]] = {}
    # Whether `W` itself is a weight: see `keras_ortho.freeze`.
    frozen: bool = False

    # Created by `build`.
    kernel: keras.Variable
    bias: keras.Variable | None
    initial_state: keras.Variable
    # Number of inputs, or `None` until it is known.
    _features: int | None = None

    def __init__(
        self,
        units: int,
        parametrization: Parametrization | None = None,
        *,
        activation: Any = "modrelu",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = None,
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
        activation = _known_modrelu(activation, complex_state)
        if is_modrelu(activation) and not use_bias:
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
            activation if is_modrelu(activation) else activations.get(activation)
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
        # Several threads may call a model at once, for example in a server.
        self._thread = threading.local()

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
        """Creates the weights, for inputs of shape `(batch, m)`."""
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
        modulus = self.complex_state and is_modrelu(self.activation)
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
        """Creates `U`, or its blocks if each head reads its own part of the inputs."""
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
        """Creates an input kernel with the regularizer and constraint for kernels."""
        initializers.check_array("kernel_initializer", initializer, shape)
        return self.add_weight(
            shape=shape,
            name=name,
            initializer=initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )

    def add_bias(self, name: str, size: int, initializer: Any) -> keras.Variable | None:
        """Creates a bias, or `None`, with the regularizer and constraint for biases."""
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
        """Creates the free variables of the recurrent matrix."""
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
        """Returns the regularizer for a free variable: `recurrent_regularizer`."""
        return self.recurrent_regularizer

    def _built_matrix(self) -> ParametrizedMatrix:
        """Returns the matrix that `build_recurrent` has created."""
        checks.check_built(self)
        if self._matrix is None:
            raise NotImplementedError(
                f"The recurrent matrix of `{type(self).__name__}` does not come from a "
                "`parametrization`"
            )
        return self._matrix

    def free_values(self) -> list[Tensor]:
        """Returns the values of the free variables that the parametrization takes."""
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
        """Returns a list with the state before the first step."""
        if self.trainable_initial_state:
            checks.check_built(self)
        shape = (batch_size, self.state_size)
        if not self.trainable_initial_state:
            return [ops.zeros(shape, dtype=self.compute_dtype)]
        state = ops.cast(self.initial_state, self.compute_dtype)
        # A copy: with PyTorch, a stateful layer writes into the tensor returned here.
        return [ops.copy(ops.broadcast_to(state, shape))]

    @property
    def input_heads(self) -> int:
        """Number of parts of the inputs, each of which is read by one head only."""
        return 1 if self.parametrization is None else self.parametrization.input_heads

    @property
    def step_heads(self) -> int:
        """Number of heads in a step: one if the class has its own step or `W`."""
        if self.parametrization is None or not self.is_plain:
            return 1
        return self.parametrization.heads if self.inherits("recurrent_matrix") else 1

    def step_kernel(self) -> Tensor:
        """Computes `W`, or its blocks if it has heads, as `step` takes it."""
        if self.frozen:
            return self.recurrent_kernel
        if self.step_heads > 1:
            return self._built_matrix().make_blocks()
        return self.recurrent_matrix()

    def step_input_kernel(self) -> Tensor:
        """Returns `U`, or its blocks, in the form that `step` takes."""
        if self.input_heads == 1 or not self.complex_state:
            return self.kernel
        heads, features, reals = self.kernel.shape
        return ops.reshape(self.kernel, (heads, 1, features, 2, reals // 2))

    def call(
        self, inputs: Tensor, states: list[Tensor] | Tensor, training: bool = False
    ) -> tuple[Tensor, list[Tensor] | Tensor]:
        """Computes one step: its output and the new state, in a list if given so."""
        nested = isinstance(states, list | tuple)
        if states is None or (nested and len(states) != 1):
            raise ValueError(
                "`states` must be a tensor, or a list with one tensor. Received: "
                f"states={states}"
            )
        before = states[0] if nested else states
        checks.check_real_tensor("inputs", inputs)
        checks.check_real_tensor("states", before)
        state: Tensor = ops.cast(before, self.compute_dtype)
        inputs = ops.cast(inputs, self.compute_dtype)
        # Products with blocks, unlike those with a matrix, accept some wrong shapes.
        _check_reals("inputs", inputs, self._features)
        _check_reals("states", state, self.state_size)
        sequence = self._sequence_of(inputs, state)
        if sequence.input_mask is not None and call_is_training(training):
            inputs = inputs * sequence.input_mask
        masked = state
        if sequence.state_mask is not None and call_is_training(training):
            masked = state * sequence.state_mask
        with AutocastScope(self.compute_dtype):  # Also if Keras has not opened one.
            new = self.step(inputs, masked, sequence.recurrent_kernel)
            if self.residual and masked is not state:
                new = new + (state - masked)
            output = self.read_out(new)
        return output, [new] if nested else new

    def step(self, inputs: Tensor, state: Tensor, recurrent_kernel: Tensor) -> Tensor:
        """Computes the new state.

        Args:
            inputs: Tensor of shape `(batch, m)`.
            state: Tensor of shape `(batch, state_size)`.
            recurrent_kernel: `W` or its blocks in the compute dtype, as `step_kernel`
                returns them.

        Returns:
            Tensor of shape `(batch, state_size)`.
        """
        weights = self.step_weights(recurrent_kernel, Opaque(self.activate))
        return weights.after(weights.project(inputs), state, state)[0]

    def step_weights(self, recurrent_kernel: Tensor, activation: Pointwise) -> Weights:
        """Describes the step by its weights and its update.

        Args:
            recurrent_kernel: `W` or its blocks, as in `step`.
            activation: The activation.

        Returns:
            A `Weights`, which includes the update.
        """
        return Weights(
            (self.step_input_kernel(),),
            (recurrent_kernel,),
            (self.bias_or_zeros(self.bias, self.state_size),),
            Plain(activation),
        )

    def bias_or_zeros(self, bias: keras.Variable | None, size: int) -> Tensor:
        """Returns a bias, or zeros in its place, as `step_weights` takes it."""
        return ops.zeros((size,), dtype=self.compute_dtype) if bias is None else bias

    def read_out(self, states: Tensor) -> Tensor:
        """Returns the output for a state: its first `output_size` entries."""
        return states[..., : self.output_size]

    def activate(self, inputs: Tensor) -> Tensor:
        """Applies the bias and the activation to `x U + h W`."""
        if self.activation == "smoothed_modrelu":
            return smoothed_modrelu(inputs, self.bias)
        if self.activation == "modrelu":
            function = complex_modrelu if self.complex_state else modrelu
            return function(inputs, self.bias)
        if self.bias is not None:
            inputs = inputs + self.bias
        # A user-defined function may change the dtype.
        return ops.cast(precise(self.activation)(inputs), inputs.dtype)

    @property
    def is_plain(self) -> bool:
        """Whether the step is `f(x U + h W)`: no subclass overrides it."""
        return self.inherits("call", "step", "activate", "step_weights")

    def inherits(self, *names: str) -> bool:
        """Whether no subclass overrides any of these methods."""
        return all(getattr(type(self), x) is getattr(RecurrentCell, x) for x in names)

    def known_step(self, training: bool) -> KnownStep | None:
        """Describes the step, or returns `None` if only Keras's loop can run it."""
        activation = find(self.activation, self.complex_state)
        sequence = self._sequence
        is_known = self.inherits("call", "step", "activate")
        if not is_known or activation is None or sequence is None:
            return None
        weights = self.step_weights(sequence.recurrent_kernel, activation)
        return KnownStep(
            weights=dataclasses.replace(weights, adds=self.residual),
            input_mask=sequence.input_mask if training else None,
            state_mask=sequence.state_mask if training else None,
        )

    @property
    def _sequence(self) -> Sequence | None:
        """The sequence that the running thread reads."""
        return getattr(self._thread, "sequence", None)

    @_sequence.setter
    def _sequence(self, sequence: Sequence | None) -> None:
        self._thread.sequence = sequence

    def begin_sequence(self, inputs: Tensor) -> None:
        """Makes the recurrent kernel and the dropout mask of the inputs."""
        if call_is_training() and self._matrix is not None and self.trainable:
            self._matrix.begin_training_pass()
        self._sequence = self._new_sequence(inputs)

    def end_sequence(self) -> None:
        """Discards the recurrent kernel and the dropout masks."""
        self._sequence = None

    @contextlib.contextmanager
    def reading(self, step_input: Tensor) -> Iterator[None]:
        """Computes the recurrent kernel once for all calls of the cell in the context.

        Use it around your own loop over time, as `keras.layers.RNN` does with its loop.

        Args:
            step_input: Inputs of one step, of shape `(batch, m)`.

        Yields:
            Nothing.
        """
        self.begin_sequence(step_input)
        try:
            yield
        finally:
            self.end_sequence()

    # Keras's `RNN` calls these once before and after its loop over time.

    def get_dropout_mask(self, step_input: Tensor) -> Tensor | None:
        """Begins a sequence."""
        self.begin_sequence(step_input)
        return self._sequence and self._sequence.input_mask

    def get_recurrent_dropout_mask(self, step_input: Tensor) -> Tensor | None:
        """Makes the dropout mask of the states of the sequence."""
        mask = self._mask(step_input, self.recurrent_dropout)
        if self._sequence is not None:
            self._sequence.state_mask = mask
        return mask

    reset_dropout_mask = reset_recurrent_dropout_mask = end_sequence

    def _sequence_of(self, inputs: Tensor, state: Tensor) -> Sequence:
        """Returns the sequence that the Keras call has begun, or one for this step."""
        sequence = self._sequence
        # Only what the current call has prepared may be used: an exception in a
        # loop leaves the sequence of an earlier call behind.
        call = current_call(self)
        if sequence is None or call is None or sequence.call is not call:
            sequence = self._new_sequence(inputs)
            sequence.state_mask = self._mask(state, self.recurrent_dropout)
        return sequence

    def _new_sequence(self, inputs: Tensor) -> Sequence:
        return Sequence(
            recurrent_kernel=ops.cast(self.step_kernel(), self.compute_dtype),
            input_mask=self._mask(inputs, self.dropout),
            state_mask=None,
            call=current_call(self),
        )

    def _mask(self, like: Tensor, rate: float) -> Tensor | None:
        if rate == 0:
            return None
        return self._create_dropout_mask(ops.cast(like, self.compute_dtype), rate)

    def load_own_variables(self, store: Any) -> None:
        """Loads the weights, if they are not those of a cell with other arguments."""
        if self.built:
            check_saved(self, (None, self._features), store)
        super().load_own_variables(store)

    @classmethod
    def argument_names(cls) -> list[str]:
        """Lists the arguments that a config has: all that the class and its bases take.

        A class that passes one of them itself, as most do `parametrization`, overrides
        this method.
        """
        names = configs.argument_names(cls, RecurrentCell)
        return [name for name in names if name != "parametrization"]

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the cell."""
        own = {
            name: configs.serialize(getattr(self, name))
            for name in self.argument_names()
        }
        if self.complex_state and own.get("activation") == _EXACT:
            own["activation"] = _EXACT_IN_CONFIG
        if self.frozen:
            own["frozen"] = True
        return {**super().get_config(), **own}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "RecurrentCell":
        """Creates a cell from its config."""
        config, frozen = cls.arguments_of(config)
        cell = super().from_config(config)
        if frozen:
            cell.freeze()
        return cell

    @classmethod
    def arguments_of(cls, config: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """Returns the arguments in a config, and whether the cell was frozen."""
        arguments = {name: value for name, value in config.items() if name != "frozen"}
        if cls.complex_state and config.get("activation") == _EXACT:
            arguments["activation"] = _SMOOTHED
        return arguments, config.get("frozen", False)

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


# In the configs of cells with complex units, "modrelu" once meant the smoothed variant
# and always will, so that saved models keep their outputs.
_EXACT, _SMOOTHED, _EXACT_IN_CONFIG = "modrelu", "smoothed_modrelu", "exact_modrelu"


def is_modrelu(activation: Any) -> bool:
    """Whether the activation of a cell is modReLU, which includes the bias."""
    return isinstance(activation, str) and activation in (_EXACT, _SMOOTHED)


def _known_modrelu(activation: Any, complex_state: bool) -> Any:
    """Converts modReLU, but no other activation, to its name in a cell."""
    if activation is smoothed_modrelu:
        activation = _SMOOTHED
    elif activation in (modrelu, complex_modrelu, _EXACT_IN_CONFIG):
        activation = _EXACT
    if activation == _SMOOTHED and not complex_state:
        raise ValueError(
            f"'{_SMOOTHED}' is for complex units; for real units use '{_EXACT}'. "
            f"Received: activation={activation!r}"
        )
    return activation


def _check_reals(name: str, tensor: Tensor, size: int | None) -> None:
    """Checks that a tensor has the shape `(batch, size)`, as far as it is known."""
    shape = tuple(tensor.shape)
    # A vector or a single row is broadcast to the whole batch.
    if not 1 <= len(shape) <= 2 or (size is not None and shape[-1] not in (None, size)):
        raise ValueError(
            f"`{name}` must have the shape (batch, {size}). "
            f"Received: {name} of shape {shape}"
        )
