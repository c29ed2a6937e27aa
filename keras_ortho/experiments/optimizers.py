"""Optimizers from a word and a number: `"rmsprop 1e-3"`."""

import functools
import math
import re
from collections.abc import Callable, Mapping

import keras

from keras_ortho.optimizers import RMSpropTF1, StiefelDescent
from keras_ortho.optimizers.rules import RECURRENT_VARIABLES, UNITARY_VARIABLES

PHASES = r"(.*/)?recurrent_phases"
# Which variables each part is for; all others are `others`.
PARTS = {
    "phases": PHASES,
    "recurrent": RECURRENT_VARIABLES,
    "unitary": UNITARY_VARIABLES,
}
# RMSprop is TensorFlow 1's, which the papers ran.
KINDS: dict[str, Callable[..., keras.optimizers.Optimizer]] = {
    "rmsprop": RMSpropTF1,
    "adam": keras.optimizers.Adam,
    "adagrad": keras.optimizers.Adagrad,
    "sgd": keras.optimizers.SGD,
    "stiefel": StiefelDescent,
    "stiefel-rms": functools.partial(StiefelDescent, rms_scaling=True),
}


def parse(rule: str) -> keras.optimizers.Optimizer:
    """Makes an optimizer from its rule.

    Args:
        rule: A kind, a rate, and, where gradients are clipped, `clip` and their
            largest entry: `"adam 1e-3"`, `"rmsprop 1e-3 clip 1"`.

    Returns:
        The optimizer.

    Raises:
        ValueError: If the rule is no such one.

    Example:
    >>> float(parse("adam 1e-3").learning_rate)
    0.001
    """
    kind, *numbers = rule.split() or [""]
    clipped = len(numbers) == 3 and numbers[1] == "clip"
    try:
        if kind not in KINDS or not (clipped or len(numbers) == 1):
            raise ValueError
        rate, clip = float(numbers[0]), float(numbers[2]) if clipped else None
        if not all(0 < n < math.inf for n in (rate, clip) if n is not None):
            raise ValueError
    except ValueError:
        raise ValueError(
            f"`rule` must be one of {list(KINDS)}, a rate, and perhaps 'clip' and a "
            f"number, both positive. Received: {rule!r}"
        ) from None
    return KINDS[kind](rate, clipvalue=clip)


def rules_for(model: keras.Model, rules: Mapping[str, str]) -> dict[str, str]:
    """Picks the rules that a model has variables for.

    Args:
        model: The model, built.
        rules: Rules as of `make_optimizer`.

    Returns:
        Those of the parts that the model has, and that of the others.

    Example:
    >>> model = keras.Sequential([keras.Input((3, 2)), keras.layers.LSTM(4)])
    >>> rules_for(model, {"others": "adam 1e-3", "recurrent": "rmsprop 1e-4"})
    {'others': 'adam 1e-3'}
    """
    paths = [variable.path for variable in model.trainable_variables]
    return {
        part: rule
        for part, rule in rules.items()
        if part not in PARTS or any(re.fullmatch(PARTS[part], p) for p in paths)
    }


def make_optimizer(rules: Mapping[str, str]) -> keras.optimizers.Optimizer:
    """Makes the optimizer of a run.

    Args:
        rules: Rules as `parse` reads them: of `"others"`, and, where they differ from
            it, of `"recurrent"`, the free variables of the recurrent matrix,
            `"phases"`, those of scuRNN's diagonal, and `"unitary"`, the matrix of
            the full-capacity uRNN.

    Returns:
        One optimizer, or a `keras.optimizers.MultiOptimizer`.

    Raises:
        ValueError: If a rule or a part is none, or `"others"` is missing.

    Example:
    >>> optimizer = make_optimizer({"others": "adam 1e-3", "recurrent": "rmsprop 1e-4"})
    """
    parts = set(rules)
    if "others" not in parts or not parts <= {"others", *PARTS}:
        raise ValueError(
            f"`rules` must be of 'others' and of some of {list(PARTS)}. "
            f"Received: {sorted(parts)}"
        )
    others = parse(rules["others"])
    chosen = {PARTS[part]: parse(rules[part]) for part in PARTS if part in parts}
    if not chosen:
        return others
    if {"phases", "recurrent"} <= parts:  # The phases match both patterns.
        apart = rf"(?!{PHASES}$){RECURRENT_VARIABLES}"
        chosen[apart] = chosen.pop(RECURRENT_VARIABLES)
    return keras.optimizers.MultiOptimizer(
        keras.optimizers.OptimizerMap(default_optimizer=others, optimizer_map=chosen)
    )
