"""Which variable gets which optimizer."""

import contextlib
from typing import TypeAlias

import keras

from keras_ortho.optimizers.groups import RECURRENT, UNITARY, OptimizerGroups
from keras_ortho.optimizers.rmsprop_tf1 import RMSpropTF1
from keras_ortho.optimizers.stiefel import StiefelDescent

# What `compile` takes for an optimizer.
Optimizer: TypeAlias = keras.optimizers.Optimizer | str


def paper_optimizer(
    recurrent: Optimizer | None = None,
    others: Optimizer | None = None,
    unitary: Optimizer | None = None,
) -> keras.optimizers.MultiOptimizer:
    """Makes the papers' optimizers, for `model.compile`.

    They train the variables behind the recurrent matrix with a smaller rate, and
    often another rule, than all others; and where the matrix itself is the variable,
    as in `FullURNN`, along the unitary matrices. Each optimizer has its own schedule
    and clipping; `global_clipnorm` is the norm over the variables of one. As every
    `MultiOptimizer` it has no `learning_rate` of its own: see its `optimizers`, in the
    order of the arguments, the others last.

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
        A `keras.optimizers.MultiOptimizer`.

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
    return keras.optimizers.MultiOptimizer(
        OptimizerGroups(
            default_optimizer=_optimizer("others", others, keras.optimizers.Adam(1e-3)),
            optimizer_map={
                RECURRENT: _optimizer("recurrent", recurrent, RMSpropTF1(1e-4)),
                UNITARY: _optimizer("unitary", unitary, StiefelDescent(1e-3)),
            },
        )
    )


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
