"""ENRNN: the eigenvalue normalized recurrent neural network."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import keras
from keras import ops

from keras_ortho import checks, initializers
from keras_ortho.backend.types import Tensor
from keras_ortho.cells.cell import CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.keras_internals import call_is_training, current_call
from keras_ortho.parametrizations.eigenvalue_normalized import EigenvalueNormalized
from keras_ortho.parametrizations.spectral_radius import eigenpair_report

__all__ = ["ENRNN", "ENRNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class ENRNNCell(RecurrentCell):
    """Cell class for the eigenvalue normalized RNN (`ENRNN`).

    The state is `[h_L, h_S]`: `q` long-term units, whose recurrent matrix `W_L` is
    orthogonal as in scoRNN, and `s` short-term units, whose matrix `W_S` has a
    spectral radius of at most 1, so that they forget:

        h_L' = modReLU(x U_L + h_L W_L + h_S W_C)
        h_S' = modReLU(x U_S + h_S W_S)

    `W_S` is the trained matrix `T` until the spectral radius of `T` exceeds 1. From
    then on it is always `T / (rho(T) + epsilon)`. The weight `normalize` records that
    this has happened. It is set at the start of a sequence in a training call (`fit`,
    `training=True`). A `T` with a radius above 1 is divided in any case, also in
    inference. Two callers never set `normalize`: `stateless_call` of a
    `keras.layers.RNN` outside a model, and a cell of another class that calls this one
    at each step.

    Args:
        long_term_units: Number of long-term units `q`, a positive integer.
        short_term_units: Number of short-term units `s`, a positive integer.
        negative_ones: How many entries of the `D` of `W_L` are -1, as in
            `ScoRNNCell`: a count (an int) or a fraction of the long-term units (a
            float). Not used if `recurrent_initializer` returns a matrix. Default:
            0.5.
        coupling: Whether the short-term units act on the long-term units. Without
            coupling, `W_C` is zero and not a weight. Default: `True`.
        epsilon: Number added to the spectral radius, at least 0. Default: 0, as in the
            paper.
        recurrent_initializer: Initializer for the free entries of `W_L`.
            Alternatively, any Keras initializer that returns an orthogonal matrix of
            shape `(q, q)`, or an array. Default: `"henaff_skew"`.
        short_term_initializer: Initializer for `T`: any initializer that returns a
            matrix, or an array of shape `(s, s)`. Default: `"scaled_rotations"`,
            2 x 2 blocks, each a rotation times a number in (-1, 1).
        coupling_initializer: Initializer for `W_C`, or an array of shape `(s, q)`.
            Default: `"glorot_uniform"`.
        **kwargs: Arguments of all cells except `units`, see
            `keras_ortho.RecurrentCell`. `recurrent_regularizer` applies to the free
            entries, `T` and `W_C`.

    Weights:
        Those of all cells, with `n = q + s`; `recurrent_skew`, the free entries in row
        order, of shape `(q (q - 1) / 2,)`; `recurrent_signs`, not trained, of shape
        `(q,)`; `short_term_matrix` of shape `(s, s)`; with coupling, `coupling_kernel`
        of shape `(s, q)`; `normalize`, a boolean, not trained.

    Example:
    >>> layer = keras.layers.RNN(ENRNNCell(96, 64, negative_ones=29))
    >>> layer(np.zeros((32, 750, 2))).shape
    (32, 160)

    Reference:

    - [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964)
    """

    parametrization: EigenvalueNormalized
    paper_arguments: ClassVar[Mapping[str, Any]] = {
        "kernel_initializer": "small_uniform"
    }

    def __init__(
        self,
        long_term_units: int,
        short_term_units: int,
        negative_ones: int | float = 0.5,
        coupling: bool = True,
        epsilon: float = 0.0,
        *,
        short_term_initializer: Any = "scaled_rotations",
        coupling_initializer: Any = "glorot_uniform",
        **kwargs: Unpack[CellArguments],
    ) -> None:
        kwargs.setdefault("recurrent_initializer", "henaff_skew")
        parametrization = EigenvalueNormalized(
            long_term_units, short_term_units, negative_ones, coupling, epsilon
        )
        units = parametrization.long_term_units + parametrization.short_term_units
        super().__init__(units, parametrization=parametrization, **kwargs)
        self.long_term_units = parametrization.long_term_units
        self.short_term_units = parametrization.short_term_units
        self.negative_ones = negative_ones
        self.coupling = coupling
        self.epsilon = parametrization.epsilon
        self.short_term_initializer = initializers.get(short_term_initializer)
        self.coupling_initializer = initializers.get(coupling_initializer)
        # Set afterwards: unseeded initializers draw their seeds in argument order.
        parametrization.short_term_initializer = self.short_term_initializer
        parametrization.coupling_initializer = self.coupling_initializer
        self.coupling_kernel = None
        self._begins = False

    @classmethod
    def argument_names(cls) -> list[str]:
        """Lists the arguments; `units`, the sum of two, is none."""
        return [name for name in super().argument_names() if name != "units"]

    def begin_sequence(self, inputs: Tensor) -> None:
        """Begins a sequence, and updates `normalize` in training."""
        self._begins = True
        try:
            super().begin_sequence(inputs)
        finally:
            self._begins = False

    def recurrent_matrix(self) -> Tensor:
        """Computes `W = [[W_L, 0], [W_C, W_S]]`, for row vectors, from its variables.

        At the start of a sequence in training, it updates `normalize`.

        Returns:
            Tensor of shape `(q + s, q + s)`, in the dtype of the variables and at
            least float32.

        Raises:
            ValueError: If the cell is not built.
        """
        if self.frozen:
            return super().recurrent_matrix()
        kernel = self.short_term_kernel()
        return self.parametrization.with_short_term(kernel, *self.free_values())

    def short_term_kernel(self) -> Tensor:
        """Computes the short-term matrix `W_S`; in training, may update `normalize`.

        Returns:
            Tensor of shape `(s, s)`, in the dtype of the variables and at least
            float32.

        Raises:
            ValueError: If the cell is not built, or frozen and so without `T`.
        """
        self._check_normalizes()
        matrix = ops.cast(self.short_term_matrix, self.factorization_dtype)
        kernel, divided = self.parametrization.normalized(matrix, self.normalize)
        # Only where a sequence begins or the cell is called by itself, not in a loop
        # over time: JAX does not let values out of such a loop.
        begins = self._begins or current_call(self) is None
        if begins and self.trainable and call_is_training():
            self.normalize.assign(divided)
        return kernel

    def _check_normalizes(self) -> None:
        checks.check_built(self)
        if self.frozen:
            raise ValueError(
                "A frozen cell does not normalize its short-term matrix. Received: "
                f"{self.name} with frozen=True"
            )

    def eigenpair_report(self) -> dict[str, Any]:
        """Reports how the dominant eigenpair of `T` is found, and how accurately.

        Returns:
            A dict of numbers, see `keras_ortho.parametrizations.eigenpair_report`.
            If `gradient_found` is `False`, another gradient replaces that of the
            spectral radius.

        Raises:
            ValueError: If the cell is not built, or frozen and so without `T`.
        """
        self._check_normalizes()
        return eigenpair_report(
            ops.cast(self.short_term_matrix, self.factorization_dtype)
        )


@keras.saving.register_keras_serializable(package="keras_ortho")
class ENRNN(RecurrentLayer):
    """Eigenvalue normalized RNN layer: runs `ENRNNCell` over a sequence.

    Args:
        long_term_units: Number of long-term units `q`, a positive integer.
        short_term_units: Number of short-term units `s`, a positive integer.
        negative_ones: How many entries of the `D` of the long-term matrix are -1: a
            count (an int) or a fraction of the long-term units (a float). Default:
            0.5.
        coupling: Whether the short-term units act on the long-term units. Default:
            `True`.
        epsilon: Number added to the spectral radius, at least 0. Default: 0.
        short_term_initializer, coupling_initializer: As for `ENRNNCell`.
        **kwargs: Arguments of all cells and layers, see `keras_ortho.RecurrentCell`
            and `keras_ortho.RecurrentLayer`.

    Example:
    >>> layer = ENRNN(96, 64, negative_ones=29, return_sequences=True)
    >>> layer(np.zeros((32, 750, 2))).shape
    (32, 750, 160)

    Reference:

    - [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964)
    """

    cell_class = ENRNNCell

    def __init__(
        self,
        long_term_units: int,
        short_term_units: int,
        negative_ones: int | float = 0.5,
        coupling: bool = True,
        epsilon: float = 0.0,
        *,
        short_term_initializer: Any = "scaled_rotations",
        coupling_initializer: Any = "glorot_uniform",
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        super().__init__(
            long_term_units,
            short_term_units,
            negative_ones,
            coupling,
            epsilon,
            short_term_initializer=short_term_initializer,
            coupling_initializer=coupling_initializer,
            **kwargs,
        )
