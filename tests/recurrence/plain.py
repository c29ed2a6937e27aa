"""The recurrence of the plain step, as the tests call it."""

from keras_ortho.recurrence import Plain, Weights, recurrence


def plain_recurrence(inputs, kernel, recurrent, bias, state, activation, **kwargs):
    """Computes the states of `f(x U + h W)`, with `f` an activation and its bias."""
    weights = Weights((kernel,), (recurrent,), (bias,), Plain(activation))
    return recurrence(inputs, weights, state, **kwargs)
