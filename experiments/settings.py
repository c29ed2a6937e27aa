"""The settings of a run: of the command line, else of a preset, else the usual ones."""

import argparse
import ast
from collections.abc import Sequence
from typing import Any

import keras

from experiments.layers import Units
from experiments.optimizers import PARTS, rules_for
from experiments.options import check_values, fill
from experiments.presets import find

# What a run has where neither a preset nor an option says otherwise.
DEFAULTS: dict[str, Any] = {
    "units": 128,
    "rates": {
        "others": "adam 1e-3",
        "recurrent": "rmsprop 1e-4",
        "unitary": "stiefel 1e-4",
    },
    "arguments": {},
    "batch_size": 50,
}
SMOKE: dict[str, Any] = {"units": 8, "batch_size": 20, "epochs": 2}
# Options that change nothing about what comes out, or are in it already.
UNSETTLED = {"out", "resume", "tensorboard", "data_dir", "preset", "argument", "rate"}
UNSETTLED |= {f"{part}_rate" for part in PARTS}


def check(options: argparse.Namespace) -> None:
    """Checks what can be known before there is data.

    Args:
        options: The options as given.

    Raises:
        ValueError: If they contradict each other, or the folder that they name, or
            a number cannot be.
    """
    if options.smoke and options.preset:
        raise ValueError("--smoke is small, and --preset is not. Received: both")
    check_values(options)
    started = (options.out / "run" / "settings.json").exists()
    if started and not options.resume:
        raise ValueError(
            "--out holds a run: go on with it by --resume, or name another folder. "
            f"Received: {options.out}"
        )
    if options.resume and not started:
        raise ValueError(
            f"--resume needs a folder that holds a run. Received: {options.out}"
        )


def complete(options: argparse.Namespace, task: str) -> None:
    """Fills in what the options leave open, from the preset or the defaults.

    Args:
        options: The options, which are changed: `arguments`, `rates` and `source`
            are new.
        task: Name of the task, as in the presets.

    Raises:
        ValueError: If there is no such preset, or an argument is not given as one.
    """
    options.source = None
    settings = dict(DEFAULTS)
    if options.smoke:
        units: Units = (6, 2) if options.model == "enrnn" else SMOKE["units"]
        settings |= SMOKE | {"units": units}
    elif options.preset:
        preset = find(
            task, options.model, options.units, getattr(options, "length", None)
        )
        settings |= {
            name: getattr(preset, name)
            for name in ("units", "rates", "arguments", "batch_size", "epochs", "steps")
        }
        options.source = preset.source
    fill(options, {name: settings[name] for name in ("units", "batch_size")})
    if options.epochs is None and options.steps is None:
        options.steps = settings.get("steps")
        options.epochs = settings.get("epochs") or (None if options.steps else 1)
    options.arguments = {**settings["arguments"], **_arguments(options.argument)}
    options.rates = dict(settings["rates"])
    for part in ("others", *PARTS):
        rule = options.rate if part == "others" else getattr(options, f"{part}_rate")
        if rule is not None:
            options.rates[part] = rule


def _arguments(given: Sequence[str]) -> dict[str, Any]:
    arguments = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--argument must be NAME=VALUE. Received: {text}")
        try:
            arguments[name] = ast.literal_eval(value)
        except (SyntaxError, ValueError):  # A word.
            arguments[name] = value
    return arguments


def settle_rates(options: argparse.Namespace, model: keras.Model) -> None:
    """Leaves the rules that a model has variables for.

    Args:
        options: The options, complete, whose `rates` are changed.
        model: The model, built.

    Raises:
        ValueError: If an option gives a rule for variables that there are not.
    """
    rates = rules_for(model, options.rates)
    for part in options.rates.keys() - rates.keys():
        rule = getattr(options, f"{part}_rate")
        if rule is not None:
            raise ValueError(
                f"--{part}-rate is of variables that {options.model} has not. "
                f"Received: {rule}"
            )
    options.rates = rates


def recorded(options: argparse.Namespace) -> dict[str, Any]:
    """Picks the options that make a run what it is.

    Args:
        options: The options, complete.

    Returns:
        Settings by name.
    """
    return {
        name: value for name, value in vars(options).items() if name not in UNSETTLED
    }
