"""Which variable gets which optimizer."""

import contextlib
from typing import Any, TypeAlias

import keras

from keras_ortho.checks import check_fraction, check_number
from keras_ortho.optimizers.group_optimizer import GroupOptimizer
from keras_ortho.optimizers.groups import RECURRENT, UNITARY, OptimizerGroups
from keras_ortho.optimizers.rmsprop_tf1 import RMSpropTF1
from keras_ortho.optimizers.stiefel import StiefelDescent

# What `compile` takes for an optimizer.
Optimizer: TypeAlias = keras.optimizers.Optimizer | str
Rate: TypeAlias = float | keras.optimizers.schedules.LearningRateSchedule


def paper_optimizer(
    recurrent: Optimizer | None = None,
    others: Optimizer | None = None,
    unitary: Optimizer | None = None,
) -> GroupOptimizer:
    """Makes the papers' optimizers, for `model.compile`.

    They train the free variables of the recurrent matrix with a smaller rate than the
    other variables, and often with another algorithm. Where the matrix itself is the
    variable, as in `FullURNN`, they keep it unitary. Each optimizer has its own
    schedule and clipping; `global_clipnorm` covers the variables of that optimizer
    only. Like every `MultiOptimizer`, the result has no `learning_rate` of its own: the
    rates are those of its `optimizers`, in the order `recurrent`, `unitary`, `others`.

    Every cell of the package says which of its variables are which, and a
    `RecurrentCell` of your own does so, too: see its `optimizer_groups`.

    Args:
        recurrent: Optimizer of the free variables of the recurrent matrices, or its
            name, as in `compile`. Default: `RMSpropTF1(1e-4)`.
        others: Optimizer of all other variables. Default:
            `keras.optimizers.Adam(1e-3)`.
        unitary: Optimizer of the recurrent matrices that are variables themselves.
            Default: `StiefelDescent(1e-3)`.

    Returns:
        A `GroupOptimizer`, which is a `keras.optimizers.MultiOptimizer`.

    Raises:
        ValueError: If an argument is no optimizer nor the name of one, holds others, or
            has a `loss_scale_factor` of its own.

    Example:
    >>> model.compile(paper_optimizer(), loss="mse")

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 4
    - [Wisdom et al., 2016](https://arxiv.org/abs/1611.00035), section 5
    """
    return GroupOptimizer(
        OptimizerGroups(
            default_optimizer=_optimizer("others", others, keras.optimizers.Adam(1e-3)),
            optimizer_map={
                RECURRENT: _optimizer("recurrent", recurrent, RMSpropTF1(1e-4)),
                UNITARY: _optimizer("unitary", unitary, StiefelDescent(1e-3)),
            },
        )
    )


def two_rate_adam(
    learning_rate: Rate = 3e-3,
    recurrent_learning_rate: Rate = 3e-4,
    *,
    beta_2: float = 0.95,
    global_clipnorm: float | None = 1.0,
    ema_momentum: float | None = None,
) -> GroupOptimizer:
    """Makes Adam with a smaller rate for the recurrent matrices, for `model.compile`.

    With it `ScoRNN` learned copying and adding in less than half of the updates that it
    took with the papers' settings: `docs/settings.md`. A change of the recurrent matrix
    acts once in each step, so for sequences of a thousand steps take
    `recurrent_learning_rate=1e-4`. A single large gradient, as recurrent networks have
    them, holds back Adam for about `1 / (1 - beta_2)` updates: 20, where Keras's
    default 0.999 makes it 1 000.

    It is a `paper_optimizer` of two Adams: see there for which variables are which. A
    matrix that is a variable itself, as in `FullURNN`, gets `StiefelDescent(1e-3)`.

    Args:
        learning_rate: Rate of all variables but those of the recurrent matrices, a
            positive float or a schedule. Default: 3e-3.
        recurrent_learning_rate: Rate of the free variables of the recurrent matrices,
            the same. Default: 3e-4.
        beta_2: Decay of the mean square of the gradients, at least 0 and less than 1.
            Default: 0.95.
        global_clipnorm: Largest norm of the gradients of all variables that one of the
            two Adams trains, a positive float, or `None` for no limit. Default: 1.
        ema_momentum: Momentum of a moving average of the weights, at least 0 and less
            than 1. With 0.95 it is over about the last 20 updates. An average of the
            free variables makes a recurrent matrix that is as orthogonal. Have
            `keras.callbacks.SwapEMAWeights` among the callbacks to validate with it;
            the model has it after `fit`. Default: `None`, no average.

    Returns:
        A `GroupOptimizer`, which is a `keras.optimizers.MultiOptimizer`.

    Raises:
        ValueError: If an argument is out of its range.

    Example:
    >>> model.compile(two_rate_adam(), loss="mse")

    Reference:

    - [Kingma and Ba, 2015](https://arxiv.org/abs/1412.6980), algorithm 1
    """
    options: dict[str, Any] = {
        "beta_2": check_fraction("beta_2", beta_2),
        "global_clipnorm": global_clipnorm,
    }
    if global_clipnorm is not None:
        check_number("global_clipnorm", global_clipnorm, positive=True)
    if ema_momentum is not None:
        options["ema_momentum"] = check_fraction("ema_momentum", ema_momentum)
        options["use_ema"] = True
    rates = {
        "learning_rate": learning_rate,
        "recurrent_learning_rate": recurrent_learning_rate,
    }
    others, recurrent = (
        keras.optimizers.Adam(_rate(name, rate), **options)
        for name, rate in rates.items()
    )
    return paper_optimizer(recurrent=recurrent, others=others)


def _rate(name: str, rate: Rate) -> Rate:
    if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        return rate
    return check_number(name, rate, positive=True)


def _optimizer(
    name: str, given: Optimizer | None, usual: keras.optimizers.Optimizer
) -> keras.optimizers.Optimizer:
    """The optimizer that an argument stands for."""
    if given is None:
        return usual
    known = None
    if isinstance(given, str | keras.optimizers.Optimizer):
        with contextlib.suppress(ValueError):  # Keras knows no such name.
            known = keras.optimizers.get(given)
    several = keras.optimizers.MultiOptimizer | keras.optimizers.LossScaleOptimizer
    if known is None or isinstance(known, several):
        raise ValueError(
            f"`{name}` must be one optimizer of Keras, or the name of one, as in "
            f"`compile`. Received: {name}={given!r}"
        )
    if known.loss_scale_factor is not None:
        raise ValueError(
            f"`{name}` must have no `loss_scale_factor` of its own: set that of the "
            f"returned optimizer. Received: loss_scale_factor={known.loss_scale_factor}"
        )
    return known
