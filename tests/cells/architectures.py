"""The architectures that the shared tests hold to one standard.

A new one gets all of `test_standards.py` and `test_program.py` by being listed.
"""

import dataclasses
from typing import Any

import keras

from keras_ortho import RecurrentCell, RecurrentLayer, ScoRNN, ScoRNNCell


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
    """

    cell: type[RecurrentCell]
    layer: type[RecurrentLayer]
    arguments: dict[str, Any]
    others: dict[str, Any]
    units: int
    num_trainable: int
    num_fixed: int
    num_factorizations: int

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
