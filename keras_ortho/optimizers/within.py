"""The optimizers inside the optimizer of a compiled model."""

import keras


def optimizers_within(model: keras.Model) -> list[keras.optimizers.Optimizer]:
    """Lists the optimizers inside that of a compiled model, or that one itself."""
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    return getattr(optimizer, "optimizers", [optimizer])
