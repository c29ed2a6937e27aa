"""Optimizers from words and numbers: `"rmsprop 1e-3"`."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras

from keras_ortho.optimizers import (
    GroupOptimizer,
    OptimizerGroups,
    RMSpropTF1,
    StiefelDescent,
    group_of,
)
from keras_ortho.optimizers.within import optimizers_within

# The parts of a model that may have a rule of their own; all others are `others`.
PARTS = ("phases", "recurrent", "unitary")
# RMSprop is TensorFlow 1's, which most of the papers ran: see docs/experiments.md.
KINDS: dict[str, Callable[..., keras.optimizers.Optimizer]] = {
    "rmsprop": RMSpropTF1,
    "adam": keras.optimizers.Adam,
    "adamw": keras.optimizers.AdamW,
    "adagrad": keras.optimizers.Adagrad,
    "sgd": keras.optimizers.SGD,
    "stiefel": StiefelDescent,
    "stiefel-rms": functools.partial(StiefelDescent, rms_scaling=True),
}
# What may follow the rate, and the arguments of the optimizer that it sets.
WORDS: dict[str, list[str]] = {
    "clip": ["clipvalue"],
    "clipnorm": ["global_clipnorm"],
    "betas": ["beta_1", "beta_2"],
    "ema": ["ema_momentum"],
    "momentum": ["momentum"],
    "decay": [],
    "plateau": [],
}
# Which of them only some kinds have; these may be 0.
OF_KINDS = {
    "betas": ("adam", "adamw"),
    "ema": ("rmsprop", "adam", "adamw", "adagrad", "sgd"),
    "momentum": ("sgd", "rmsprop"),
}


def parse(rule: str, updates: int | None = None) -> keras.optimizers.Optimizer:
    """Makes an optimizer from its rule.

    Args:
        rule: A kind and a rate, and in any order what else there is: `clip` and the
            largest entry of a gradient, `clipnorm` and the largest norm of the
            gradients of all that this rule is for, `betas` and Adam's two decays, `ema`
            and the momentum of an average of the weights, which is what is validated
            and kept, `momentum` and that of SGD or RMSprop, `decay` and what the rate
            is multiplied with after each pass over the data, `plateau` and what it is
            multiplied with after a pass whose validation is no better than the best
            before, for which `Plateau` must be among the callbacks: `"adam 1e-3"`,
            `"rmsprop 1e-3 clip 1"`, `"adam 2e-3 betas 0 0.9 plateau 0.5"`.
        updates: Updates in a pass over the data, for `decay`. Default: `None`, not
            known.

    Raises:
        ValueError: If the rule is none of those, or has a `decay` and `updates` is not
            known.

    Example:
    >>> float(parse("adam 1e-3").learning_rate)
    0.001
    """
    try:
        kind, rate, *rest = rule.split()
        options = _options(kind, rest)
        number = _between(rate, math.inf)
        make = KINDS[kind]
    except (KeyError, ValueError):
        raise ValueError(
            f"`rule` must be one of {list(KINDS)}, a positive rate, and perhaps some "
            "of 'clip 1', 'clipnorm 1', 'betas 0.9 0.999' of adam or adamw, 'ema 0.95' "
            "but of stiefel, 'momentum 0.9' of sgd or rmsprop, 'decay 0.99' or "
            "'plateau 0.5', with numbers in their ranges. "
            f"Received: {rule!r}"
        ) from None
    learning_rate: Any = number
    if "decay" in options:
        if updates is None:
            raise ValueError(
                "`updates` must be known where the rate is decayed. "
                f"Received: updates=None and rule={rule!r}"
            )
        learning_rate = keras.optimizers.schedules.ExponentialDecay(
            number, updates, *options["decay"], staircase=True
        )
    arguments: dict[str, Any] = {"use_ema": True} if "ema" in options else {}
    for word, numbers in options.items():
        arguments |= zip(WORDS[word], numbers, strict=False)
    optimizer = make(learning_rate, **arguments)
    if "plateau" in options:
        # Among its variables, so that a run that goes on knows it.
        best = optimizer.add_variable(
            (), initializer=keras.initializers.Constant(math.inf), name="best"
        )
        optimizer.plateau = best, *options["plateau"]
    return optimizer


def _options(kind: str, words: Sequence[str]) -> dict[str, list[float]]:
    """Reads what follows the rate: the numbers of each word."""
    found: dict[str, list[float]] = {}
    while words:
        word, *words = words
        count = max(1, len(WORDS[word]))
        if word in found or len(words) < count or kind not in OF_KINDS.get(word, KINDS):
            raise ValueError
        high = math.inf if word.startswith("clip") else 1.0
        closed = word in OF_KINDS
        found[word] = [_between(text, high, closed) for text in words[:count]]
        words = words[count:]
    if {"decay", "plateau"} <= found.keys():
        raise ValueError
    return found


def _between(text: str, high: float, closed: bool = False) -> float:
    """Reads a number between 0 and another."""
    number = float(text)
    if not (0 < number < high or (closed and number == 0)):
        raise ValueError
    return number


class Plateau(keras.callbacks.Callback):
    """Lowers the rates of the rules with `plateau` where validation does not improve.

    The best figure so far is a variable of the optimizer and so saved with it: a run
    that goes on lowers its rates where an unbroken one does.

    Args:
        monitor: Name of the figure, of which less is better.
        every: Number of epochs after which it is looked at, those of a pass over the
            data. Default: 1.

    Example:
    >>> callback = Plateau("val_loss")
    """

    def __init__(self, monitor: str, every: int = 1) -> None:
        super().__init__()
        self.monitor = monitor
        self.every = every

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Compares with the best figure so far."""
        if (epoch + 1) % self.every:
            return
        figure = (logs or {})[self.monitor]
        for optimizer in with_plateau(self.model):
            best, factor = optimizer.plateau
            if figure < float(best):
                best.assign(figure)
            else:
                optimizer.learning_rate = factor * float(optimizer.learning_rate)


