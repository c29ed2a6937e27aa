"""The base class of all cells: their arguments, weights and step.

The step, which Keras's loop calls, and the recurrence over a whole sequence are made
from one description, the weights of a step and its update.
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
from keras_ortho.backend.types import Tensor
from keras_ortho.checks import check_fraction
from keras_ortho.keras_internals import (
    AutocastScope,
    DropoutRNNCell,
    call_is_training,
    current_call,
)
from keras_ortho.optimizers.groups import set_group
from keras_ortho.parametrizations.arithmetic import complex_matrix
from keras_ortho.parametrizations.base import FreeVariable, Parametrization, PlainMatrix
from keras_ortho.parametrizations.free_initializers import check_makes, independents
from keras_ortho.parametrized import ParametrizedMatrix
from keras_ortho.recurrence import Opaque, Plain, Pointwise, Weights, find

__all__ = ["RecurrentCell"]


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


# What several papers, or their authors' code, have and the defaults have not: inputs
# that begin small, and modReLU that is smoothed at zero.
SMALL_KERNEL: Mapping[str, Any] = {"kernel_initializer": "small_uniform"}
SMOOTHED: Mapping[str, Any] = {"activation": "smoothed_modrelu"}


@dataclasses.dataclass
class Sequence:
    """What stays the same at all steps of a sequence, which a Keras call reads."""

    recurrent_kernel: Tensor
    # Dropout masks that multiply the inputs and the states before `W`.
    input_mask: Tensor | None
    state_mask: Tensor | None
    call: Any


class _Thread(threading.local):
    """The sequence that a thread reads: a server may call a model in several."""

    sequence: Sequence | None = None


class RecurrentCell(DropoutRNNCell, keras.layers.Layer):
    """Base class of cells `h' = activation(x U + h W)` with a parametrized `W`.

    All cells of the package take these arguments, all but `units` by keyword only. A
    subclass stores its own as attributes of the same names, so that they are saved, and
    passes on the others and the `parametrization`; `argument_names` lists what it
    accepts.

    A cell with gates creates their weights in `build_recurrent`, and describes its step
    with `step_weights`, or overrides `step`, which Keras's loop then runs.
    `keras_ortho.optimizers.paper_optimizer` trains these weights by the rule for the
    recurrent matrix, unless `optimizer_groups` maps their names to `"others"`.

    A complex state of `n` units is stored as `2n` real numbers, the real parts first:
    `kernel` has the shape `(m, 2n)`, `W` is a real `(2n, 2n)` matrix, and modReLU acts
    on the modulus of each unit. Other activations act on each real number, and their
    bias has the shape `(2n,)`.

    Args:
        units: Number of units `n`, a positive integer.
        parametrization: How `W` is made, a `keras_ortho.parametrizations`. Default:
            `None`: the subclass overrides `build_recurrent` and `recurrent_matrix`.
        activation: `"modrelu"`, which adds the bias itself, or an activation of
            `x U + h W + b`: any of Keras's, or `"oplu"`, which sorts pairs of units and
            preserves every norm. Complex units also take `"smoothed_modrelu"`, the
            authors' variant, whose gradient is bounded at zero, but which loses a
            little of the norm. Default: `"modrelu"`.
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
        kernel_regularizer, recurrent_regularizer, bias_regularizer: Regularizers for
            the input kernel, the free variables and the bias. Default: `None`.
        kernel_constraint, bias_constraint: Constraints for the input kernel and the
            bias. Default: `None`.
        trainable_initial_state: Whether the state before the first step is a trained
            vector, the same for every sequence, rather than zero. A stateful layer
            starts from it after `reset_state()`; a stateful `keras.layers.RNN` does not
            train it, and resets to zero. Default: `False`.
        dropout: Fraction of the inputs to drop, in `[0, 1)`. Default: 0.
        recurrent_dropout: Fraction of the state to drop before it is multiplied by `W`,
            in `[0, 1)`. As in Keras, both masks are the same at all time steps, and the
            other entries are scaled up: the norm is not preserved. Default: 0.
        seed: Seed for the dropout. Default: `None`.
        **kwargs: Arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: Tensor of shape `(batch, m)`.
        states: The state, a tensor of shape `(batch, n)` or a list with that tensor.
        training: Whether to apply dropout to the inputs and states.

    Weights:
        `kernel` of shape `(m, n)`; the free variables; `bias` of shape `(n,)`;
        `initial_state` of shape `(n,)`, if it is trained.

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
    # Whether the parametrization is an argument, which a config then has.
    takes_parametrization: ClassVar[bool] = False
    # Whether `step` adds to the state. Recurrent dropout then masks only the product
    # with `W`: masking the state itself would erase the dropped units, and scale up the
    # others from step to step.
    residual: ClassVar[bool] = False
    # The groups, by name, of the variables of `build_recurrent` that do not belong to
    # `"recurrent"`: see `keras_ortho.optimizers.paper_optimizer`.
    optimizer_groups: ClassVar[Mapping[str, str]] = {}
    # The paper's settings that differ from the defaults: see `from_paper`.
    paper_arguments: ClassVar[Mapping[str, Any]] = {}

    # Created by `build`.
    kernel: keras.Variable
    bias: Any  # `None` without one.
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
        frozen: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.units = checks.check_count("units", units)
        if parametrization is not None:
            self.complex_state = parametrization.is_complex
            parametrization.check(self.units)
        self.activation = _known_activation(activation, self.complex_state)
        if is_modrelu(self.activation) and not use_bias:
            raise ValueError(
                "modReLU without a bias is the identity: `use_bias=False` requires "
                f"another `activation`. Received: activation={activation!r}, "
                f"use_bias={use_bias}"
            )
        self.use_bias = use_bias
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.recurrent_initializer = initializers.get(recurrent_initializer)
        takes = "" if parametrization is None else parametrization.takes
        check_makes("recurrent_initializer", self.recurrent_initializer, takes)
        self.bias_initializer = initializers.get(bias_initializer)
        self.initial_state_initializer = initializers.get(initial_state_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = keras.regularizers.get(recurrent_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.trainable_initial_state = trainable_initial_state
        self.dropout = check_fraction("dropout", dropout)
        self.recurrent_dropout = check_fraction("recurrent_dropout", recurrent_dropout)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.state_size: int = 2 * self.units if self.complex_state else self.units
        self.output_size: int = self.state_size
        self.parametrization: Any = parametrization
        # Whether `W` itself is a weight: see `keras_ortho.freeze`.
        self.frozen = frozen
        if frozen:
            self.parametrization = PlainMatrix(
                self.complex_state, self.step_heads, self.input_heads
            )
        # Created by `build_recurrent`, unless a class overrides that.
        self._matrix: Any = None
        self._thread = _Thread()

    @classmethod
    def from_paper(cls, *args: Any, **kwargs: Any) -> Self:
        """Creates a cell with the settings of the paper's experiments.

        The defaults suit a model of your own that has one optimizer. `paper_arguments`
        lists where the paper, or its authors' code, differs from them.

        Args:
            *args: Positional arguments of the cell.
            **kwargs: Its keyword arguments, which override the paper's.

        Example:
        >>> cell = ScoRNNCell.from_paper(170, negative_ones=17)
        >>> type(cell.kernel_initializer).__name__
        'SmallUniform'
        """
        return cls(*args, **{**cls.paper_arguments, **kwargs})

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the weights, for inputs of shape `(batch, m)`."""
        self._features = checks.check_last_axis(self, input_shape)
        self.kernel = self.add_input_kernel(
            "kernel", self._kernel_shape(self._features), self.kernel_initializer
        )
        before = {id(variable) for variable in self.weights}
        self.build_recurrent()
        for variable in self.weights:
            if id(variable) not in before and not hasattr(variable, "optimizer_group"):
                group = self.optimizer_groups.get(variable.name, "recurrent")
                set_group(variable, group)
        modulus = self.complex_state and is_modrelu(self.activation)
        size = self.units if modulus else self.state_size
        self.bias = self.add_bias("bias", size, self.bias_initializer)
        if self.trainable_initial_state:
            shape, initializer = (self.state_size,), self.initial_state_initializer
            initializers.check_array("initial_state_initializer", initializer, shape)
            self.initial_state = self.add_weight(
                shape=shape, name="initial_state", initializer=initializer
            )

    def _kernel_shape(self, features: int) -> tuple[int, ...]:
        """Returns the shape of `U`, or of its blocks if each head has own inputs."""
        heads = self.input_heads
        if heads == 1:
            return features, self.state_size
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
        return heads, features // heads, self.state_size // heads

    def add_input_kernel(
        self, name: str, shape: tuple[int, ...], initializer: Any
    ) -> keras.Variable:
        """Creates an input kernel with the regularizer and constraint for kernels."""
        initializers.check_array("kernel_initializer", initializer, shape)
        regularizer, constraint = self.kernel_regularizer, self.kernel_constraint
        if len(shape) == 3:
            initializer, regularizer, constraint = _of_each_head(
                shape[0], initializer, regularizer, constraint
            )
        return self.add_weight(
            shape=shape,
            name=name,
            initializer=initializer,
            regularizer=regularizer,
            constraint=constraint,
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
        self._matrix = ParametrizedMatrix(
            self,
            self.parametrization,
            "recurrent_initializer",
            self.recurrent_initializer,
            self.units,
            lambda variable: None if self.frozen else self.regularizer_of(variable),
        )
        for weight in self._matrix.variables:
            if getattr(self, weight.name, None) is not None:
                raise ValueError(
                    f"`{type(self.parametrization).__name__}.variables` must have names"
                    f" that are no attributes of the cell. Received: {weight.name}"
                )
            setattr(self, weight.name, weight)

    def regularizer_of(self, variable: FreeVariable) -> Any:
        """Returns the regularizer for a free variable: `recurrent_regularizer`."""
        return self.recurrent_regularizer

    def _built_matrix(self) -> ParametrizedMatrix:
        checks.check_built(self)
        return self._matrix

    def free_values(self) -> list[Tensor]:
        """Returns the values of the free variables that the parametrization takes."""
        return self._built_matrix().values()

    def recurrent_matrix(self) -> Tensor:
        """Computes the recurrent matrix `W`, for row vectors, from its variables.

        Returns:
            Tensor of shape `(n, n)` in at least float32, or with complex units the real
            form `[[Re W, Im W], [-Im W, Re W]]`, of shape `(2n, 2n)`.
        """
        return self._built_matrix().make()

    def set_recurrent_matrix(self, matrix: Tensor | np.ndarray) -> None:
        """Sets the free variables so that `W` equals a given matrix.

        Args:
            matrix: Tensor or array of shape `(n, n)`; with complex units real or
                complex, or as `recurrent_matrix` returns it. The parametrization must
                be able to make it, up to `100 n` times the machine epsilon of its
                dtype; the nearest matrix that it makes is used.

        Raises:
            ValueError: If the cell is not built, or the parametrization cannot make the
                matrix, or has no inverse. No weight has then changed.
        """
        own = self._built_matrix()
        matrix = ops.convert_to_numpy(matrix)
        if self.complex_state:
            matrix = complex_matrix("matrix", matrix, self.units)
        else:
            checks.check_shape("matrix", matrix, (self.units, self.units))
        own.set(matrix)

    def rebase(self) -> None:
        """Moves the base of a `Rebased` parametrization to `W`, with zero variables."""
        self._built_matrix().rebase()

    def get_initial_state(self, batch_size: int | Tensor | None = None) -> list[Tensor]:
        """Returns a list with the state before the first step."""
        shape = (batch_size, self.state_size)
        if not self.trainable_initial_state:
            return [ops.zeros(shape, dtype=self.compute_dtype)]
        checks.check_built(self)
        state = ops.cast(self.initial_state, self.compute_dtype)
        # A copy: with PyTorch, a stateful layer writes into the tensor returned here.
        return [ops.copy(ops.broadcast_to(state, shape))]

    @property
    def input_heads(self) -> int:
        """Number of parts of the inputs, each of which is read by one head only."""
        return getattr(self.parametrization, "input_heads", 1)

    @property
    def step_heads(self) -> int:
        """Number of heads in a step: one if the class has its own step or `W`."""
        has_heads = self.is_plain and self.inherits("recurrent_matrix")
        return getattr(self.parametrization, "heads", 1) if has_heads else 1

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
        (before,) = states if nested else (states,)
        state = self._checked("states", before, self.state_size)
        inputs = self._checked("inputs", inputs, self._features)
        sequence, masked = self._sequence_of(inputs), state
        if sequence.input_mask is not None and call_is_training(training):
            inputs = inputs * sequence.input_mask
        if sequence.state_mask is not None and call_is_training(training):
            masked = state * sequence.state_mask
        with AutocastScope(self.compute_dtype):  # Also if Keras has not opened one.
            new = self.step(inputs, masked, sequence.recurrent_kernel)
            if self.residual and masked is not state:
                new = new + (state - masked)
            output = self.read_out(new)
        return output, [new] if nested else new

    def _checked(self, name: str, tensor: Tensor, size: int | None) -> Tensor:
        """Checks and casts a tensor of shape `(batch, size)`."""
        checks.check_real_tensor(name, tensor)
        shape = tuple(tensor.shape)
        # Products with blocks, unlike those with a matrix, accept some wrong shapes.
        if len(shape) != 2 or shape[1] not in (None, size):
            raise ValueError(
                f"`{name}` must have the shape (batch, {size}). "
                f"Received: {name} of shape {shape}"
            )
        return ops.cast(tensor, self.compute_dtype)

    def step(self, inputs: Tensor, state: Tensor, recurrent_kernel: Tensor) -> Tensor:
        """Computes the new state.

        Args:
            inputs: Tensor of shape `(batch, m)`.
            state: Tensor of shape `(batch, state_size)`, as that returned.
            recurrent_kernel: What `step_kernel` returns.
        """
        weights = self.step_weights(recurrent_kernel, Opaque(self.activate))
        return weights.after(weights.project(inputs), state, state)[0]

    def step_weights(self, recurrent_kernel: Tensor, activation: Pointwise) -> Weights:
        """Describes the step, with `W` or its blocks, by its weights and its update."""
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

    def known_step(
        self, training: bool
    ) -> tuple[Weights | None, Tensor | None, Tensor | None]:
        """Describes the step, if not only Keras's loop can run it, and its dropout."""
        activation = find(self.activation, self.complex_state)
        sequence = self._thread.sequence
        is_known = self.inherits("call", "step", "activate")
        if not is_known or activation is None or sequence is None:
            return None, None, None
        weights = self.step_weights(sequence.recurrent_kernel, activation)
        weights = dataclasses.replace(weights, adds=self.residual)
        masks = (sequence.input_mask, sequence.state_mask) if training else (None, None)
        return weights, *masks

    def begin_sequence(self, inputs: Tensor) -> None:
        """Makes the recurrent kernel and the dropout masks of a sequence."""
        if call_is_training() and self._matrix is not None and self.trainable:
            self._matrix.begin_training_pass()
        self._thread.sequence = self._new_sequence(inputs)

    def end_sequence(self) -> None:
        """Discards the recurrent kernel and the dropout masks."""
        self._thread.sequence = None

    @contextlib.contextmanager
    def reading(self, step_input: Tensor) -> Iterator[None]:
        """Computes the recurrent kernel once for all calls of the cell in the context.

        Use it around your own loop over time, with the inputs of one step, of shape
        `(batch, m)`.
        """
        self.begin_sequence(step_input)
        try:
            yield
        finally:
            self.end_sequence()

    # Keras's `RNN` calls these once before and after its loop over time.

    def get_dropout_mask(self, step_input: Tensor) -> None:
        """Begins a sequence."""
        self.begin_sequence(step_input)

    def get_recurrent_dropout_mask(self, step_input: Tensor) -> None:
        """Does nothing: the sequence has begun."""

    reset_dropout_mask = reset_recurrent_dropout_mask = end_sequence

    def _sequence_of(self, inputs: Tensor) -> Sequence:
        """Returns the sequence that the Keras call has begun, or one for this step."""
        sequence = self._thread.sequence
        # Only what the current call has prepared may be used: an exception in a
        # loop leaves the sequence of an earlier call behind.
        call = current_call(self)
        if sequence is None or call is None or sequence.call is not call:
            sequence = self._new_sequence(inputs)
        return sequence

    def _new_sequence(self, inputs: Tensor) -> Sequence:
        state = ops.zeros((ops.shape(inputs)[0], self.state_size), self.compute_dtype)
        return Sequence(
            recurrent_kernel=ops.cast(self.step_kernel(), self.compute_dtype),
            input_mask=self._mask(inputs, self.dropout),
            state_mask=self._mask(state, self.recurrent_dropout),
            call=current_call(self),
        )

    def _mask(self, like: Tensor, rate: float) -> Tensor | None:
        if rate == 0:
            return None
        return self._create_dropout_mask(ops.cast(like, self.compute_dtype), rate)

    @classmethod
    def argument_names(cls) -> list[str]:
        """Lists the arguments that a config has: all that the class and its bases take.

        A class that passes one of them itself overrides this method.
        """
        names = configs.argument_names(cls, RecurrentCell)
        hidden = ["frozen"] + ["parametrization"] * (not cls.takes_parametrization)
        return [name for name in names if name not in hidden]

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the cell."""
        names = self.argument_names()
        own = {name: configs.serialize(getattr(self, name)) for name in names}
        if self.complex_state and own.get("activation") == "modrelu":
            own["activation"] = EXACT_IN_CONFIG
        if self.frozen:
            own["frozen"] = True
        return {**super().get_config(), **own}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "RecurrentCell":
        """Creates a cell from its config."""
        return super().from_config(cls.arguments_of(config))

    @classmethod
    def arguments_of(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments in the config of a cell, or of a layer with it."""
        if cls.complex_state and config.get("activation") == "modrelu":
            return {**config, "activation": "smoothed_modrelu"}
        return config


# In the configs of cells with complex units, "modrelu" once meant the smoothed variant
# and always will, so that saved models keep their outputs.
EXACT_IN_CONFIG = "exact_modrelu"


def is_modrelu(activation: Any) -> bool:
    """Whether the activation of a cell is modReLU, which includes the bias."""
    return isinstance(activation, str) and activation.endswith("modrelu")


def _known_activation(activation: Any, complex_state: bool) -> Any:
    """Returns the name of modReLU in a cell, or the function of another activation."""
    if activation in (modrelu, complex_modrelu, "modrelu", EXACT_IN_CONFIG):
        return "modrelu"
    if activation in (smoothed_modrelu, "smoothed_modrelu"):
        if not complex_state:
            raise ValueError(
                "'smoothed_modrelu' is for complex units; for real units use 'modrelu'."
                f" Received: activation={activation!r}"
            )
        return "smoothed_modrelu"
    return activations.get(activation)


def _of_each_head(
    heads: int, initializer: Any, regularizer: Any, constraint: Any
) -> tuple[Any, Any, Any]:
    """Makes an initializer, regularizer and constraint that act on each block."""
    own = independents(initializer, heads)

    def drawn(shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        return ops.stack([each(shape[1:], dtype=dtype) for each in own])

    def penalty(kernel: Tensor) -> Tensor:
        return sum(regularizer(kernel[head]) for head in range(heads))

    def constrained(kernel: Tensor) -> Tensor:
        return ops.stack([constraint(kernel[head]) for head in range(heads)])

    # An array has all blocks.
    is_array = isinstance(initializer, keras.initializers.Constant)
    start = initializer if is_array else drawn
    return start, regularizer and penalty, constraint and constrained
