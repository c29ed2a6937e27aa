"""The architectures that the shared tests hold to one standard.

A new one gets all of `test_standards.py` and `test_program.py` by being listed.
"""

import dataclasses
from typing import Any

import keras
import numpy as np

from keras_ortho import (
    ENRNN,
    EURNN,
    GORU,
    NNRNN,
    ORNN,
    SVDRNN,
    AntisymmetricRNN,
    AntisymmetricRNNCell,
    ENRNNCell,
    EURNNCell,
    FactorizedRNN,
    FactorizedRNNCell,
    FullURNN,
    FullURNNCell,
    GORUCell,
    NNRNNCell,
    ORNNCell,
    OrthoRNN,
    OrthoRNNCell,
    RecurrentCell,
    RecurrentLayer,
    RestrictedURNN,
    RestrictedURNNCell,
    ScoRNN,
    ScoRNNCell,
    ScuRNN,
    ScuRNNCell,
    SVDRNNCell,
)
from keras_ortho.initializers import (
    NormalReflectors,
    UniformReflectors,
    UnitaryComposition,
)
from keras_ortho.parametrizations import ScaledCayley
from keras_ortho.regularizers import UnitRadii
from tests import reference


@dataclasses.dataclass(frozen=True)
class Architecture:
    """What the tests need to know of an architecture.

    Attributes:
        cell: Class of the cell.
        layer: Class of the layer.
        arguments: Small arguments to make either.
        others: For each own argument a value that is not its default.
        units: The size of the state and the output that `arguments` give.
        num_trainable: Number of trained weights, as `arguments` give them.
        num_fixed: Number of weights that are not trained.
        num_factorizations: How many factorizations make its kernel.
        matrices: Initializers of a matrix, and arrays, that it can start from.
        kernel_operations: Operations in the compiled program by which its kernel is
            known where no factorization makes it.
    """

    cell: type[RecurrentCell]
    layer: type[RecurrentLayer]
    arguments: dict[str, Any]
    others: dict[str, Any]
    units: int
    num_trainable: int
    num_fixed: int
    num_factorizations: int
    matrices: tuple[Any, ...] = ("orthogonal", np.eye(6))
    kernel_operations: frozenset[str] = frozenset()

    @property
    def starts_trained(self) -> bool:
        """Whether the initial state is trained unless told otherwise."""
        signature = self.cell.__signature__
        return signature.parameters["trainable_initial_state"].default

    def __str__(self) -> str:
        return self.layer.__name__


