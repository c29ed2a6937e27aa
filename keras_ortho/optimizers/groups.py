"""The groups of variables for which the papers use different optimizers.

A cell assigns its variables to groups when it creates them. Optimizers are chosen by
group, whatever the names of the variables.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras

from keras_ortho.checks import check_choice

# Free variables that make a recurrent matrix, trained without constraints.
RECURRENT = "recurrent"
# Recurrent matrices that are variables themselves, and must be kept unitary.
UNITARY = "unitary"
# All other variables.
OTHERS = "others"
GROUPS = (RECURRENT, UNITARY, OTHERS)


def set_group(variable: Any, group: str) -> None:
    """Assigns a variable to a group.

    Args:
        variable: A Keras variable.
        group: `"recurrent"`, `"unitary"` or `"others"`.

    Raises:
        ValueError: If there is no such group.

    Example:
    >>> angles = keras.Variable([1.0])
    >>> set_group(angles, "recurrent")
    """
    check_choice("group", group, GROUPS)
    variable.optimizer_group = group


def group_of(variable: Any) -> str:
    """Returns the group of a variable.

    Args:
        variable: A Keras variable.

    Returns:
        The group that `set_group` assigned, or `"others"` if it assigned none.

    Example:
    >>> group_of(keras.Variable([1.0]))
    'others'
    """
    return getattr(variable, "optimizer_group", OTHERS)


@keras.saving.register_keras_serializable(package="keras_ortho")
class OptimizerGroups(keras.optimizers.OptimizerMap):
    """Maps each variable to the optimizer of its group, for a `GroupOptimizer`.

    The optimizers are named after their groups, so that Keras's callbacks log
    `learning_rate_recurrent` and `learning_rate_others`.

    Args:
        default_optimizer: Optimizer for the variables of all other groups.
        optimizer_map: Dictionary that maps groups to optimizers. Default: `None`.

    Raises:
        TypeError: If `default_optimizer` is not a Keras optimizer.
        ValueError: If a group does not exist, or its optimizer is not a Keras optimizer
            or wraps other optimizers.

    Example:
    >>> from keras_ortho.optimizers import GroupOptimizer
    >>> groups = OptimizerGroups(
    ...     keras.optimizers.Adam(), {"recurrent": keras.optimizers.RMSprop()}
    ... )
    >>> optimizer = GroupOptimizer(groups)
    """

    # A subclass may distinguish more groups.
    groups: ClassVar[tuple[str, ...]] = GROUPS

    def __init__(
        self,
        default_optimizer: keras.optimizers.Optimizer,
        optimizer_map: Mapping[str, keras.optimizers.Optimizer] | None = None,
    ) -> None:
        super().__init__(default_optimizer)
        for group, optimizer in (optimizer_map or {}).items():
            self[group] = optimizer
        default_optimizer.name = OTHERS

    def __setitem__(self, group: str, optimizer: keras.optimizers.Optimizer) -> None:
        """Sets the optimizer of a group that has none yet."""
        check_choice("group", group, self.groups)
        super().__setitem__(group, optimizer)
        optimizer.name = group

    def __call__(self, variable: Any) -> keras.optimizers.Optimizer:
        """Returns the optimizer of a variable."""
        return self[group_of(variable)]
