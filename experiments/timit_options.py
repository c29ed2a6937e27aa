"""The options of `examples/timit.py`, which `timit_splits.py` passes on to it."""

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.frame_network import CHANNELS, OUTPUTS
from experiments.layers import LAYERS
from experiments.options import check_values, new_parser, read_units
from experiments.presets import Preset
from experiments.settings import Settings, settle
from experiments.speech import (
    FEED_FORWARD,
    check_titles,
    matched_rows,
    paper_rows,
    read_frame_model,
)
from keras_ortho.metrics.evaluators import SCORES

ERROR = "valid_frame_mse"
USUAL: dict[str, Any] = {
    "models": [FEED_FORWARD, "lstm", "gru", "scornn", "enrnn"],
    "units": [128],
    "negative_ones": 0.1,
    "rate": 1e-3,
    "epochs": 40,
    "batch_size": 8,
}
# Defaults of the papers' networks, for all models.
PAPER: dict[str, Any] = {"models": ["scornn", "lstm"], "batch_size": 28}
RAW: dict[str, Any] = PAPER | {
    "units": [224],
    "negative_ones": 0.1,
    "rate": 1e-3,
    "epochs": 200,
}
SMOKE: dict[str, Any] = {
    "models": ["lstm", "scornn"],
    "units": [12],
    "epochs": 2,
    "batch_size": 2,
}


def read(description: str, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Reads the options, and checks what can be checked without the models."""
    parser = new_parser(description)
    add = parser.add_argument
    add("--records", type=Path, help="folder that `keras-ortho-data` wrote")
    add(
        "--models",
        nargs="+",
        type=read_frame_model,
        metavar="MODEL",
        help=f"some of {', '.join([FEED_FORWARD, *LAYERS])}, or layers or cells of "
        "your own: package.module:Name, file.py:Name "
        f"({' '.join(USUAL['models'])}; with --preset and --raw "
        f"{' '.join(PAPER['models'])})",
    )
    add("--preset", choices=["paper"], help="train the papers' networks, as they did")
    add("--raw", action="store_true", help="train the papers' network, on raw decibels")
    add(
        "--units",
        type=read_units,
        nargs="+",
        help="units of scoRNN, whose parameter count all models match (128; with --raw "
        "224); with --preset one of the paper's sizes for each model, such as 425 or "
        "374/94",
    )
    add("--negative-ones", type=float, help="fraction of scoRNN's -1s in D (0.1)")
    add("--rate", type=float, help="rate of Adam (1e-3)")
    add(
        "--recurrent-rate",
        type=float,
        help="rate for the free variables of the recurrent matrix (a tenth of --rate; "
        "with --raw RMSprop's, 1e-3, ENRNN's of Adam, 1e-4)",
    )
    add(
        "--best-by",
        choices=[ERROR, *SCORES],
        default=ERROR,
        help="the validation figure by which the best epoch is chosen (the error)",
    )
    add("--epochs", type=int, help="(40; with --raw 200, with --preset the paper's)")
    add("--batch-size", type=int, help="utterances (8; with --raw and --preset 28)")
    add(
        "--legacy-swapped-targets",
        action="store_true",
        help="give the network the frame it is to predict; for comparison only, with "
        "--raw or --preset",
    )
    given = parser.parse_args(argv)
    check_values(given, "speech")
    if given.smoke == (given.records is not None):
        which = "both" if given.smoke else "neither"
        raise ValueError(f"give either --records or --smoke. Received: {which}")
    if given.smoke and given.preset:
        raise ValueError("--smoke and --preset exclude each other. Received: both")
    if given.preset and given.raw:
        raise ValueError(
            "--preset has the papers' sizes, and --raw has not: give one of them. "
            "Received: both"
        )
    if given.legacy_swapped_targets and not is_raw(given):
        raise ValueError(
            "--legacy-swapped-targets is for the papers' networks: give --raw or "
            "--preset. Received: neither"
        )
    return given


def settled(given: argparse.Namespace) -> tuple[Settings, list[Preset]]:
    """Fills in what the options leave open; returns all settings, and each model's."""
    small = SMOKE if given.smoke else {}
    usual = PAPER if given.preset else RAW if given.raw else USUAL
    settings = settle(vars(given), small, usual)
    models = settings.models
    check_titles(models)
    if is_raw(settings) and FEED_FORWARD in models:
        raise ValueError(
            f"The papers' networks are recurrent. Received: --models {' '.join(models)}"
        )
    if given.negative_ones is not None and "scornn" not in models:
        raise ValueError(
            f"--negative-ones needs scornn. Received: --models {' '.join(models)}"
        )
    rows = rows_of(settings)
    if settings.epochs is not None:
        rows = [dataclasses.replace(row, epochs=settings.epochs) for row in rows]
    return settings, rows


def is_raw(settings: argparse.Namespace) -> bool:
    """Whether the networks are the papers'."""
    return bool(settings.raw or settings.preset)


def rows_of(settings: Settings) -> list[Preset]:
    """Finds the papers' settings of the models, or makes settings of equal size."""
    names = ("negative_ones", "rate", "recurrent_rate")
    given = {name: getattr(settings, name) for name in names}
    given = {name: value for name, value in given.items() if value is not None}
    if settings.preset:
        for name, value in sorted(given.items()):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"--preset uses the papers' settings: omit {option}. Received: {value}"
            )
        return paper_rows(settings.models, settings.units)
    units, *more = settings.units
    if more or isinstance(units, tuple):
        raise ValueError(
            "--units must be one number, that of scoRNN; only with --preset is there "
            f"a size of each model. Received: {settings.units}"
        )
    if settings.raw:
        return matched_rows(settings.models, units, raw=True, **given)
    return matched_rows(
        settings.models, units, features=CHANNELS, outputs=OUTPUTS, **given
    )
