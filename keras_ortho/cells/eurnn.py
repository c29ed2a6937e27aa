"""EURNN: the tunable efficient unitary recurrent neural network."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import keras

from keras_ortho.cells.cell import SMALL_KERNEL, SMOOTHED, CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.givens import GivensUnitary

__all__ = ["EURNN", "EURNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class EURNNCell(RecurrentCell):
    """Cell of `EURNN`, which describes its step, arguments and weights.

    Args:
        units, capacity, style, real_output: As for `EURNN`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(EURNNCell(512))(np.zeros((32, 100, 1))).shape
    (32, 1024)
    """

    complex_state = True
    # The authors' code smooths with another formula.
    paper_arguments: ClassVar[Mapping[str, Any]] = {**SMOOTHED, **SMALL_KERNEL}

    def __init__(
        self,
        units: int,
        capacity: int = 2,
        style: str = "tunable",
        real_output: bool = False,
        **kwargs: Unpack[CellArguments],
    ) -> None:
        kwargs.setdefault("recurrent_initializer", "uniform_phases")
        super().__init__(units, GivensUnitary(capacity, style), **kwargs)
        self.capacity = capacity
        self.style = style
        self.real_output = real_output
        self.output_size = self.units if real_output else self.state_size


@keras.saving.register_keras_serializable(package="keras_ortho")
class EURNN(RecurrentLayer):
    """Efficient unitary RNN layer: runs `EURNNCell` over a sequence.

    Each step computes `h' = modReLU(x U + h W)` with a complex state, stored as `2n`
    real numbers. The unitary `W` is a product of layers of rotations, each acting on
    pairs of units, and of a diagonal of phases, all trained without constraints.

    Args:
        units: Number of complex units `n`: a power of two in the FFT style, else even.
        capacity: Number of layers of rotations in the tunable style, even; `n` layers
            reach every unitary matrix. The FFT style has `log2(n)`. Default: 2.
        style: `"tunable"`, which alternates between the neighbors
            `(0, 1), (2, 3) ...` and `(1, 2), (3, 4) ...`; or `"fft"`, whose layers pair
            units at the distances `n / 2`, `n / 4` ... 1. Default: `"tunable"`.
        real_output: Whether the output is the real part of the state, of shape
            `(batch, n)`, as in the paper's experiments. Default: `False`.
        recurrent_initializer: Initializer for the angles and, with the next seeds, for
            the phases; with `capacity=n` also for a unitary `W`. Default:
            `"uniform_phases"`, uniform on (-pi, pi).
        **kwargs: Arguments of `keras_ortho.RecurrentCell` and `RecurrentLayer`.

    Weights:
        Those of all cells; `recurrent_angles` and `recurrent_phases`, both of shape
        `(capacity / 2, n - 1)` or, in the FFT style, `(log2(n), n / 2)`;
        `output_phases` of shape `(n,)`.

    Example:
    >>> EURNN(512, style="fft", return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 1024)

    Reference:
    [Jing et al., 2017](https://proceedings.mlr.press/v70/jing17a.html)
    """

    cell_class = EURNNCell

    def __init__(
        self,
        units: int,
        capacity: int = 2,
        style: str = "tunable",
        real_output: bool = False,
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        super().__init__(units, capacity, style, real_output, **kwargs)
