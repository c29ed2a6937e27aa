"""EURNN: the tunable efficient unitary recurrent neural network."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import keras

from keras_ortho.cells.cell import CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.givens import GivensUnitary

__all__ = ["EURNN", "EURNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class EURNNCell(RecurrentCell):
    """Cell class for the efficient unitary RNN (`EURNN`).

    Each step computes `h' = modReLU(x U + h W)` with a complex state, stored as `2n`
    real numbers. The unitary `W` is a product of layers of rotations, each acting on
    pairs of units, and of a diagonal of phases, all trained without constraints.

    Args:
        units: Number of complex units `n`: even in the tunable style, a power of
            two, at least 2, in the FFT style.
        capacity: Number of layers of rotations in the tunable style, even and
            positive. With `n` layers, every unitary matrix can be reached. Not used in
            the FFT style, which has `log2(n)` layers. Default: 2.
        style: `"tunable"`, which alternates between the neighbors
            `(0, 1), (2, 3) ...` and `(1, 2), (3, 4) ...`; or `"fft"`, whose layers pair
            units at the distances `n / 2`, `n / 4` ... 1. Default: `"tunable"`.
        real_output: Whether the output is the real part of the state, of shape
            `(batch, n)`, as in the paper's experiments. Default: `False`.
        recurrent_initializer: Initializer for the angles and, with the next seeds, for
            the phases; with `capacity=n` also for a unitary `W`. Default:
            `"uniform_phases"`, uniform on (-pi, pi).
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Weights:
        Those of all cells; `recurrent_angles` and `recurrent_phases`, both of shape
        `(capacity / 2, n - 1)` or, in the FFT style, `(log2(n), n / 2)`;
        `output_phases` of shape `(n,)`.

    Example:
    >>> layer = keras.layers.RNN(EURNNCell(512, capacity=2, real_output=True))
    >>> layer(np.zeros((32, 100, 1))).shape
    (32, 512)

    Reference:
    [Jing et al., 2017](https://proceedings.mlr.press/v70/jing17a.html)
    """

    complex_state = True
    # Smoothed at zero. The authors' code does so with another formula.
    paper_arguments: ClassVar[Mapping[str, Any]] = {
        "activation": "smoothed_modrelu",
        "kernel_initializer": "small_uniform",
    }

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

    Args:
        units: Number of complex units `n`: even, and a power of two in the FFT style.
        capacity: Number of layers of rotations in the tunable style. Default: 2.
        style: `"tunable"` or `"fft"`. Default: `"tunable"`.
        real_output: Whether the output is the real part of the state, of `n` instead
            of `2n` numbers; the last state is complex. Default: `False`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell` and `RecurrentLayer`.

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
