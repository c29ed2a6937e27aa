"""Functions that combine optimizers for the groups of variables."""

import contextlib
from typing import Any, TypeAlias

import keras

from keras_ortho.checks import check_count, check_fraction, check_number
from keras_ortho.optimizers.group_optimizer import GroupOptimizer
from keras_ortho.optimizers.groups import RECURRENT, UNITARY, OptimizerGroups
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

    The papers train the free variables of the recurrent matrix with a smaller learning
    rate than the other variables, and often with another algorithm. If the matrix
    itself is the variable, as in `FullURNN`, its optimizer keeps it unitary. Each
    optimizer has its own schedule and clipping; `global_clipnorm` covers only the
    variables of that optimizer. The learning rates are those of the `optimizers` of the
    result: `recurrent`, `unitary` and `others`, in this order, and once it is built,
    those that the model has. Callbacks log them as `learning_rate_recurrent` and so on.

    Every cell of the package assigns its variables to these groups, and so does a
    `RecurrentCell` of your own: see its `optimizer_groups`.

    Args:
        recurrent: Optimizer for the free variables of the recurrent matrices, or its
            name, as in `compile`. Default: `RMSpropTF1(1e-4)`.
        others: Optimizer for all other variables. Default:
            `keras.optimizers.Adam(1e-3)`.
        unitary: Optimizer for recurrent matrices that are variables themselves.
            Default: `StiefelDescent(1e-3)`.

    Returns:
        A `GroupOptimizer`, which is a `keras.optimizers.MultiOptimizer`.

    Raises:
        ValueError: If an argument is neither a Keras optimizer nor the name of one, if
            it wraps other optimizers, or if it has its own `loss_scale_factor`.

    Example:
    >>> model.compile(paper_optimizer(), loss="mse")

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 5
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
    gradient_accumulation_steps: int | None = None,
) -> GroupOptimizer:
    """Makes Adam with a smaller learning rate for recurrent matrices, for `compile`.

    With it, `ScoRNN` learned copying and adding in less than half of the updates that
    it took with the papers' settings: see `docs/settings.md`. A change of the recurrent
    matrix acts at every time step, so use `recurrent_learning_rate=1e-4` for sequences
    of a thousand steps. A single large gradient, which is common in recurrent networks,
    slows Adam down for about `1 / (1 - beta_2)` updates: 20 here, but 1 000 with
    Keras's default of 0.999.

    The result is that of `paper_optimizer` with two Adams: see there for the groups of
    variables. A matrix that is a variable itself, as in `FullURNN`, is trained by
    `StiefelDescent(1e-3)`.

    Args:
        learning_rate: Learning rate of all variables except those of the recurrent
            matrices, a positive float or a schedule. Default: 3e-3.
        recurrent_learning_rate: Learning rate of the free variables of the recurrent
            matrices, a positive float or a schedule. Default: 3e-4.
        beta_2: Decay rate of the mean square of the gradients, at least 0 and less than
            1. Default: 0.95.
        global_clipnorm: Largest norm of the gradients of all variables that one of the
            two Adams trains, a positive float, or `None` for no clipping. Default: 1.
        ema_momentum: Momentum of a moving average of the weights, at least 0 and less
            than 1. With 0.95, it averages about the last 20 updates. An average of the
            free variables yields a recurrent matrix that is as orthogonal. Add
            `keras.callbacks.SwapEMAWeights` to the callbacks to validate with the
            average; after `fit`, the model has the averaged weights. Default: `None`,
            no average.
        gradient_accumulation_steps: Number of batches whose gradients are averaged for
            one update, an integer of at least 2. With `ema_momentum`, Keras still
            averages the weights after each batch. Default: `None`, one batch.

    Returns:
        A `GroupOptimizer`, which is a `keras.optimizers.MultiOptimizer`.

    Raises:
        ValueError: If an argument is out of range.

    Example:
    >>> model.compile(two_rate_adam(), loss="mse")

    Reference:

    - [Kingma and Ba, 2015](https://arxiv.org/abs/1412.6980), algorithm 1
    """
    options: dict[str, Any] = {
        "beta_2": check_fraction("beta_2", beta_2),
        "global_clipnorm": global_clipnorm,
        "gradient_accumulation_steps": gradient_accumulation_steps,
    }
    if global_clipnorm is not None:
        check_number("global_clipnorm", global_clipnorm, positive=True)
    if gradient_accumulation_steps is not None:
        check_count("gradient_accumulation_steps", gradient_accumulation_steps)
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
    unitary = StiefelDescent(
        1e-3, gradient_accumulation_steps=gradient_accumulation_steps
    )
    return paper_optimizer(recurrent=recurrent, others=others, unitary=unitary)


def _rate(name: str, rate: Rate) -> Rate:
    if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        return rate
    return check_number(name, rate, positive=True)


def _optimizer(
    name: str, given: Optimizer | None, usual: keras.optimizers.Optimizer
) -> keras.optimizers.Optimizer:
    """Returns the optimizer for an argument, after checking it."""
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
            f"`{name}` must not have a `loss_scale_factor`: set that of the returned "
            f"optimizer. Received: loss_scale_factor={known.loss_scale_factor}"
        )
    return known
