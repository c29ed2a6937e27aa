"""GORU: gated orthogonal recurrent units."""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import keras
import numpy as np
from keras import ops

from keras_ortho import initializers
from keras_ortho.backend.types import Tensor
from keras_ortho.cells.cell import SMALL_KERNEL, CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.parametrizations.base import check_parametrization
from keras_ortho.parametrizations.cayley import ScaledCayley
from keras_ortho.parametrizations.givens import GivensOrthogonal
from keras_ortho.recurrence import Pointwise, ResetAndUpdate, Weights

__all__ = ["GORU", "GORUCell"]

RESET = keras.initializers.Constant(8.0)
UPDATE = keras.initializers.Constant(-6.0)


@keras.saving.register_keras_serializable(package="keras_ortho")
class GORUCell(RecurrentCell):
    """Cell of `GORU`, which describes its step, arguments and weights.

    Args:
        units, parametrization, gate_recurrent_initializer: As for `GORU`.
        reset_bias_initializer, update_bias_initializer: As for `GORU`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(GORUCell(128))(np.zeros((32, 100, 1))).shape
    (32, 128)
    """

    takes_parametrization = True
    paper_arguments: ClassVar[Mapping[str, Any]] = {
        **SMALL_KERNEL,
        "parametrization": GivensOrthogonal(),
        "recurrent_initializer": "uniform_phases",
        "bias_initializer": keras.initializers.Constant(0.01),
        "reset_bias_initializer": keras.initializers.Constant(2.0),
        "update_bias_initializer": "glorot_uniform",
    }
    optimizer_groups: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ["gate_kernel", "gate_recurrent_kernel", "reset_bias", "update_bias"], "others"
    )

    def __init__(
        self,
        units: int,
        parametrization: Any = None,
        *,
        gate_recurrent_initializer: Any = "small_uniform",
        reset_bias_initializer: Any = RESET,
        update_bias_initializer: Any = UPDATE,
        **kwargs: Unpack[CellArguments],
    ) -> None:
        kind = ScaledCayley() if parametrization is None else parametrization
        super().__init__(units, check_parametrization(kind), **kwargs)
        if self.complex_state:
            raise ValueError(
                "The `parametrization` of `GORU` must be real. "
                f"Received: {type(kind).__name__}"
            )
        self.gate_recurrent_initializer = initializers.get(gate_recurrent_initializer)
        self.reset_bias_initializer = initializers.get(reset_bias_initializer)
        self.update_bias_initializer = initializers.get(update_bias_initializer)

    @classmethod
    def arguments_of(cls, config: dict[str, Any]) -> dict[str, Any]:
        """Returns the arguments in a config, which once had those of the rotations."""
        if "style" not in config:
            return super().arguments_of(config)
        config = dict(config)
        rotations = GivensOrthogonal(config.pop("capacity"), config.pop("style"))
        return super().arguments_of({**config, "parametrization": rotations})

    def build_recurrent(self) -> None:
        """Creates the variables of `Q`, and the weights of the gates."""
        super().build_recurrent()
        start = initializers.independent(self.kernel_initializer)
        if np.ndim(getattr(start, "value", 0)):  # An array for the candidate alone.
            start = keras.initializers.GlorotUniform()
        shape = self.kernel.shape[0], 2 * self.units
        self.gate_kernel = self.add_input_kernel("gate_kernel", shape, start)
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

    The defaults begin as scoRNN: `Q` is made by the scaled Cayley map, modReLU is the
    identity, and the gates are open, `r` close to 1 and `g` to 0, so that the layer
    remembers. `from_paper` has the paper's FFT style, and its gates, half shut.

    Args:
        units: Number of units `n`, a positive integer.
        parametrization: How `Q` is made, a real `keras_ortho.parametrizations`: also
            `Heads` or `Rebased` around one. Default: `None`, `ScaledCayley()`.
        kernel_initializer: Initializer for `U` and, with the next seed, for `U_r` and
            `U_g`; an array is for `U`, and the others are Glorot-uniform. Default:
            `"glorot_uniform"`.
        gate_recurrent_initializer: Initializer for `W_r` and `W_g`. Default:
            `"small_uniform"`, uniform on (-0.01, 0.01).
        reset_bias_initializer: Initializer for `b_r`. Default: 8.
        update_bias_initializer: Initializer for `b_g`. Default: -6, at which a state
            decays by a factor e in about 400 steps; -8 suits thousands of steps.
        **kwargs: Arguments of `RecurrentCell` and `RecurrentLayer`. Those of the kernel
            and the bias also regularize and constrain the gates;
            `recurrent_regularizer` applies to the variables of `Q`, `W_r` and `W_g`.

    Weights:
        Those of all cells; those of the parametrization, by its names; `gate_kernel` of
        shape `(m, 2n)` and `gate_recurrent_kernel` of shape `(n, 2n)`, the reset gate
        first; `reset_bias` and `update_bias` of shape `(n,)`.

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
        parametrization: Any = None,
        *,
        gate_recurrent_initializer: Any = "small_uniform",
        reset_bias_initializer: Any = RESET,
        update_bias_initializer: Any = UPDATE,
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        super().__init__(
            units,
            parametrization,
            gate_recurrent_initializer=gate_recurrent_initializer,
            reset_bias_initializer=reset_bias_initializer,
            update_bias_initializer=update_bias_initializer,
            **kwargs,
        )
