"""ENRNN: the eigenvalue normalized recurrent neural network."""

from typing import Any, Unpack

import keras

from keras_ortho.backend.types import Tensor
from keras_ortho.cells.cell import SMALL_KERNEL, CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.keras_internals import call_is_training, current_call
from keras_ortho.parametrizations.eigenvalue_normalized import EigenvalueNormalized
from keras_ortho.parametrizations.spectral_radius import eigenpair_report

__all__ = ["ENRNN", "ENRNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class ENRNNCell(RecurrentCell):
    """Cell of `ENRNN`, which describes its step, arguments and weights.

    Args:
        long_term_units, short_term_units, negative_ones, coupling: As for `ENRNN`.
        epsilon, short_term_initializer, coupling_initializer: As for `ENRNN`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(ENRNNCell(96, 64))(np.zeros((32, 750, 2))).shape
    (32, 160)
    """

    parametrization: EigenvalueNormalized
    paper_arguments = SMALL_KERNEL
    _begins = False

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
        blocks = EigenvalueNormalized(
            long_term_units,
            short_term_units,
            negative_ones,
            coupling,
            epsilon,
            short_term_initializer,
            coupling_initializer,
        )
        units = blocks.long_term_units + blocks.short_term_units
        super().__init__(units, blocks, **kwargs)
        self.long_term_units = blocks.long_term_units
        self.short_term_units = blocks.short_term_units
        self.negative_ones = negative_ones
        self.coupling = coupling
        self.epsilon = blocks.epsilon
        self.short_term_initializer = blocks.short_term_initializer
        self.coupling_initializer = blocks.coupling_initializer

    @classmethod
    def argument_names(cls) -> list[str]:
        """Lists the arguments; `units`, the sum of two, is none."""
        return [name for name in super().argument_names() if name != "units"]

    def begin_sequence(self, inputs: Tensor) -> None:
        """Begins a sequence, and updates `normalize` in training."""
        self._begins = True
        super().begin_sequence(inputs)
        self._begins = False

    def step_kernel(self) -> Tensor:
        """Computes `W = [[W_L, 0], [W_C, W_S]]`; in training, updates `normalize`."""
        if self.frozen:
            return super().step_kernel()
        return self.parametrization.with_short_term(
            self.short_term_kernel(), *self.free_values()
        )

    def short_term_kernel(self) -> Tensor:
        """Computes `W_S`, of shape `(s, s)`; in training, may update `normalize`."""
        _, _, matrix, *_, normalize = self.free_values()
        kernel, divided = self.parametrization.normalized(matrix, normalize)
        # Only where a sequence begins or the cell is called by itself, not in a loop
        # over time: JAX does not let values out of such a loop.
        begins = self._begins or current_call(self) is None
        if begins and self.trainable and call_is_training():
            self.normalize.assign(divided)
        return kernel

    def eigenpair_report(self) -> dict[str, Any]:
        """Reports how the dominant eigenpair of `T` is found, and how accurately.

        Returns:
            A dictionary: `radius`; `gradient_found`, whether the gradient is that of
            the eigenvalue, see `keras_ortho.parametrizations.spectral_radius`;
            `residual`, the larger of `||T Q - Q H||_F / ||T||_F` for the right and the
            left subspace; `condition`, the condition number of the eigenvalue;
            `planar`, whether the subspace is a plane; and `squarings`, how often the
            matrix was squared.
        """
        return eigenpair_report(self.free_values()[2])


@keras.saving.register_keras_serializable(package="keras_ortho")
class ENRNN(RecurrentLayer):
    """Eigenvalue normalized RNN layer: runs `ENRNNCell` over a sequence.

    The state is `[h_L, h_S]`: `q` long-term units, whose recurrent matrix `W_L` is
    orthogonal as in scoRNN, and `s` short-term units, whose matrix `W_S` has a
    spectral radius of at most 1, so that they forget:

        h_L' = modReLU(x U_L + h_L W_L + h_S W_C)
        h_S' = modReLU(x U_S + h_S W_S)

    `W_S` is the trained matrix `T` until the spectral radius of `T` exceeds 1 at the
    start of a sequence in a training call (`fit`, `training=True`). From then on it is
    always `T / (rho(T) + epsilon)`, as the weight `normalize` records. Neither
    `stateless_call` of a `keras.layers.RNN` outside a model nor a cell of another class
    that calls this one sets it. A radius above 1 is divided by in any case.

    Args:
        long_term_units: Number of long-term units `q`, a positive integer.
        short_term_units: Number of short-term units `s`, a positive integer.
        negative_ones: How many entries of the `D` of `W_L` are -1, as for `ScoRNN`: a
            count, or a fraction of the long-term units. Default: 0.5.
        coupling: Whether the short-term units act on the long-term units, or `W_C` is
            zero and not a weight. Default: `True`.
        epsilon: Number added to the spectral radius, at least 0. Default: 0.
        recurrent_initializer: Initializer for the free entries of `W_L`, or for an
            orthogonal `W_L` of shape `(q, q)`. Default: `"henaff_skew"`.
        short_term_initializer: Initializer for `T`, of shape `(s, s)`. Default:
            `"scaled_rotations"`, 2 x 2 rotations times numbers in (-1, 1).
        coupling_initializer: Initializer for `W_C`, of shape `(s, q)`. Default:
            `"glorot_uniform"`.
        **kwargs: Arguments of `RecurrentCell` and `RecurrentLayer`, except `units`.
            `recurrent_regularizer` applies to the free entries, `T` and `W_C`.

    Weights:
        Those of all cells, with `n = q + s`; `recurrent_skew`, the free entries in row
        order, of shape `(q (q - 1) / 2,)`; `recurrent_signs`, not trained, of shape
        `(q,)`; `short_term_matrix` of shape `(s, s)`; with coupling, `coupling_kernel`
        of shape `(s, q)`; `normalize`, a boolean, not trained.

    Example:
    >>> layer = ENRNN(96, 64, negative_ones=29, return_sequences=True)
    >>> layer(np.zeros((32, 750, 2))).shape
    (32, 750, 160)

    Reference:
    [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964)
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
