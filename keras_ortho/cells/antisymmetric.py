"""AntisymmetricRNN: a forward Euler step of a stable differential equation."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Unpack

import keras

from keras_ortho import checks
from keras_ortho.backend.types import Tensor
from keras_ortho.cells.cell import CellArguments, RecurrentCell
from keras_ortho.cells.layer import LayerArguments, RecurrentLayer
from keras_ortho.initializers import check_array, independent
from keras_ortho.parametrizations.skew import Antisymmetric, Unstructured
from keras_ortho.recurrence import Euler, GatedEuler, Pointwise, Weights

__all__ = ["AntisymmetricRNN", "AntisymmetricRNNCell"]


@keras.saving.register_keras_serializable(package="keras_ortho")
class AntisymmetricRNNCell(RecurrentCell):
    """Cell of `AntisymmetricRNN`, which describes its step, arguments and weights.

    Args:
        units, step_size, diffusion, gated, antisymmetric: As for
            `AntisymmetricRNN`.
        **kwargs: Arguments of `keras_ortho.RecurrentCell`.

    Example:
    >>> keras.layers.RNN(AntisymmetricRNNCell(128))(np.zeros((32, 100, 1))).shape
    (32, 128)
    """

    # The step adds to the state. Recurrent dropout does not affect that term.
    residual = True
    optimizer_groups: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ["gate_kernel", "gate_bias"], "others"
    )

    def __init__(
        self,
        units: int,
        step_size: float = 0.1,
        diffusion: float = 0.01,
        gated: bool = False,
        antisymmetric: bool = True,
        **kwargs: Unpack[CellArguments],
    ) -> None:
        kwargs.setdefault("activation", "tanh")
        kwargs.setdefault("kernel_initializer", "fan_in_normal")
        kwargs.setdefault("recurrent_initializer", "antisymmetric_normal")
        parametrization = (Antisymmetric if antisymmetric else Unstructured)(diffusion)
        super().__init__(units, parametrization, **kwargs)
        self.step_size = checks.check_number("step_size", step_size, positive=True)
        self.diffusion = parametrization.diffusion
        self.gated = gated
        self.antisymmetric = antisymmetric

    def build_recurrent(self) -> None:
        """Creates the free variables of `M`, and the weights of the gate if any."""
        super().build_recurrent()
        if not self.gated:
            return
        self.gate_kernel = self.add_input_kernel(
            "gate_kernel", self.kernel.shape, independent(self.kernel_initializer)
        )
        if self.use_bias:  # Here, or the error would name an initializer of the gate.
            check_array("bias_initializer", self.bias_initializer, (self.units,))
        self.gate_bias = self.add_bias(
            "gate_bias", self.units, independent(self.bias_initializer)
        )

    def step_weights(self, recurrent_kernel: Tensor, activation: Pointwise) -> Weights:
        """Describes the step, see `RecurrentCell.step_weights`."""
        weights = super().step_weights(recurrent_kernel, activation)
        if not self.gated:
            return dataclasses.replace(
                weights, update=Euler(activation, self.step_size)
            )
        gate_bias = self.bias_or_zeros(self.gate_bias, self.units)
        return Weights(
            (*weights.kernels, self.gate_kernel),
            weights.recurrent_kernels,
            (*weights.biases, gate_bias),
            GatedEuler(activation, self.step_size),
        )


@keras.saving.register_keras_serializable(package="keras_ortho")
class AntisymmetricRNN(RecurrentLayer):
    """AntisymmetricRNN layer: runs `AntisymmetricRNNCell` over a sequence.

    Each step computes `h' = h + step_size z * tanh(x U + h W + b)` with
    `W = M - diffusion I`, and with a gate `z = sigmoid(x U_z + h W + b_z)`, otherwise
    `z = 1`. The strict upper triangle of the antisymmetric `M` is trained.

    Args:
        units: Number of units `n`, a positive integer.
        step_size: Step size `eps` of the forward Euler method, more than 0. The paper
            selects it from 0.01, 0.1 and 1. Default: 0.1.
        diffusion: Diffusion `gamma`, at least 0, not trained. The paper selects it
            from 0.001, 0.01, 0.1 and 1; with 0, the method is unstable. Default: 0.01.
        gated: Whether to use the gate. Default: `False`.
        antisymmetric: Whether `M` is antisymmetric, unlike in the paper's ablation.
            Default: `True`.
        activation: Activation applied to `x U + h W + b`. Default: `"tanh"`.
        kernel_initializer: Initializer for `U` and, with the next seed, for `U_z`.
            Default: `"fan_in_normal"`, `N(0, 1 / m)`.
        recurrent_initializer: Initializer for the free entries of `M`, or for `W`.
            Default: `"antisymmetric_normal"`, `N(0, 1 / n)`;
            `initializers.AntisymmetricNormal` takes the paper's `sigma_w`.
        **kwargs: Arguments of `RecurrentCell` and `RecurrentLayer`. Regularizers,
            constraints and `bias_initializer` also apply to the weights of the gate.

    Weights:
        Those of all cells; `recurrent_skew`, the free entries in row order, of shape
        `(n (n - 1) / 2,)`, or in the ablation `recurrent_kernel` of shape `(n, n)`;
        with a gate, `gate_kernel` of shape `(m, n)` and `gate_bias` of shape `(n,)`.

    Example:
    >>> AntisymmetricRNN(128, diffusion=0.1)(np.zeros((32, 100, 1))).shape
    (32, 128)

    Reference:
    [Chang et al., 2019](https://openreview.net/forum?id=ryxepo0cFX), equations 12, 13
    """

    cell_class = AntisymmetricRNNCell

    def __init__(
        self,
        units: int,
        step_size: float = 0.1,
        diffusion: float = 0.01,
        gated: bool = False,
        antisymmetric: bool = True,
        **kwargs: Unpack[LayerArguments],
    ) -> None:
        super().__init__(units, step_size, diffusion, gated, antisymmetric, **kwargs)
