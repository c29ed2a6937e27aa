"""The architectures that the shared tests hold to one standard.

A new one gets all of `test_standards.py` and `test_program.py` by its line in
`keras_ortho/architectures.py`.
"""

import dataclasses
from typing import Any

import keras

from keras_ortho import RecurrentLayer, architectures, cells, initializers
from keras_ortho.parametrizations import (
    GivensOrthogonal,
    Heads,
    Parametrization,
    Rebased,
    ScaledCayley,
)


@dataclasses.dataclass(frozen=True)
class Architecture:
    """What tests need to know of an architecture, most of which its classes tell."""

    layer: type[RecurrentLayer]
    # Small arguments to make it, beside its units.
    given: dict[str, Any] = dataclasses.field(default_factory=dict)
    # Values of arguments that are not the default, where `_other` knows none.
    changed: dict[str, Any] = dataclasses.field(default_factory=dict)
    # Factorizations that make its kernel, or any number, all of them outside of loops.
    num_factorizations: int | None = None
    # Operations of the program by which a kernel is known that none of them makes.
    kernel_operations: frozenset[str] = frozenset()
    # Initializers of a matrix, where the parametrization cannot sample one.
    matrices: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return self.layer.__name__

    @property
    def cell(self) -> Any:
        """Class of the cell."""
        return self.layer.cell_class

    @property
    def arguments(self) -> dict[str, Any]:
        """Small arguments to make either."""
        units = 3 if self.cell.complex_state else 6
        names = self.cell.argument_names()
        return {n: units for n in names if n.endswith("units")} | self.given

    @property
    def others(self) -> dict[str, Any]:
        """Of each argument of its own a value that is not its default."""
        config = self.cell(**self.arguments).get_config()
        return {
            name: _other(name, config[name])
            for name in self.cell.argument_names()
            if name not in {*self.arguments, *self.changed}
            and SHARED.get(name, config[name]) == config[name]
        } | self.changed

    @property
    def units(self) -> int:
        """The size of the state and the output that `arguments` give."""
        counts = [n for name, n in self.arguments.items() if name.endswith("units")]
        return sum(counts) * (2 if self.cell.complex_state else 1)

    def start_matrices(self) -> list[Any]:
        """Initializers of a matrix, or arrays, that it can start from."""
        kind = self.cell(**self.arguments).parametrization
        none = type(kind).inverse is Parametrization.inverse
        if self.matrices is not None or none:
            return [*(self.matrices or ())]
        return [kind.sample(self.arguments["units"], seed=0)]


def _other(name: str, default: Any) -> Any:
    """A value of an argument that is not its default."""
    if name == "recurrent_initializer" and default:  # Of its kind, with a seed.
        return type(initializers.get(default))(seed=1)
    if name.endswith("initializer"):
        return keras.initializers.Orthogonal(seed=len(name))
    if name.endswith("regularizer"):
        return keras.regularizers.L2(0.4)
    if isinstance(default, bool):
        return not default
    if isinstance(default, int):
        return default + 1
    return (
        default / 2 or 0.5 if isinstance(default, float) else {"tanh": "relu"}[default]
    )


_COSINES = frozenset({"Cos", "cos"})
_SPECIAL: dict[str, dict[str, Any]] = {
    "ScoRNN": {
        "given": {"negative_ones": 2},
        "changed": {"heads": 2, "rebase_every": 5},
        "num_factorizations": 1,
    },
    "ScuRNN": {"changed": {"heads": 3, "rebase_every": 5}, "num_factorizations": 1},
    "ENRNN": {
        # Small enough a matrix not to be divided at once, and not far from it.
        "given": {"long_term_units": 4, "short_term_units": 3, "negative_ones": 1},
        "num_factorizations": 1,
        # Arrays, which are of the shape of the long-term matrix: `test_enrnn.py`.
        "matrices": ("orthogonal", "identity"),
    },
    "AntisymmetricRNN": {
        "given": {"step_size": 0.5, "diffusion": 0.25},
        "num_factorizations": 0,
        "kernel_operations": frozenset({"GatherV2", "gather"}),
    },
    "SVDRNN": {
        "given": {"spectral_margin": 0.25},
        "changed": {"reflections": [3, 2]},
        "num_factorizations": 2,
    },
    "ORNN": {"changed": {"reflections": 3}, "num_factorizations": 1},
    "RestrictedURNN": {"num_factorizations": 0, "kernel_operations": _COSINES},
    "FullURNN": {"num_factorizations": 0},
    "EURNN": {
        "given": {"units": 6, "capacity": 6},
        "changed": {"units": 8, "capacity": 4, "style": "fft"},
        "num_factorizations": 0,
        "kernel_operations": _COSINES,
    },
    "GORU": {
        "given": {"units": 8},
        "changed": {"parametrization": GivensOrthogonal(4, "tunable")},
        "num_factorizations": 1,
    },
    "NNRNN": {"changed": {"map": "cayley"}, "num_factorizations": 1},
    "FactorizedRNN": {"given": {"spectral_margin": 0.25}, "num_factorizations": 2},
    "OrthoRNN": {
        "given": {
            "units": 8,
            "parametrization": Heads(
                Rebased(ScaledCayley(1), rebase_every=2), heads=2, mix_inputs=False
            ),
        },
        "num_factorizations": 2,
    },
}
ARCHITECTURES = [
    Architecture(getattr(cells, name), **_SPECIAL.get(name, {}))
    for name in (*architectures.ARCHITECTURES, "OrthoRNN")
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
