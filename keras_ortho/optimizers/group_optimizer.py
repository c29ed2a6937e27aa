"""A `MultiOptimizer` for groups of variables that a model may lack."""

from collections.abc import Sequence
from typing import Any

import keras


@keras.saving.register_keras_serializable(package="keras_ortho")
class GroupOptimizer(keras.optimizers.MultiOptimizer):
    """A `MultiOptimizer` whose optimizers may have nothing to train.

    A model may have no recurrent matrix, or one that is not trained. The optimizer
    for it is built nevertheless, as `keras.callbacks.SwapEMAWeights` requires.

    Args:
        optimizer_map: A `keras.optimizers.OptimizerMap`, such as `OptimizerGroups`.
        loss_scale_factor: See `keras.optimizers.MultiOptimizer`. Default: `None`.
        name: Name of the optimizer. Default: `None`, derived from the class name.

    Raises:
        ValueError: In `apply`, if the optimizer was built for other variables.

    Example:
    >>> from keras_ortho.optimizers import GroupOptimizer, OptimizerGroups
    >>> groups = OptimizerGroups(
    ...     keras.optimizers.Adam(), {"recurrent": keras.optimizers.RMSprop()}
    ... )
    >>> model.compile(GroupOptimizer(groups), "mse")
    """

    def build(self, var_list: Sequence[Any]) -> None:
        """Creates the variables of all optimizers.

        Args:
            var_list: The variables to train.
        """
        super().build(var_list)
        for optimizer in self.optimizers:
            if not optimizer.built:
                optimizer.build([])

    def apply(
        self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None
    ) -> None:
        """Updates the variables with their gradients.

        Args:
            grads: List of gradients, one for each variable.
            trainable_variables: The variables, all or some of those for which the
                optimizer was built. Default: `None`, all.

        Raises:
            ValueError: If the optimizer was built for other variables.
        """
        if self.built and trainable_variables:
            for variable in trainable_variables:
                if self._var_key(variable) not in self._var_to_optimizer_idx:
                    raise ValueError(
                        "`trainable_variables` must be those for which the optimizer "
                        "was built: each model needs its own optimizer. Received: "
                        f"{variable.path}"
                    )
            if len(grads) == len(trainable_variables):
                self._apply_to_some(grads, trainable_variables)
                return
        super().apply(grads, trainable_variables)

    def _apply_to_some(self, grads: Sequence[Any], variables: Sequence[Any]) -> None:
        # As Keras does, which takes all variables only: a model may be trained in
        # part, as when its first layers are frozen.
        groups: dict[int, list[tuple[Any, Any]]] = {}
        for grad, variable in zip(grads, variables, strict=True):
            index = self._var_to_optimizer_idx[self._var_key(variable)]
            groups.setdefault(index, []).append((grad, variable))
        for index, pairs in groups.items():
            self.optimizers[index].apply(*map(list, zip(*pairs, strict=True)))
        self.iterations.assign_add(1)
