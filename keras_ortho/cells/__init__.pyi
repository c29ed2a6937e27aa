# Written by `make stubs`.
from typing import Any, ClassVar

from keras_ortho.cells import (
    antisymmetric,
    enrnn,
    eurnn,
    factorized,
    full_urnn,
    goru,
    nnrnn,
    ornn,
    ortho,
    scornn,
    scurnn,
    svdrnn,
    urnn,
)
from keras_ortho.cells.base import RecurrentCell as RecurrentCell
from keras_ortho.cells.layer import RecurrentLayer as RecurrentLayer

# fmt: off

class AntisymmetricRNN(antisymmetric.AntisymmetricRNN):
    cell_class: ClassVar[type[antisymmetric.AntisymmetricRNNCell]]
    def __init__(self, units: int, step_size: float = 0.1, diffusion: float = 0.01,
        gated: bool = False, antisymmetric: bool = True, *, activation: Any = "tanh",
        use_bias: bool = True, kernel_initializer: Any = "fan_in_normal",
        recurrent_initializer: Any = "antisymmetric_normal",
        bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class AntisymmetricRNNCell(antisymmetric.AntisymmetricRNNCell):
    def __init__(self, units: int, step_size: float = 0.1, diffusion: float = 0.01,
        gated: bool = False, antisymmetric: bool = True, *, activation: Any = "tanh",
        use_bias: bool = True, kernel_initializer: Any = "fan_in_normal",
        recurrent_initializer: Any = "antisymmetric_normal",
        bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class ENRNN(enrnn.ENRNN):
    cell_class: ClassVar[type[enrnn.ENRNNCell]]
    def __init__(self, long_term_units: int, short_term_units: int,
        negative_ones: int | float = 0.5, coupling: bool = True, epsilon: float = 0.0,
        *, short_term_initializer: Any = "scaled_rotations",
        coupling_initializer: Any = "glorot_uniform", activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "henaff_skew", bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class ENRNNCell(enrnn.ENRNNCell):
    def __init__(self, long_term_units: int, short_term_units: int,
        negative_ones: int | float = 0.5, coupling: bool = True, epsilon: float = 0.0,
        *, short_term_initializer: Any = "scaled_rotations",
        coupling_initializer: Any = "glorot_uniform", activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "henaff_skew", bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class EURNN(eurnn.EURNN):
    cell_class: ClassVar[type[eurnn.EURNNCell]]
    def __init__(self, units: int, capacity: int = 2, style: str = "tunable",
        real_output: bool = False, *, activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "uniform_phases", bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class EURNNCell(eurnn.EURNNCell):
    def __init__(self, units: int, capacity: int = 2, style: str = "tunable",
        real_output: bool = False, *, activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "uniform_phases", bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class FactorizedRNN(factorized.FactorizedRNN):
    cell_class: ClassVar[type[factorized.FactorizedRNNCell]]
    def __init__(self, units: int, spectral_margin: float = 0.1,
        spectral_center: float = 1.0, *, activation: Any = ..., use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "henaff_skew", bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class FactorizedRNNCell(factorized.FactorizedRNNCell):
    def __init__(self, units: int, spectral_margin: float = 0.1,
        spectral_center: float = 1.0, *, activation: Any = ..., use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "henaff_skew", bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class FullURNN(full_urnn.FullURNN):
    cell_class: ClassVar[type[full_urnn.FullURNNCell]]
    def __init__(self, units: int, half_gradient: bool = False, *,
        activation: Any = "modrelu", use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "unitary_composition",
        bias_initializer: Any = "small_uniform",
        initial_state_initializer: Any = "lecun_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = True,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class FullURNNCell(full_urnn.FullURNNCell):
    def __init__(self, units: int, half_gradient: bool = False, *,
        activation: Any = "modrelu", use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "unitary_composition",
        bias_initializer: Any = "small_uniform",
        initial_state_initializer: Any = "lecun_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = True,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class GORU(goru.GORU):
    cell_class: ClassVar[type[goru.GORUCell]]
    def __init__(self, units: int, capacity: int | None = None, style: str = "fft", *,
        bias_initializer: Any = None, gate_recurrent_initializer: Any = "small_uniform",
        reset_bias_initializer: Any = None,
        update_bias_initializer: Any = "glorot_uniform", activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "uniform_phases",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class GORUCell(goru.GORUCell):
    def __init__(self, units: int, capacity: int | None = None, style: str = "fft", *,
        bias_initializer: Any = None, gate_recurrent_initializer: Any = "small_uniform",
        reset_bias_initializer: Any = None,
        update_bias_initializer: Any = "glorot_uniform", activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "uniform_phases",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class NNRNN(nnrnn.NNRNN):
    cell_class: ClassVar[type[nnrnn.NNRNNCell]]
    def __init__(self, units: int, map: str = "exponential", *,
        angles_initializer: Any = "uniform_phases", radii_initializer: Any = "ones",
        upper_initializer: Any = "zeros", radii_regularizer: Any = None,
        upper_regularizer: Any = None, activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_normal",
        recurrent_initializer: Any = "henaff_skew",
        bias_initializer: Any = "small_uniform",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class NNRNNCell(nnrnn.NNRNNCell):
    def __init__(self, units: int, map: str = "exponential", *,
        angles_initializer: Any = "uniform_phases", radii_initializer: Any = "ones",
        upper_initializer: Any = "zeros", radii_regularizer: Any = None,
        upper_regularizer: Any = None, activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_normal",
        recurrent_initializer: Any = "henaff_skew",
        bias_initializer: Any = "small_uniform",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class ORNN(ornn.ORNN):
    cell_class: ClassVar[type[ornn.ORNNCell]]
    def __init__(self, units: int, reflections: int | None = None, *,
        activation: Any = ..., use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "normal_reflectors",
        bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "state_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = True,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class ORNNCell(ornn.ORNNCell):
    def __init__(self, units: int, reflections: int | None = None, *,
        activation: Any = ..., use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "normal_reflectors",
        bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "state_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = True,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class OrthoRNN(ortho.OrthoRNN):
    cell_class: ClassVar[type[ortho.OrthoRNNCell]]
    def __init__(self, units: int, parametrization: Any, *, activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = None, bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class OrthoRNNCell(ortho.OrthoRNNCell):
    def __init__(self, units: int, parametrization: Any, *, activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = None, bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class RestrictedURNN(urnn.RestrictedURNN):
    cell_class: ClassVar[type[urnn.RestrictedURNNCell]]
    def __init__(self, units: int, *, activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "unitary_composition",
        bias_initializer: Any = "small_uniform",
        initial_state_initializer: Any = "lecun_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = True,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class RestrictedURNNCell(urnn.RestrictedURNNCell):
    def __init__(self, units: int, *, activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "unitary_composition",
        bias_initializer: Any = "small_uniform",
        initial_state_initializer: Any = "lecun_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = True,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class SVDRNN(svdrnn.SVDRNN):
    cell_class: ClassVar[type[svdrnn.SVDRNNCell]]
    def __init__(self, units: int, reflections: int | tuple[int, int] | None = None,
        spectral_margin: float = 0.01, spectral_center: float = 1.0, *,
        activation: Any = ..., use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "uniform_reflectors",
        bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class SVDRNNCell(svdrnn.SVDRNNCell):
    def __init__(self, units: int, reflections: int | tuple[int, int] | None = None,
        spectral_margin: float = 0.01, spectral_center: float = 1.0, *,
        activation: Any = ..., use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "uniform_reflectors",
        bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class ScoRNN(scornn.ScoRNN):
    cell_class: ClassVar[type[scornn.ScoRNNCell]]
    def __init__(self, units: int, negative_ones: int | float = 0.5, *, heads: int = 1,
        mix_inputs: bool = True, rebase_every: int | None = None,
        activation: Any = "modrelu", use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "henaff_skew", bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class ScoRNNCell(scornn.ScoRNNCell):
    def __init__(self, units: int, negative_ones: int | float = 0.5, *, heads: int = 1,
        mix_inputs: bool = True, rebase_every: int | None = None,
        activation: Any = "modrelu", use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "henaff_skew", bias_initializer: Any = "zeros",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = False,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class ScuRNN(scurnn.ScuRNN):
    cell_class: ClassVar[type[scurnn.ScuRNNCell]]
    def __init__(self, units: int, *, heads: int = 1, mix_inputs: bool = True,
        rebase_every: int | None = None, activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "henaff_skew",
        bias_initializer: Any = "small_uniform",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = True,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        recompute: bool | int = False, return_sequences: bool = False,
        return_state: bool = False, go_backwards: bool = False, stateful: bool = False,
        unroll: bool = False, zero_output_for_mask: bool = False,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...

class ScuRNNCell(scurnn.ScuRNNCell):
    def __init__(self, units: int, *, heads: int = 1, mix_inputs: bool = True,
        rebase_every: int | None = None, activation: Any = "modrelu",
        use_bias: bool = True, kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "henaff_skew",
        bias_initializer: Any = "small_uniform",
        initial_state_initializer: Any = "small_uniform",
        kernel_regularizer: Any = None, recurrent_regularizer: Any = None,
        bias_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable_initial_state: bool = True,
        dropout: float = 0.0, recurrent_dropout: float = 0.0, seed: int | None = None,
        activity_regularizer: Any = None, trainable: bool = True, dtype: Any = None,
        autocast: bool = True, name: Any = None) -> None: ...
