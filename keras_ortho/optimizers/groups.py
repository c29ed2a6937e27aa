"""The groups of variables that the papers train by rules of their own.

A cell says which of its variables are of which group, where it creates them; optimizers
are chosen by that, whatever the variables are called.
"""

from typing import Any

import keras

# The free variables that make a recurrent matrix, without a constraint.
RECURRENT = "recurrent"
# A recurrent matrix that is a variable itself, and must be kept unitary.
UNITARY = "unitary"
# All others.
OTHERS = "others"
GROUPS = (RECURRENT, UNITARY, OTHERS)


def set_group(variable: Any, group: str) -> None:
    """Says of which group a variable is.

    Args:
        variable: A variable of Keras.
        group: `"recurrent"`, `"unitary"` or `"others"`.

    Raises:
        ValueError: If there is no such group.

    Example:
    >>> angles = keras.Variable([1.0])
    >>> set_group(angles, "recurrent")
    """
    if group not in GROUPS:
        raise ValueError(f"`group` must be one of {GROUPS}. Received: {group!r}")
    variable.optimizer_group = group


def group_of(variable: Any) -> str:
    """Tells of which group a variable is.

    Args:
        variable: A variable of Keras.

    Returns:
        What `set_group` was given, `"others"` without.

    Example:
    >>> group_of(keras.Variable([1.0]))
    'others'
    """
    return getattr(variable, "optimizer_group", OTHERS)


@keras.saving.register_keras_serializable(package="keras_ortho")
class OptimizerGroups(keras.optimizers.OptimizerMap):
    """Gives a variable the optimizer of its group, in a `MultiOptimizer` of Keras.

    Args:
        default_optimizer: Optimizer of the variables of all other groups.
        optimizer_map: A dictionary of an optimizer for each group.

    Example:
    >>> groups = OptimizerGroups(
    ...     keras.optimizers.Adam(), {"recurrent": keras.optimizers.RMSprop()}
    ... )
    >>> optimizer = keras.optimizers.MultiOptimizer(groups)
    """

    def __call__(self, variable: Any) -> keras.optimizers.Optimizer:
        """Finds the optimizer of a variable.

        Args:
            variable: A variable of Keras.

        Returns:
            Its optimizer.
        """
        return self[group_of(variable)]
