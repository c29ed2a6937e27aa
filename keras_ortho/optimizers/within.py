"""The optimizers inside the optimizer of a compiled model."""

import keras


def optimizers_within(model: keras.Model) -> list[keras.optimizers.Optimizer]:
    """Lists the optimizers that update the weights of a model.

    Args:
        model: A compiled model.

    Returns:
        The optimizers inside that of the model, such as those of `paper_optimizer`, or
        a list of that optimizer itself if it contains no others.

    Example:
    >>> model.compile("adam", "mse")
    >>> [each.name for each in optimizers_within(model)]
    ['adam']
    """
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    return getattr(optimizer, "optimizers", [optimizer])