def with_plateau(model: keras.Model) -> list[keras.optimizers.Optimizer]:
    """Lists the optimizers of a compiled model whose rule has a `plateau`.

    Example:
    >>> model.compile("adam", "mse")
    >>> with_plateau(model)
    []
    """
    return [each for each in optimizers_within(model) if hasattr(each, "plateau")]


def part_of(variable: Any) -> str:
    """Tells of which of `PARTS` a variable is, or that it is of `"others"`.

    Example:
    >>> part_of(keras.Variable([1.0]))
    'others'
    """
    return "phases" if variable.name == "recurrent_phases" else group_of(variable)


@keras.saving.register_keras_serializable(package="keras_ortho")
class OptimizerParts(OptimizerGroups):
    """Gives the phases their own optimizer, and each other variable its group's."""

    groups = (*OptimizerGroups.groups, "phases")

    def __call__(self, variable: Any) -> keras.optimizers.Optimizer:
        """Finds the optimizer of a variable: see `OptimizerGroups`."""
        return self[part_of(variable)]


def make_optimizer(
    rules: Mapping[str, str], updates: int | None = None
) -> keras.optimizers.Optimizer:
    """Makes the optimizer of a run.

    Args:
        rules: Rules as `parse` reads them: of `"others"`, and, where they differ from
            it, of `"recurrent"`, the free variables of the recurrent matrix,
            `"phases"`, those of scuRNN's diagonal, and `"unitary"`, the matrix of
            the full-capacity uRNN. Parts with the rule of the others share its
            optimizer.
        updates: As for `parse`. Default: `None`.

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
    others = parse(rules["others"], updates)
    chosen = {
        part: parse(rules[part], updates)
        for part in PARTS
        if part in parts and rules[part] != rules["others"]
    }
    if not chosen:
        return others
    # A saved network of the package's own groups loads without this module.
    groups = OptimizerParts if "phases" in chosen else OptimizerGroups
    return GroupOptimizer(groups(others, chosen))
