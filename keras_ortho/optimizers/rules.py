"""Which variable gets which optimizer."""

import keras

from keras_ortho.optimizers.rmsprop_tf1 import RMSpropTF1
from keras_ortho.optimizers.stiefel import StiefelDescent

# The full path of the free variables that make a recurrent matrix. Not of
# `recurrent_kernel`, a matrix without a form, which Keras's own layers have, too.
RECURRENT_VARIABLES = (
    r"(.*/)?("
    r"recurrent_(skew(_real|_imag)?|phases|angles|reflectors)"
    r"|output_phases"
    r"|(left_|right_)?reflectors|(left|right)_skew|singular_logits"
    r")"
)
# That of a matrix which must be kept unitary.
UNITARY_VARIABLES = r"(.*/)?recurrent_unitary"


def paper_optimizer(
    recurrent: keras.optimizers.Optimizer | None = None,
    others: keras.optimizers.Optimizer | None = None,
    unitary: keras.optimizers.Optimizer | None = None,
) -> keras.optimizers.MultiOptimizer:
    """Makes the papers' optimizers, for `model.compile`.

    They train the variables behind the recurrent matrix with a smaller rate, and
    often another rule, than all others; and where the matrix itself is the variable,
    as in `FullURNN`, along the unitary matrices. Each optimizer has its own schedule
    and clipping; `global_clipnorm` is the norm over the variables of one. As every
    `MultiOptimizer` it has no `learning_rate` of its own: see its `optimizers`, in the
    order of the arguments, the others last.

    Args:
        recurrent: Optimizer of the free variables of the recurrent matrices.
            Default: `RMSpropTF1(1e-4)`.
        others: Optimizer of all other variables. Default:
            `keras.optimizers.Adam(1e-3)`.
        unitary: Optimizer of the recurrent matrices that are variables themselves.
            Default: `StiefelDescent(1e-3)`.

    Returns:
        A `keras.optimizers.MultiOptimizer`.

    Example:
    >>> model.compile(paper_optimizer(), loss="mse")

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 4
    - [Wisdom et al., 2016](https://arxiv.org/abs/1611.00035), section 5
    """
    return keras.optimizers.MultiOptimizer(
        keras.optimizers.OptimizerMap(
            default_optimizer=others or keras.optimizers.Adam(1e-3),
            optimizer_map={
                RECURRENT_VARIABLES: recurrent or RMSpropTF1(1e-4),
                UNITARY_VARIABLES: unitary or StiefelDescent(1e-3),
            },
        )
    )
