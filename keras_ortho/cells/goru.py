"""GORU: gated orthogonal recurrent units."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import keras
from keras import ops

from keras_ortho import initializers
from keras_ortho.backend.types import Tensor
from keras_ortho.cells.cell import SMALL_KERNEL, CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.givens import GivensOrthogonal
from keras_ortho.recurrence import Pointwise, ResetAndUpdate, Weights

__all__ = ["GORU", "GORUCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class GORUCell(RecurrentCell):
    """Cell of `GORU`, which describes its step, arguments and weights.

    Args:
        units, capacity, style, gate_recurrent_initializer: As for `GORU`.
        reset_bias_initializer, update_bias_initializer: As for `GORU`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(GORUCell(128))(np.zeros((32, 100, 1))).shape
    (32, 128)
    """

    paper_arguments = SMALL_KERNEL
    optimizer_groups: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ["gate_kernel", "gate_recurrent_kernel", "reset_bias", "update_bias"], "others"
    )

    def __init__(
        self,
        units: int,
        capacity: int | None = None,
        style: str = "fft",
        *,
        gate_recurrent_initializer: Any = "small_uniform",
        reset_bias_initializer: Any = None,
        update_bias_initializer: Any = "glorot_uniform",
        **kwargs: Unpack[CellArguments],
    ) -> None:
        kwargs.setdefault("recurrent_initializer", "uniform_phases")
        kwargs.setdefault("bias_initializer", keras.initializers.Constant(0.01))
        if reset_bias_initializer is None:
            reset_bias_initializer = keras.initializers.Constant(2.0)
        super().__init__(units, GivensOrthogonal(capacity, style), **kwargs)
        if capacity is None and style == "tunable":
            capacity = self.units
        self.capacity = capacity
        self.style = style
        self.gate_recurrent_initializer = initializers.get(gate_recurrent_initializer)
        self.reset_bias_initializer = initializers.get(reset_bias_initializer)
        self.update_bias_initializer = initializers.get(update_bias_initializer)

    def build_recurrent(self) -> None:
        """Creates the angles, the signs if any, and the weights of the gates."""
        super().build_recurrent()
        self.gate_kernel = self.add_input_kernel(
            "gate_kernel",
            (self.kernel.shape[0], 2 * self.units),
            initializers.independent(self.kernel_initializer),
        )
        self.gate_recurrent_kernel = self.add_weight(
            shape=(self.units, 2 * self.units),
            name="gate_recurrent_kernel",
            initializer=self.gate_recurrent_initializer,
            regularizer=self.recurrent_regularizer,
        )
        self.reset_bias = self.add_bias(
            "reset_bias", self.units, self.reset_bias_initializer
        )
        self.update_bias = self.add_bias(
            "update_bias", self.units, self.update_bias_initializer
        )

    def step_weights(self, recurrent_kernel: Tensor, activation: Pointwise) -> Weights:
        """Describes the step, see `RecurrentCell.step_weights`, with `Q` as `W`."""
        bias, *gates = (
            self.bias_or_zeros(each, self.units)
            for each in (self.bias, self.reset_bias, self.update_bias)
        )
        return Weights(
            (self.kernel, self.gate_kernel),
            (recurrent_kernel, self.gate_recurrent_kernel),
            (bias, ops.concatenate(gates)),
            ResetAndUpdate(activation),
        )


@keras.saving.register_keras_serializable(package="keras_ortho")
class GORU(RecurrentLayer):
    """Layer of gated orthogonal recurrent units: runs `GORUCell` over a sequence.

    With an orthogonal matrix `Q`, made of layers of rotations, each step computes

        r = sigmoid(x U_r + h W_r + b_r)
        g = sigmoid(x U_g + h W_g + b_g)
        h' = g h + (1 - g) modReLU(x U + r (h Q), b)

    The reset gate `r` acts on the state after its rotation by `Q`.

    Args:
        units: Number of units `n`: a power of two in the FFT style, else even.
        capacity: Number of layers of rotations in the tunable style, even. Default:
            `None`: `n` layers, which reach every orthogonal matrix, or the `log2(n)`
            layers of the FFT style.
        style: `"fft"`, whose layers pair units at the distances `n / 2`, `n / 4` ... 1;
            or `"tunable"`, which alternates between the neighbors
            `(0, 1), (2, 3) ...` and `(1, 2), (3, 4) ...`. Default: `"fft"`.
        kernel_initializer: Initializer for `U` and, with the next seed, for `U_r` and
            `U_g`. Default: `"glorot_uniform"`.
        recurrent_initializer: Initializer for the angles or, in the tunable style with
            `n` layers, for an orthogonal `Q`. Default: `"uniform_phases"`, uniform on
            (-pi, pi).
        bias_initializer: Initializer for the bias `b`. Default: 0.01.
        gate_recurrent_initializer: Initializer for `W_r` and `W_g`. Default:
            `"small_uniform"`, uniform on (-0.01, 0.01).
        reset_bias_initializer: Initializer for `b_r`. Default: `None`, which means 2.
        update_bias_initializer: Initializer for `b_g`. Default: `"glorot_uniform"`,
            which for a vector is uniform on (-sqrt(3 / n), sqrt(3 / n)).
        **kwargs: Arguments of `RecurrentCell` and `RecurrentLayer`. Those of the kernel
            and the bias also regularize and constrain the gates;
            `recurrent_regularizer` applies to the angles, `W_r` and `W_g`.

    Weights:
        Those of all cells; `recurrent_angles` of shape `(log2(n), n / 2)` or, in the
        tunable style, `(capacity / 2, n - 1)`; in the tunable style, `recurrent_signs`,
        not trained, of shape `(n,)`; `gate_kernel` of shape `(m, 2n)` and
        `gate_recurrent_kernel` of shape `(n, 2n)`, the reset gate first; `reset_bias`
        and `update_bias` of shape `(n,)`.

    Example:
    >>> GORU(128, return_sequences=True)(np.zeros((32, 100, 1))).shape
    (32, 100, 128)

    Reference:
    [Jing et al., 2019](https://doi.org/10.1162/neco_a_01174)
    """

    cell_class = GORUCell

    def __init__(
        self,
        units: int,
        capacity: int | None = None,
        style: str = "fft",
        *,
        gate_recurrent_initializer: Any = "small_uniform",
        reset_bias_initializer: Any = None,
        update_bias_initializer: Any = "glorot_uniform",
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        super().__init__(
            units,
            capacity,
            style,
            gate_recurrent_initializer=gate_recurrent_initializer,
            reset_bias_initializer=reset_bias_initializer,
            update_bias_initializer=update_bias_initializer,
            **kwargs,
        )
