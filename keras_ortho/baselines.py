"""The papers' baselines, as Keras's own layers with the papers' settings.

Each function returns a layer of Keras, or one in a `TrainedInitialState`. A saved model
needs this package only for that wrapper, and for the initializer of an LSTM's bias. A
GRU is a plain `keras.layers.GRU`. The papers clip the gradients of their LSTMs; that is
an argument of the optimizer, `clipvalue` for each entry or `clipnorm` for each weight.
"""

import bisect
import functools
from collections.abc import Callable
from typing import Any

import keras

from keras_ortho import checks
from keras_ortho.initializers import ForgetBias, independent
from keras_ortho.layers.trained_initial_state import TrainedInitialState

# Coefficients of n^2, of m n and of n in the number of parameters of n units with m
# inputs.
_TERMS = {
    "simple_rnn": (1, 1, 1),
    "gru": (3, 3, 6),
    "lstm": (4, 4, 4),
}


def rnn(
    units: int, *, trainable_initial_state: bool = False, **kwargs: Any
) -> keras.layers.Layer:
    """Makes a plain RNN, with a trained initial state where it is wanted.

    Args:
        units: Number of units, a positive integer.
        trainable_initial_state: Whether the state before the first step is trained,
            from oRNN's initial values, rather than zero. Default: `False`.
        **kwargs: Arguments of `keras.layers.SimpleRNN`.

    Returns:
        The layer, in a `keras_ortho.layers.TrainedInitialState` if that is trained.

    Raises:
        ValueError: If `units` is not a positive integer.

    Example:
    >>> layer = rnn(32, activation="leaky_relu", trainable_initial_state=True)
    >>> layer(np.zeros((32, 251, 1))).shape
    (32, 32)

    Reference:

    - [Zhang et al., 2018](https://proceedings.mlr.press/v80/zhang18g.html), section
      7.1, whose numbers of parameters count an initial state
    """
    units = checks.check_count("units", units)
    layer = keras.layers.SimpleRNN(units, **kwargs)
    return _started(layer, trainable_initial_state)


def _started(layer: keras.layers.Layer, trainable: bool) -> keras.layers.Layer:
    return TrainedInitialState(layer, "state_uniform") if trainable else layer


def irnn(
    units: int,
    gain: float = 1.0,
    *,
    orthogonal: bool = False,
    seed: Any = None,
    **kwargs: Any,
) -> keras.layers.SimpleRNN:
    """Makes the IRNN: ReLU units that start as the identity.

    Its input kernel starts from `N(0, 0.001^2)`, its bias from zero.

    Args:
        units: Number of units, a positive integer.
        gain: What the identity is multiplied with; the paper takes 0.01 for speech,
            where long memory is not needed, and 1 elsewhere. Default: 1.
        orthogonal: Whether it starts from a random orthogonal matrix rather than the
            identity. Default: `False`.
        seed: Seed of the initializers, an int. Default: `None`, one of their own.
        **kwargs: Arguments of `keras.layers.SimpleRNN`, which may override these.

    Returns:
        The layer.

    Raises:
        ValueError: If `units` is not a positive integer, or `gain` not a finite number
            of more than 0.

    Example:
    >>> irnn(100)(np.zeros((32, 784, 1))).shape
    (32, 100)

    Reference:

    - [Le et al., 2015](https://arxiv.org/abs/1504.00941)
    """
    units = checks.check_count("units", units)
    gain = checks.check_number("gain", gain, positive=True)
    initializers = keras.initializers
    start = initializers.Identity(gain)
    if orthogonal:
        # Not from the numbers of the input kernel.
        start = independent(initializers.Orthogonal(gain, seed=seed))
    settings = {
        "activation": "relu",
        "kernel_initializer": initializers.RandomNormal(stddev=0.001, seed=seed),
        "recurrent_initializer": start,
    }
    return keras.layers.SimpleRNN(units, **{**settings, **kwargs})


