"""Which variable gets which optimizer."""

import keras

from keras_ortho.optimizers.rmsprop_tf1 import RMSpropTF1

# The full path of the variables that make a recurrent matrix.
RECURRENT_VARIABLES = r"(.*/)?recurrent_skew"


def paper_optimizer(
    recurrent: keras.optimizers.Optimizer | None = None,
    others: keras.optimizers.Optimizer | None = None,
) -> keras.optimizers.MultiOptimizer:
    """Makes the papers' pair of optimizers, for `model.compile`.

    They train the variables behind the recurrent matrix with a smaller rate, and
    often another rule, than all others. Each of the two has its own schedule and
    clipping; `global_clipnorm` is the norm over the variables of one. As every
    `MultiOptimizer` it has no `learning_rate` of its own: see its `optimizers`.

    Args:
        recurrent: Optimizer of the free variables of the recurrent matrices.
            Default: `RMSpropTF1(1e-4)`.
        others: Optimizer of all other variables. Default:
            `keras.optimizers.Adam(1e-3)`.

    Returns:
        A `keras.optimizers.MultiOptimizer`.

    Example:
    >>> model.compile(paper_optimizer(), loss="mse")

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 4
    """
    return keras.optimizers.MultiOptimizer(
        keras.optimizers.OptimizerMap(
            default_optimizer=others or keras.optimizers.Adam(1e-3),
            optimizer_map={RECURRENT_VARIABLES: recurrent or RMSpropTF1(1e-4)},
        )
    )
