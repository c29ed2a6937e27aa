"""The baselines of the papers: Keras's own layers with the papers' settings.

For a GRU, use `keras.layers.GRU`. The papers clip the gradients of their LSTMs, which
is an argument of the optimizer: `clipvalue` for each entry, `clipnorm` for each weight.
"""

import bisect
import functools
from collections.abc import Callable
from typing import Any

import keras

from keras_ortho import checks
from keras_ortho.initializers import ForgetBias, independent
from keras_ortho.layers.trained_initial_state import TrainedInitialState

# Coefficients of n^2, m n and n in the number of parameters of n units with m inputs.
_TERMS = {"simple_rnn": (1, 1, 1), "gru": (3, 3, 6), "lstm": (4, 4, 4)}


def rnn(
    units: int, *, trainable_initial_state: bool = False, **kwargs: Any
) -> keras.layers.Layer:
    """Creates a plain RNN layer, optionally with a trained initial state.

    Args:
        units: Number of units.
        trainable_initial_state: Whether the state before the first step is trained,
            starting from the oRNN's initial values, rather than zero. Default: `False`.
        **kwargs: Arguments of `keras.layers.SimpleRNN`.

    Returns:
        The layer, within a `TrainedInitialState` if the initial state is trained.

    Example:
    >>> layer = rnn(32, activation="leaky_relu", trainable_initial_state=True)
    >>> layer(np.zeros((32, 251, 1))).shape
    (32, 32)

    Reference:
    [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html)
    """
    layer = keras.layers.SimpleRNN(units, **kwargs)
    if trainable_initial_state:
        return TrainedInitialState(layer, "state_uniform")
    return layer


def irnn(
    units: int,
    gain: float = 1.0,
    *,
    orthogonal: bool = False,
    seed: Any = None,
    **kwargs: Any,
) -> keras.layers.SimpleRNN:
    """Creates an IRNN layer: ReLU units whose recurrent kernel starts as the identity.

    The input kernel starts from `N(0, 0.001^2)`, the bias from zero.

    Args:
        units: Number of units.
        gain: Factor of the identity, more than 0; 0.01 for speech. Default: 1.
        orthogonal: Whether the recurrent kernel starts as a random orthogonal matrix,
            times `gain`, rather than the identity. Default: `False`.
        seed: Integer seed for the initializers. Default: `None`, a random one for each.
        **kwargs: Arguments of `keras.layers.SimpleRNN`, which override these settings.

    Returns:
        The layer.

    Example:
    >>> irnn(100)(np.zeros((32, 784, 1))).shape
    (32, 100)

    Reference:
    [Le et al., 2015](https://arxiv.org/abs/1504.00941)
    """
    gain = checks.check_number("gain", gain, positive=True)
    start = keras.initializers.Identity(gain)
    if orthogonal:
        # Draws random numbers that are independent of those for the input kernel.
        start = independent(keras.initializers.Orthogonal(gain, seed=seed))
    small = keras.initializers.RandomNormal(stddev=0.001, seed=seed)
    settings = {"kernel_initializer": small, "recurrent_initializer": start}
    return keras.layers.SimpleRNN(units, **{"activation": "relu"} | settings | kwargs)


def lstm(
    units: int,
    forget_bias: float = 1.0,
    *,
    trainable_initial_state: bool = False,
    **kwargs: Any,
) -> keras.layers.Layer:
    """Creates an LSTM layer whose forget gates start with a given bias.

    Args:
        units: Number of units.
        forget_bias: Initial bias of the forget gates; in the papers from -4, ..., 4.
            Default: 1.
        trainable_initial_state: As for `rnn`. Default: `False`.
        **kwargs: Arguments of `keras.layers.LSTM`, except those of the bias.

    Returns:
        The layer, wrapped as in `rnn` if the initial states are trained.

    Example:
    >>> lstm(158, forget_bias=-4.0)(np.zeros((28, 10, 129))).shape
    (28, 158)

    Reference:
    [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html)
    """
    forget_bias = checks.check_finite("forget_bias", forget_bias)
    start = {"unit_forget_bias": False, "bias_initializer": ForgetBias(forget_bias)}
    layer = keras.layers.LSTM(units, **start, **kwargs)
    if trainable_initial_state:
        return TrainedInitialState(layer, "state_uniform")
    return layer


def num_parameters(kind: str, units: int, features: int, outputs: int = 0) -> int:
    """Counts the parameters of a layer of Keras and of a `Dense` layer after it."""
    checks.check_choice("kind", kind, _TERMS)
    units = checks.check_count("units", units)
    features = checks.check_count("features", features)
    square, mixed, linear = _TERMS[kind]
    recurrent = square * units**2 + (mixed * features + linear) * units
    return recurrent + (units + 1) * outputs


def matched_units(kind: str, parameters: int, features: int, outputs: int = 0) -> int:
    """Finds the number of units that gives about a target number of parameters.

    Args:
        kind: `"simple_rnn"`, `"gru"` or `"lstm"`, a layer of Keras with its defaults.
        parameters: Target number of parameters.
        features: Number of inputs.
        outputs: Number of outputs of a `Dense` layer that follows. Default: 0.

    Returns:
        The number of units, at least 1.

    Example:
    >>> matched_units("lstm", 83_121, features=129, outputs=129)
    84
    """
    parameters = checks.check_count("parameters", parameters)
    return closest_size(
        lambda units: num_parameters(kind, units, features, outputs), parameters
    )


def closest_size(count: Callable[[int], int], parameters: int) -> int:
    """Finds the size at which an increasing count is closest to a target."""
    count = functools.cache(count)
    above = 1
    while count(above) < parameters:
        above *= 2
    above = bisect.bisect_left(range(above + 1), parameters, lo=1, key=count)
    return min(max(1, above - 1), above, key=lambda n: abs(count(n) - parameters))
