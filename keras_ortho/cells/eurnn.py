"""EURNN: the tunable efficient unitary recurrent neural network."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from keras_ortho.cells.base import RecurrentCell
from keras_ortho.cells.layer import RecurrentLayer
from keras_ortho.parametrizations.givens import GivensUnitary


@keras.saving.register_keras_serializable(package="keras_ortho")
class EURNNCell(RecurrentCell):
    """Cell of the efficient unitary RNN (EURNN).

    One step is `h' = modReLU(x U + h W)` with a complex state and a unitary matrix
    `W`, a product of layers of rotations of pairs of units and of a diagonal of
    phases, all trained without a constraint. Inside a recurrent layer `W` is made
    once for a sequence, not at every step.

    Args:
        units: Number of complex units `n`: even in the tunable style, a power of
            two, at least 2, in the FFT style.
        capacity: Number of layers of rotations of the tunable style, even and
            positive; with `n` of them every unitary matrix is reached. Not used in
            the FFT style, which has `log2(n)`. Default: 2.
        style: `"tunable"`, neighbors `(0, 1), (2, 3) ...` and `(1, 2), (3, 4) ...`
            by turns; or `"fft"`, pairs at the distances `n / 2`, `n / 4` ... 1.
            Default: `"tunable"`.
        real_output: Whether the output is the real part of the state, of shape
            `(batch, n)`, as in the paper's experiments, rather than the whole of
            it. Default: `False`.
        recurrent_initializer: Initializer of the angles and the phases; phases get
            the next seeds. Or, in the tunable style with `capacity=n`, any
            initializer of Keras that yields an orthogonal matrix, such as
            `"orthogonal"` or `"identity"`, or a unitary array, taken through the
            inverse map. Default: `"uniform_phases"`, uniform on (-pi, pi).
        **kwargs: The arguments of every cell, see `keras_ortho.RecurrentCell`.

    Weights:
        Those of every cell; `recurrent_angles` and `recurrent_phases`, both of shape
        `(capacity / 2, n - 1)` or, in the FFT style, `(log2(n), n / 2)`;
        `output_phases` of shape `(n,)`.

    Example:
    >>> layer = keras.layers.RNN(EURNNCell(512, capacity=2, real_output=True))
    >>> layer(np.zeros((32, 100, 1))).shape
    (32, 512)

    Reference:

    - [Jing et al., 2017](https://proceedings.mlr.press/v70/jing17a.html)
    """

    complex_state = True
    default_arguments: ClassVar[Mapping[str, Any]] = {
        "recurrent_initializer": "uniform_phases"
    }
    # With a guard at zero, as the authors' code has one of another form.
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
        **kwargs: Any,
    ) -> None:
        kwargs = {**self.default_arguments, **kwargs}
        super().__init__(
            units, parametrization=GivensUnitary(capacity, style), **kwargs
        )
        self.capacity = capacity
        self.style = style
        self.real_output = real_output
        self.output_size = self.units if real_output else self.state_size


@keras.saving.register_keras_serializable(package="keras_ortho")
class EURNN(RecurrentLayer):
    """The efficient unitary RNN (EURNN), `EURNNCell` over a sequence.

    Args:
        units: Number of complex units `n`, even; a power of two in the FFT style.
        capacity: Number of layers of rotations of the tunable style. Default: 2.
        style: `"tunable"` or `"fft"`. Default: `"tunable"`.
        real_output: Whether the output is the real part of the state. Default:
            `False`.
        **kwargs: Other arguments of `EURNNCell` and `keras_ortho.RecurrentLayer`.

    Output shape:
        `(batch, 2n)`, or `(batch, n)` with `real_output`, with an axis for time
        before the last with `return_sequences`; with `return_state` a list of that
        and the last state, `(batch, 2n)`.

    Example:
    >>> EURNN(512, style="fft", return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 1024)

    Reference:

    - [Jing et al., 2017](https://proceedings.mlr.press/v70/jing17a.html)
    """

    cell_class = EURNNCell
