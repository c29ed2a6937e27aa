"""The settings of a run: from the command line, else a preset, else the defaults."""

import argparse
from collections.abc import Mapping
from typing import Any

from experiments.layers import Units, parts_of, units_text
from experiments.optimizers import PARTS
from experiments.presets import Preset

SIZES = ("train_size", "valid_size", "test_size")
# The other settings that loading the data takes.
LOADED = ("data_dir", "batch_size", "seed")
# Defaults, where neither an option nor a preset says otherwise.
USUAL: dict[str, Any] = {
    "units": 128,
    "batch_size": 50,
    "epochs": 1,
    "steps": None,
    "arguments": {},
    "rates": {
        "others": "adam 1e-3",
        "recurrent": "rmsprop 1e-4",
        "unitary": "stiefel 1e-4",
    },
    "source": None,
}
SMOKE = {"units": 8, "batch_size": 20, "epochs": 2}


class Settings(argparse.Namespace):
    """All settings of a run. `settle` makes them; nothing changes them afterwards."""

    def record(self, *without: str) -> dict[str, Any]:
        """Returns the settings by name, except some and `data`, a copy of others."""
        left_out = {"data", *without}
        return {name: v for name, v in vars(self).items() if name not in left_out}


def settle(given: Mapping[str, Any], *others: Mapping[str, Any]) -> Settings:
    """Takes each setting from the first source that has it."""
    found = dict(given)
    for each in others:
        found |= {name: v for name, v in each.items() if found.get(name) is None}
    data = {name: found[name] for name in LOADED if name in found}
    data |= {name: found[name] for name in SIZES if found.get(name) is not None}
    return Settings(**found, data=data)


def settle_run(
    task: str,
    given: Mapping[str, Any],
    preset: Preset | None,
    matched: tuple[str, Units, Mapping[str, Any]] | None,
    *others: Mapping[str, Any],
) -> Settings:
    """Determines the settings to train one recurrent network."""
    usual = dict(USUAL)
    if given["smoke"]:
        usual |= SMOKE | ({"units": (6, 2)} if given["model"] == "enrnn" else {})
    if preset:
        usual |= {name: getattr(preset, name) for name in USUAL}
    if given["epochs"] or given["steps"]:  # Either replaces both.
        usual |= {"epochs": None, "steps": None}
    if matched:
        name, units, _ = matched
        usual["source"] = f"as many parameters as {name} with {units_text(units)} units"
    own = {"task": task, "matched": matched, **given}
    arguments = {**usual.pop("arguments"), **dict(own.pop("argument"))}
    rules = {"others": own.pop("rate")}
    rules |= {part: own.pop(f"{part}_rate") for part in PARTS}
    rules = {part: rule for part, rule in rules.items() if rule is not None}
    # The units of a network that matches another are not known yet.
    known = None if matched else given["units"] or usual["units"]
    parts = {"others", *parts_of(given["model"], known, arguments)}
    for part in rules.keys() - parts:
        raise ValueError(
            f"--{part}-rate applies to variables that {given['model']} lacks. "
            f"Received: {rules[part]}"
        )
    rates = {**usual.pop("rates"), **rules}
    usual["arguments"] = arguments
    usual["rates"] = {part: rates[part] for part in rates if part in parts}
    return settle(own, *others, usual)
