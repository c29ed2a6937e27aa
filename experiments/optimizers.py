"""Optimizers from rules such as `"rmsprop 1e-3"`."""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import keras

from keras_ortho.optimizers import (
    GroupOptimizer,
    OptimizerGroups,
    RMSpropTF1,
    StiefelDescent,
    group_of,
)
from keras_ortho.optimizers.groups import optimizers_within

# The parts of a model that may have their own rule; the rest is `others`.
PARTS = ("phases", "recurrent", "unitary")
# RMSprop is TensorFlow 1's, which most of the papers used: see docs/experiments.md.
KINDS: dict[str, Callable[..., keras.optimizers.Optimizer]] = {
    "rmsprop": RMSpropTF1,
    "adam": keras.optimizers.Adam,
    "adagrad": keras.optimizers.Adagrad,
    "sgd": keras.optimizers.SGD,
    "stiefel": StiefelDescent,
    "stiefel-rms": functools.partial(StiefelDescent, rms_scaling=True),
}
# Words that may follow the learning rate, and what their numbers are: arguments of the
# optimizer, or the factor of the rate after each pass, or if validation is no better.
WORDS: dict[str, list[str]] = {
    "clip": ["clipvalue"],
    "clipnorm": ["global_clipnorm"],
    "betas": ["beta_1", "beta_2"],
    "decay": ["decay"],
    "plateau": ["plateau"],
}


def parse(rule: str, updates: int) -> keras.optimizers.Optimizer:
    """Makes an optimizer from its rule; `updates` are those of a pass."""
    try:
        kind, rate, *words = rule.split()
        learning_rate: Any = _number("rate", rate)
        make = KINDS[kind]
        options: dict[str, float] = {}
        while words:
            word, *words = words
            texts, words = words[: len(WORDS[word])], words[len(WORDS[word]) :]
            numbers = [_number(word, text) for text in texts]
            options |= zip(WORDS[word], numbers, strict=True)
        decay, plateau = options.pop("decay", None), options.pop("plateau", None)
        if decay and plateau:
            raise ValueError
        if decay:
            learning_rate = keras.optimizers.schedules.ExponentialDecay(
                learning_rate, updates, decay, staircase=True
            )
        optimizer = make(learning_rate, **options)
    except (KeyError, ValueError, TypeError):
        raise ValueError(
            f"`rule` must be one of {list(KINDS)}, a positive rate, and perhaps some "
            "of 'clip 1', 'clipnorm 1', 'betas 0.9 0.999' of adam, 'decay 0.99' or "
            "'plateau 0.5', with numbers in their ranges. "
            f"Received: {rule!r}"
        ) from None
    if plateau:
        # A variable of the optimizer, so that a resumed run has it.
        best = optimizer.add_variable(
            (), initializer=keras.initializers.Constant(math.inf), name="best"
        )
        optimizer.plateau = best, plateau
    return optimizer


def _number(word: str, text: str) -> float:
    """Reads a positive number, below 1 unless it is a rate or clips."""
    number = float(text)
    high = math.inf if word in ("rate", "clip", "clipnorm") else 1.0
    if not (0 < number < high or (word == "betas" and number == 0)):
        raise ValueError
    return number


class Plateau(keras.callbacks.Callback):
    """Lowers the learning rates of rules with `plateau` if validation is no better."""

    def __init__(self, monitor: str, every: int = 1) -> None:
        super().__init__()
        self.monitor = monitor
        self.every = every

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Compares the figure with the best so far."""
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
    """Lists the optimizers of a compiled model whose rule has a `plateau`."""
    return [each for each in optimizers_within(model) if hasattr(each, "plateau")]


def part_of(variable: Any) -> str:
    """Returns which of `PARTS` a variable belongs to, or `"others"`."""
    return "phases" if variable.name == "recurrent_phases" else group_of(variable)


@keras.saving.register_keras_serializable(package="keras_ortho")
class OptimizerParts(OptimizerGroups):
    """Gives the phases their own optimizer, and each other variable its group's."""

    groups = (*OptimizerGroups.groups, "phases")

    def __call__(self, variable: Any) -> keras.optimizers.Optimizer:
        """Returns the optimizer of a variable: see `OptimizerGroups`."""
        return self[part_of(variable)]


def make_optimizer(
    rules: Mapping[str, str], updates: int
) -> keras.optimizers.Optimizer:
    """Makes the optimizer of a run."""
    others = parse(rules["others"], updates)
    chosen = {
        part: parse(rules[part], updates)
        for part in PARTS
        if rules.get(part, rules["others"]) != rules["others"]
    }
    if not chosen:
        return others
    # A saved network that has only the package's own groups loads without this module.
    groups = OptimizerParts if "phases" in chosen else OptimizerGroups
    return GroupOptimizer(groups(others, chosen))
