"""Keras's optimizer of several, for groups that a model need not have."""

from collections.abc import Sequence
from typing import Any

import keras


@keras.saving.register_keras_serializable(package="keras_ortho")
class GroupOptimizer(keras.optimizers.MultiOptimizer):
    """A `MultiOptimizer` of which one optimizer may have nothing to train.

    That one is built, too, as `keras.callbacks.SwapEMAWeights` needs it: a model may
    have no recurrent matrix, or one that is not trained.

    Args:
        optimizer_map: A `keras.optimizers.OptimizerMap`, such as `OptimizerGroups`.
        loss_scale_factor: As for `keras.optimizers.MultiOptimizer`. Default: `None`.
        name: Its name. Default: `None`, made of that of the class.

    Raises:
        ValueError: When it is given variables that it was not built for.

    Example:
    >>> from keras_ortho.optimizers import GroupOptimizer, OptimizerGroups
    >>> groups = OptimizerGroups(
    ...     keras.optimizers.Adam(), {"recurrent": keras.optimizers.RMSprop()}
    ... )
    >>> model.compile(GroupOptimizer(groups), "mse")
    """

    def build(self, var_list: Sequence[Any]) -> None:
        """Makes the variables of all optimizers.

        Args:
            var_list: What is trained.
        """
        super().build(var_list)
        for optimizer in self.optimizers:
            if not optimizer.built:
                optimizer.build([])

    def apply(
        self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None
    ) -> None:
        """Updates variables by their gradients.

        Args:
            grads: A gradient for each variable.
            trainable_variables: The variables. Default: `None`, those that it was
                built for.

        Raises:
            ValueError: If it was built for others.
        """
        if self.built:
            for variable in trainable_variables or ():
                if self._var_key(variable) not in self._var_to_optimizer_idx:
                    raise ValueError(
                        "`trainable_variables` must be those that the optimizer was "
                        "built for: give every model an optimizer of its own. "
                        f"Received: {variable.path}"
                    )
        super().apply(grads, trainable_variables)
