"""The optimizers within the one that a model is compiled with."""

import keras


def optimizers_within(model: keras.Model) -> list[keras.optimizers.Optimizer]:
    """Lists what updates the weights of a model.

    Args:
        model: A compiled model.

    Returns:
        The optimizers within that of the model, such as those of `paper_optimizer`; or
        that itself, if it holds none.

    Example:
    >>> model.compile("adam", "mse")
    >>> [each.name for each in optimizers_within(model)]
    ['adam']
    """
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    return getattr(optimizer, "optimizers", [optimizer])
