"""The groups of variables that the papers train by rules of their own.

A cell says which of its variables are of which group, where it creates them; optimizers
are chosen by that, whatever the variables are called.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

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
    _check_group(group, GROUPS)
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


def _check_group(group: Any, groups: tuple[str, ...]) -> None:
    if group not in groups:
        raise ValueError(f"`group` must be one of {groups}. Received: {group!r}")


@keras.saving.register_keras_serializable(package="keras_ortho")
class OptimizerGroups(keras.optimizers.OptimizerMap):
    """Gives a variable the optimizer of its group, in a `GroupOptimizer`.

    Args:
        default_optimizer: Optimizer of the variables of all other groups.
        optimizer_map: A dictionary of an optimizer for each group.

    Raises:
        ValueError: If there is no such group, or what should be an optimizer is none,
            or holds others.

    Example:
    >>> from keras_ortho.optimizers import GroupOptimizer
    >>> groups = OptimizerGroups(
    ...     keras.optimizers.Adam(), {"recurrent": keras.optimizers.RMSprop()}
    ... )
    >>> optimizer = GroupOptimizer(groups)
    """

    # A subclass that tells more apart has more.
    groups: ClassVar[tuple[str, ...]] = GROUPS

    def __init__(
        self,
        default_optimizer: keras.optimizers.Optimizer,
        optimizer_map: Mapping[str, keras.optimizers.Optimizer] | None = None,
    ) -> None:
        super().__init__(default_optimizer)
        for group, optimizer in (optimizer_map or {}).items():
            self[group] = optimizer

    def __setitem__(self, group: str, optimizer: keras.optimizers.Optimizer) -> None:
        """Sets the optimizer of a group, once."""
        _check_group(group, self.groups)
        super().__setitem__(group, optimizer)

    def __call__(self, variable: Any) -> keras.optimizers.Optimizer:
        """Finds the optimizer of a variable.

        Args:
            variable: A variable of Keras.

        Returns:
            Its optimizer.
        """
        return self[group_of(variable)]