def lstm(
    units: int,
    forget_bias: float = 1.0,
    *,
    trainable_initial_state: bool = False,
    **kwargs: Any,
) -> keras.layers.Layer:
    """Makes an LSTM whose forget gates start with a given bias.

    Keras's `unit_forget_bias` gives 1 or 0; the papers choose among -4, ..., 4 for
    each task. The bias is trained from there, as Keras's is. TensorFlow 1's cell adds
    the constant to a trained bias that starts from zero, which comes to the same.

    Args:
        units: Number of units, a positive integer.
        forget_bias: Bias of the forget gates at the start, finite. Default: 1.
        trainable_initial_state: Whether the states before the first step, `h_0` and
            `c_0`, are trained, from oRNN's initial values, rather than zero. Default:
            `False`.
        **kwargs: Arguments of `keras.layers.LSTM`, but for `bias_initializer` and
            `unit_forget_bias`, which this function gives.

    Returns:
        The layer, in a `keras_ortho.layers.TrainedInitialState` if those are trained.

    Raises:
        ValueError: If `units` is not a positive integer, `forget_bias` is not finite,
            or a given argument is passed.

    Example:
    >>> lstm(158, forget_bias=-4.0)(np.zeros((28, 10, 129))).shape
    (28, 158)

    Reference:

    - [Helfrich et al., 2018](https://proceedings.mlr.press/v80/helfrich18a.html),
      section 4
    """
    units = checks.check_count("units", units)
    forget_bias = checks.check_finite("forget_bias", forget_bias)
    for name in ("bias_initializer", "unit_forget_bias"):
        if name in kwargs:
            raise ValueError(
                f"`forget_bias` takes the place of `{name}`. "
                f"Received: {name}={kwargs[name]!r}"
            )
    layer = keras.layers.LSTM(
        units,
        unit_forget_bias=False,
        bias_initializer=ForgetBias(forget_bias),
        **kwargs,
    )
    return _started(layer, trainable_initial_state)


def num_parameters(kind: str, units: int, features: int, outputs: int = 0) -> int:
    """Counts the parameters of one of Keras's recurrent layers.

    Args:
        kind: `"simple_rnn"`, `"gru"` or `"lstm"`, with their default settings.
        units: Number of units `n`.
        features: Number of inputs `m`.
        outputs: Number of outputs `p` of a `Dense` layer that follows. Default: 0, no
            such layer.

    Returns:
        `n^2 + (m + 1) n` for a simple RNN, `3 n^2 + (3 m + 6) n` for a GRU, `4 n^2 +
        (4 m + 4) n` for an LSTM, and `(n + 1) p` for the outputs.

    Raises:
        ValueError: If there is no such kind, or a number is not positive.

    Example:
    >>> num_parameters("lstm", 128, features=1, outputs=10)
    67850
    """
    if not isinstance(kind, str) or kind not in _TERMS:
        raise ValueError(f"`kind` must be one of {sorted(_TERMS)}. Received: {kind=}")
    units = checks.check_count("units", units)
    features = checks.check_count("features", features)
    if outputs != 0:
        outputs = checks.check_count("outputs", outputs)
    square, mixed, linear = _TERMS[kind]
    recurrent = square * units**2 + (mixed * features + linear) * units
    return recurrent + (units + 1) * outputs


def matched_units(kind: str, parameters: int, features: int, outputs: int = 0) -> int:
    """Finds how many units give about as many parameters as another model has.

    Args:
        kind: `"simple_rnn"`, `"gru"` or `"lstm"`, with their default settings.
        parameters: The number to come near to, a positive integer.
        features: Number of inputs.
        outputs: Number of outputs of a `Dense` layer that follows, whose parameters
            count. Default: 0, no such layer.

    Returns:
        The number of units, at least 1, for which `num_parameters` is nearest to
        `parameters`.

    Raises:
        ValueError: If there is no such kind, or a number is not positive.

    Example:
    >>> matched_units("lstm", 83_121, features=129, outputs=129)
    84
    """
    parameters = checks.check_count("parameters", parameters)

    def count(units: int) -> int:
        return num_parameters(kind, units, features, outputs)

    return closest_size(count, parameters)


def closest_size(count: Callable[[int], int], parameters: int) -> int:
    """Finds the size at which something has about as many parameters as another.

    Args:
        count: Gives the number of parameters at a size from 1 on, and grows with it.
        parameters: The number to come near to.

    Returns:
        The size, the smaller of two at the same distance.

    Example:
    >>> closest_size(lambda n: n * n, 50)
    7
    """
    count = functools.cache(count)
    above = 1
    while count(above) < parameters:
        above *= 2
    sizes = range(max(1, above // 2), above)
    above = sizes.start + bisect.bisect_left(sizes, parameters, key=count)
    return min(
        range(max(1, above - 1), above + 1), key=lambda n: abs(count(n) - parameters)
    )
