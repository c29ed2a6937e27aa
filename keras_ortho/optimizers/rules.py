"""Functions that combine optimizers for the groups of variables."""

from typing import Any, TypeAlias

import keras

from keras_ortho.checks import check_fraction, check_number
from keras_ortho.optimizers.groups import (
    RECURRENT,
    UNITARY,
    GroupOptimizer,
    OptimizerGroups,
)
from keras_ortho.optimizers.rmsprop_tf1 import RMSpropTF1
from keras_ortho.optimizers.stiefel import StiefelDescent

# Types that `compile` accepts as an optimizer.
Optimizer: TypeAlias = keras.optimizers.Optimizer | str
Rate: TypeAlias = float | keras.optimizers.schedules.LearningRateSchedule


def paper_optimizer(
    recurrent: Optimizer | None = None,
    others: Optimizer | None = None,
    unitary: Optimizer | None = None,
) -> GroupOptimizer:
    """Makes an optimizer for `model.compile` that follows the papers.

    They train the free variables of the recurrent matrix with a smaller learning rate
    than the other variables, and often with another algorithm. If the matrix itself is
    the variable, as in `FullURNN`, its optimizer keeps it unitary. The `optimizers` of
    the result are `recurrent`, `unitary` and `others`, in this order, once it is built
    those that the model needs; callbacks log `learning_rate_recurrent` and so on. A
    `RecurrentCell` of your own assigns its variables by `optimizer_groups`.

    Args:
        recurrent: Optimizer for the free variables of the recurrent matrices, or its
            name, as in `compile`. Default: `RMSpropTF1(1e-4)`.
        others: That of all other variables. Default: `keras.optimizers.Adam(1e-3)`.
        unitary: That of recurrent matrices that are variables themselves. Default:
            `StiefelDescent(1e-3)`.

    Returns:
        A `GroupOptimizer`, which is a `keras.optimizers.MultiOptimizer`.

    Raises:
        ValueError: If an argument is not a single Keras optimizer or the name of one.

    Example:
    >>> model.compile(paper_optimizer(), loss="mse")

    Reference:
    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 5
    - [Wisdom et al., 2016](https://arxiv.org/abs/1611.00035), section 5
    """
    get = keras.optimizers.get
    groups = {
        RECURRENT: get(recurrent or RMSpropTF1(1e-4)),
        UNITARY: get(unitary or StiefelDescent()),
    }
    others = get(others or keras.optimizers.Adam(1e-3))
    return GroupOptimizer(OptimizerGroups(others, groups))


def two_rate_adam(
    learning_rate: Rate = 3e-3,
    recurrent_learning_rate: Rate = 3e-4,
    *,
    beta_2: float = 0.95,
    global_clipnorm: float | None = 1.0,
    ema_momentum: float | None = None,
    gradient_accumulation_steps: int | None = None,
) -> GroupOptimizer:
    """Makes Adam with a smaller learning rate for recurrent matrices, for `compile`.

    With it, `ScoRNN` learned copying and adding in less than half of the updates of the
    papers' settings: see `docs/settings.md`. Use `recurrent_learning_rate=1e-4` for
    sequences of a thousand steps. The result is that of `paper_optimizer` with two
    Adams, and `StiefelDescent(1e-3)` for a matrix that is a variable itself.

    Args:
        learning_rate: Learning rate of all variables except those of the recurrent
            matrices, a positive float or a schedule. Default: 3e-3.
        recurrent_learning_rate: That of the free variables of the recurrent matrices.
            Default: 3e-4.
        beta_2: Decay rate of the mean square of the gradients, in `[0, 1)`. Default:
            0.95; a large gradient slows Adam down for about `1 / (1 - beta_2)` updates.
        global_clipnorm: Largest norm of the gradients of all variables that one of the
            two Adams trains, a positive float, or `None` for no clipping. Default: 1.
        ema_momentum: Momentum in `[0, 1)` of a moving average of the weights, which the
            model has after `fit`. `keras.callbacks.SwapEMAWeights` validates with it.
            Default: `None`, no average.
        gradient_accumulation_steps: Number of batches whose gradients are averaged for
            one update, an integer of at least 2. Default: `None`, one batch.

    Returns:
        A `GroupOptimizer`, which is a `keras.optimizers.MultiOptimizer`.

    Raises:
        ValueError: If an argument is out of range.

    Example:
    >>> model.compile(two_rate_adam(), loss="mse")

    Reference:
    - [Kingma and Ba, 2015](https://arxiv.org/abs/1412.6980), algorithm 1
    """
    if global_clipnorm is not None:
        check_number("global_clipnorm", global_clipnorm, positive=True)
    options: dict[str, Any] = {
        "beta_2": check_fraction("beta_2", beta_2),
        "global_clipnorm": global_clipnorm,
        "gradient_accumulation_steps": gradient_accumulation_steps,
    }
    if ema_momentum is not None:
        options |= {"use_ema": True, "ema_momentum": ema_momentum}
    return paper_optimizer(
        recurrent=keras.optimizers.Adam(recurrent_learning_rate, **options),
        others=keras.optimizers.Adam(learning_rate, **options),
        unitary=StiefelDescent(gradient_accumulation_steps=gradient_accumulation_steps),
    )
