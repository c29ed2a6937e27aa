"""A `MultiOptimizer` for groups of variables that a model may lack."""

from collections.abc import Sequence
from typing import Any, NoReturn

import keras

from keras_ortho.backend.replicas import clip_over_replicas


@keras.saving.register_keras_serializable(package="keras_ortho")
class GroupOptimizer(keras.optimizers.MultiOptimizer):
    """A `MultiOptimizer` whose optimizers may have nothing to train.

    A model may have no recurrent matrix, or one that is not trained. The optimizer
    for it then does no step, and `optimizers` leaves it out.

    `tf.distribute` strategies clip as one device does: first the gradients of all
    replicas are added up, then they are clipped. Keras's optimizers by themselves clip
    the gradient of each replica.

    Args:
        optimizer_map: A `keras.optimizers.OptimizerMap`, such as `OptimizerGroups`.
        loss_scale_factor: See `keras.optimizers.MultiOptimizer`. Default: `None`.
        name: Name of the optimizer. Default: `None`, derived from the class name.

    Raises:
        ValueError: In training, if the optimizer was built for other variables.

    Example:
    >>> from keras_ortho.optimizers import GroupOptimizer, OptimizerGroups
    >>> groups = OptimizerGroups(
    ...     keras.optimizers.Adam(), {"recurrent": keras.optimizers.RMSprop()}
    ... )
    >>> model.compile(GroupOptimizer(groups), "mse")
    """

    def build(self, var_list: Sequence[Any]) -> None:
        """Creates the variables of all optimizers."""
        super().build(var_list)
        for optimizer in self._inner_optimizers:
            if not optimizer.built:  # Keras sets the weights of built ones only.
                optimizer.build([])

    @property
    def optimizers(self) -> list[keras.optimizers.Optimizer]:
        """The optimizers, in the order of the groups, the one for the others last.

        Once the optimizer is built, only those that have variables to train.
        """
        return [x for x in self._inner_optimizers if x._trainable_variables] or list(
            self._inner_optimizers
        )

    @property
    def learning_rate(self) -> NoReturn:
        """Raises an error: each optimizer has its own, as `optimizers` shows.

        Raises:
            AttributeError: Always.
        """
        raise AttributeError(self._own_rates())

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        raise AttributeError(self._own_rates())

    def _own_rates(self) -> str:
        names = ", ".join(f"{i}: {each.name}" for i, each in enumerate(self.optimizers))
        return (
            "Each group of variables has its own learning rate. Read or set the "
            "`learning_rate` of one of the `optimizers`, such as "
            f"`optimizer.optimizers[0].learning_rate`. Received: optimizers {names}"
        )

    def apply(
        self, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None
    ) -> None:
        """Updates the variables with their gradients."""
        variables = trainable_variables
        if variables is None and self.built:
            variables = self._trainable_variables
        if not variables or len(grads) != len(variables):
            super().apply(grads, variables)  # There is nothing to do, or an error.
            return
        if not self.built:
            self.build(variables)
        self._check_known(variables)
        # As Keras does, which takes all variables only, each with a gradient in its
        # group: a model may be trained in part, as when its first layers are frozen.
        groups: dict[int, list[tuple[Any, Any]]] = {}
        with_gradients = self._filter_empty_gradients(grads, variables)
        for grad, variable in zip(*with_gradients, strict=True):
            index = self._var_to_optimizer_idx[self._var_key(variable)]
            groups.setdefault(index, []).append((grad, variable))
        for index, pairs in groups.items():
            optimizer = self._inner_optimizers[index]
            gradients, trained = map(list, zip(*pairs, strict=True))
            gradients = clip_over_replicas(optimizer, gradients)
            decay = optimizer.weight_decay
            if not any(map(optimizer._use_weight_decay, trained)):
                # Keras on PyTorch fails if there is nothing to multiply.
                optimizer.weight_decay = None
            optimizer.apply(gradients, trained)
            optimizer.weight_decay = decay
        self.iterations.assign_add(1)

    def finalize_variable_values(self, var_list: Sequence[Any]) -> None:
        """Sets the variables to their averages, if there are any, after training."""
        # On JAX this is the first method that a model calls with its variables.
        self._check_known(var_list)
        super().finalize_variable_values(var_list)

    def exclude_from_weight_decay(
        self,
        var_list: Sequence[Any] | None = None,
        var_names: Sequence[str] | None = None,
    ) -> None:
        """Excludes variables from the weight decay of all optimizers.

        Args:
            var_list: The variables. Default: `None`.
            var_names: Words, any of which is in the name of a variable.
                Default: `None`.
        """
        super().exclude_from_weight_decay(var_list, var_names)
        for optimizer in self._inner_optimizers:
            optimizer.exclude_from_weight_decay(var_list, var_names)

    def _check_known(self, variables: Sequence[Any]) -> None:
        for variable in variables:
            if self._var_key(variable) not in self._var_to_optimizer_idx:
                raise ValueError(
                    "`trainable_variables` must be those for which the optimizer was "
                    "built: each model needs its own optimizer. Received: "
                    f"{variable.path}"
                )
