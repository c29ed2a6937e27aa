"""The groups of variables for which the papers use different optimizers."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import keras

from keras_ortho.backend.replicas import clip_over_replicas
from keras_ortho.checks import check, check_choice

# Free variables that make a recurrent matrix; recurrent matrices that are variables
# themselves, and must be kept unitary; all other variables.
GROUPS = RECURRENT, UNITARY, OTHERS = "recurrent", "unitary", "others"


def set_group(variable: Any, group: str) -> None:
    """Assigns a variable to a group.

    Args:
        variable: A Keras variable.
        group: `"recurrent"`, `"unitary"` or `"others"`.

    Raises:
        ValueError: If there is no such group.

    Example:
    >>> set_group(keras.Variable([1.0]), "recurrent")
    """
    check_choice("group", group, GROUPS)
    variable.optimizer_group = group


def group_of(variable: Any) -> str:
    """Returns the group that `set_group` assigned to a variable, or `"others"`.

    Args:
        variable: A Keras variable.

    Returns:
        The group, a string.

    Example:
    >>> group_of(keras.Variable([1.0]))
    'others'
    """
    return getattr(variable, "optimizer_group", OTHERS)


@keras.saving.register_keras_serializable(package="keras_ortho")
class OptimizerGroups(keras.optimizers.OptimizerMap):
    """Maps variables to the optimizers of their groups, which are named after these.

    Args:
        default_optimizer: Optimizer for the variables of all other groups.
        optimizer_map: Dictionary that maps groups to optimizers. Default: `None`.

    Raises:
        TypeError: If `default_optimizer` is not a Keras optimizer.
        ValueError: If a group does not exist, or its optimizer is not a single one.

    Example:
    >>> adam, rmsprop = keras.optimizers.Adam(), keras.optimizers.RMSprop()
    >>> groups = OptimizerGroups(adam, {"recurrent": rmsprop})
    """

    # A subclass may distinguish more groups.
    groups: ClassVar[tuple[str, ...]] = GROUPS

    def __init__(
        self,
        default_optimizer: keras.optimizers.Optimizer,
        optimizer_map: Mapping[str, keras.optimizers.Optimizer] | None = None,
    ) -> None:
        super().__init__(default_optimizer)
        self.update(optimizer_map or {})
        default_optimizer.name = OTHERS

    def __setitem__(self, group: str, optimizer: keras.optimizers.Optimizer) -> None:
        """Sets the optimizer of a group that has none yet."""
        check_choice("group", group, self.groups)
        super().__setitem__(group, optimizer)
        optimizer.name = group

    def __call__(self, variable: Any) -> keras.optimizers.Optimizer:
        """Returns the optimizer of a variable."""
        return self[group_of(variable)]


@keras.saving.register_keras_serializable(package="keras_ortho")
class GroupOptimizer(keras.optimizers.MultiOptimizer):
    """A `MultiOptimizer` whose optimizers may have nothing to train.

    Gradients of the replicas of a `tf.distribute` strategy are added up before they are
    clipped.

    Args:
        optimizer_map: A `keras.optimizers.OptimizerMap`, such as `OptimizerGroups`.
        loss_scale_factor: See `keras.optimizers.MultiOptimizer`. Default: `None`.
        name: Name of the optimizer. Default: `None`, derived from the class name.

    Raises:
        ValueError: In training, if the optimizer was built for other variables.

    Example:
    >>> from keras_ortho.optimizers import GroupOptimizer, OptimizerGroups
    >>> adam, rmsprop = keras.optimizers.Adam(), keras.optimizers.RMSprop()
    >>> groups = OptimizerGroups(adam, {"recurrent": rmsprop})
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
        """The optimizers, the default one last; once built, those that train."""
        return [x for x in self._inner_optimizers if x._trainable_variables] or list(
            self._inner_optimizers
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
        # Keras takes all variables only, each with a gradient in its group.
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
        # On JAX, the first method that a model calls with its variables.
        self._check_known(var_list)
        super().finalize_variable_values(var_list)

    def exclude_from_weight_decay(
        self,
        var_list: Sequence[Any] | None = None,
        var_names: Sequence[str] | None = None,
    ) -> None:
        """Excludes variables from the weight decay of all optimizers."""
        super().exclude_from_weight_decay(var_list, var_names)
        for optimizer in self._inner_optimizers:
            optimizer.exclude_from_weight_decay(var_list, var_names)

    def _check_known(self, variables: Sequence[Any]) -> None:
        wanted = "be those for which the optimizer was built: each model needs its own"
        for variable in variables:
            known = self._var_key(variable) in self._var_to_optimizer_idx
            check(known, "trainable_variables", wanted, variable.path)


def optimizers_within(model: keras.Model) -> list[keras.optimizers.Optimizer]:
    """Lists the optimizers inside that of a compiled model, or that one itself."""
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    return getattr(optimizer, "optimizers", [optimizer])