ARCHITECTURES = [
    Architecture(
        cell=ScoRNNCell,
        layer=ScoRNN,
        arguments={"units": 6, "negative_ones": 2},
        others={
            "negative_ones": 0.25,
            "recurrent_initializer": keras.initializers.Orthogonal(seed=1),
        },
        units=6,
        num_trainable=3,
        num_fixed=1,
        num_factorizations=1,
    ),
    Architecture(
        cell=AntisymmetricRNNCell,
        layer=AntisymmetricRNN,
        arguments={"units": 6, "step_size": 0.5, "diffusion": 0.25},
        others={
            "activation": "relu",
            "gated": True,
            "antisymmetric": False,
            "recurrent_initializer": keras.initializers.Orthogonal(seed=1),
        },
        units=6,
        num_trainable=3,
        num_fixed=0,
        num_factorizations=0,
        kernel_operations=frozenset({"GatherV2", "gather"}),
        matrices=(-0.25 * np.eye(6), reference.skew(np.ones(15), 6) - np.eye(6) / 4),
    ),
    Architecture(
        cell=EURNNCell,
        layer=EURNN,
        arguments={"units": 6, "capacity": 6},
        others={
            "units": 8,
            "capacity": 4,
            "style": "fft",
            "real_output": True,
            "recurrent_initializer": keras.initializers.Orthogonal(seed=1),
        },
        units=12,
        num_trainable=5,
        num_fixed=0,
        num_factorizations=0,
        kernel_operations=frozenset({"Cos", "cos"}),
        matrices=("orthogonal", np.eye(12)),
    ),
    Architecture(
        cell=GORUCell,
        layer=GORU,
        arguments={"units": 6, "style": "tunable"},
        others={
            "capacity": 4,
            "recurrent_initializer": keras.initializers.Orthogonal(seed=1),
            "gate_recurrent_initializer": keras.initializers.Orthogonal(seed=2),
            "reset_bias_initializer": "ones",
            "update_bias_initializer": "ones",
        },
        units=6,
        num_trainable=7,
        num_fixed=1,
        num_factorizations=0,
        kernel_operations=frozenset({"Cos", "cos"}),
    ),
    Architecture(
        cell=NNRNNCell,
        layer=NNRNN,
        arguments={"units": 6},
        others={
            "map": "cayley",
            "recurrent_initializer": keras.initializers.Orthogonal(seed=1),
            "angles_initializer": "zeros",
            "radii_initializer": "zeros",
            "upper_initializer": "ones",
            "radii_regularizer": UnitRadii(0.5),
            "upper_regularizer": keras.regularizers.L2(0.4),
        },
        units=6,
        num_trainable=6,
        num_fixed=0,
        num_factorizations=1,
    ),
    Architecture(
        cell=ScuRNNCell,
        layer=ScuRNN,
        arguments={"units": 3},
        others={
            "recurrent_initializer": keras.initializers.Orthogonal(seed=1),
            "trainable_initial_state": False,
        },
        units=6,
        num_trainable=6,
        num_fixed=0,
        num_factorizations=1,
    ),
    Architecture(
        cell=RestrictedURNNCell,
        layer=RestrictedURNN,
        arguments={"units": 3},
        others={
            "recurrent_initializer": UnitaryComposition(seed=1),
            "trainable_initial_state": False,
        },
        units=6,
        num_trainable=5,
        num_fixed=1,
        num_factorizations=0,
        matrices=(),
        kernel_operations=frozenset({"Cos", "cos"}),
    ),
    Architecture(
        cell=FullURNNCell,
        layer=FullURNN,
        arguments={"units": 3},
        others={
            "half_gradient": True,
            "recurrent_initializer": keras.initializers.Orthogonal(seed=1),
            "trainable_initial_state": False,
        },
        units=6,
        num_trainable=4,
        num_fixed=0,
        num_factorizations=0,
    ),
    Architecture(
        cell=ORNNCell,
        layer=ORNN,
        arguments={"units": 6},
        others={
            "reflections": 3,
            "recurrent_initializer": NormalReflectors(seed=1),
            "trainable_initial_state": False,
        },
        units=6,
        num_trainable=4,
        num_fixed=0,
        num_factorizations=1,
    ),
    Architecture(
        cell=SVDRNNCell,
        layer=SVDRNN,
        arguments={"units": 6, "spectral_margin": 0.25},
        others={
            "reflections": [3, 2],
            "spectral_margin": 0.5,
            "spectral_center": 0.75,
            "recurrent_initializer": UniformReflectors(seed=1),
        },
        units=6,
        num_trainable=5,
        num_fixed=0,
        num_factorizations=2,
    ),
    Architecture(
        cell=FactorizedRNNCell,
        layer=FactorizedRNN,
        arguments={"units": 6, "spectral_margin": 0.25},
        others={
            "spectral_margin": 0.5,
            "spectral_center": 0.75,
            "recurrent_initializer": keras.initializers.Orthogonal(seed=1),
        },
        units=6,
        num_trainable=5,
        num_fixed=2,
        num_factorizations=2,
    ),
    Architecture(
        cell=ENRNNCell,
        layer=ENRNN,
        # Small enough a matrix not to be divided at once, and not far from it.
        arguments={"long_term_units": 4, "short_term_units": 3, "negative_ones": 1},
        others={
            "negative_ones": 0.25,
            "coupling": False,
            "epsilon": 0.5,
            "recurrent_initializer": keras.initializers.Orthogonal(seed=1),
            "short_term_initializer": keras.initializers.Orthogonal(seed=2),
            "coupling_initializer": keras.initializers.Orthogonal(seed=3),
        },
        units=7,
        num_trainable=5,
        num_fixed=2,
        num_factorizations=1,
        # Arrays, which are of the shape of the long-term matrix: `test_enrnn.py`.
        matrices=("orthogonal", "identity"),
    ),
    Architecture(
        cell=OrthoRNNCell,
        layer=OrthoRNN,
        arguments={"units": 6, "parametrization": ScaledCayley(2)},
        others={
            "parametrization": ScaledCayley(0.25),
            "recurrent_initializer": keras.initializers.Orthogonal(seed=1),
        },
        units=6,
        num_trainable=3,
        num_fixed=1,
        num_factorizations=1,
    ),
]

# For every argument that all cells share a value that is not its default.
SHARED = {
    "activation": "tanh",
    "use_bias": False,
    "kernel_initializer": keras.initializers.GlorotUniform(seed=1),
    "bias_initializer": "ones",
    "initial_state_initializer": "ones",
    "kernel_regularizer": keras.regularizers.L2(0.1),
    "recurrent_regularizer": keras.regularizers.L1(0.2),
    "bias_regularizer": keras.regularizers.L2(0.3),
    "kernel_constraint": keras.constraints.MaxNorm(3.0),
    "bias_constraint": keras.constraints.NonNeg(),
    "trainable_initial_state": True,
    "dropout": 0.1,
    "recurrent_dropout": 0.2,
    "seed": 7,
}
