"""The next character of the Penn Treebank, as `examples/char_ptb.py` runs it."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from experiments import smoke
from experiments.catalog import SIZES
from experiments.layers import make_layer
from experiments.optimizers import make_optimizer
from experiments.options import (
    add_model_options,
    fill,
    fill_smoke,
    new_parser,
    plain_errors,
)
from experiments.runs import carry_out
from experiments.settings import check, complete, settle_rates
from experiments.text_network import text_network
from keras_ortho.metrics import BitsPerCharacter
from keras_ortho.tasks import characters
from keras_ortho.tasks.pipeline import Task
from keras_ortho.training_callbacks import ResetStates

NAME = "char-ptb"
# Four an epoch of batches of 32.
EVALUATE_EVERY = 800
UNROLL = 50


def main(description: str, argv: Sequence[str] | None = None) -> None:
    """Runs the experiment from the command line.

    Args:
        description: What `--help` says.
        argv: The arguments. Default: `None`, those of the process.

    Raises:
        SystemExit: If the arguments are wrong or contradict each other, or data is
            missing.
    """
    with plain_errors():
        run(parse(description, argv))


def parse(description: str, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Reads the command line, and fills in what it leaves open.

    Args:
        description: As for `main`.
        argv: As for `main`.

    Returns:
        The options, settled.

    Raises:
        ValueError: If options contradict each other or a value cannot be.
    """
    options = make_parser(description).parse_args(argv)
    settle(options)
    return options


def make_parser(description: str) -> argparse.ArgumentParser:
    """Makes the parser of the options.

    Args:
        description: What `--help` says.

    Returns:
        The parser.
    """
    parser = new_parser(description)
    add_model_options(parser, EVALUATE_EVERY)
    add = parser.add_argument
    add("--data-dir", type=Path, help="folder of the Penn Treebank's files")
    add("--unroll", type=int, help=f"characters to back-propagate through ({UNROLL})")
    for size in SIZES:
        add(f"--{size.replace('_', '-')}", type=int, help="characters (all)")
    return parser


def settle(options: argparse.Namespace) -> None:
    """Fills in what the options leave open, from the preset or the defaults.

    Args:
        options: The options, which are changed.

    Raises:
        ValueError: If options contradict each other or a value cannot be.
    """
    check(options)
    if options.smoke:
        fill_smoke(options, smoke.ptb)
    if options.data_dir is None:
        raise ValueError(
            "--data-dir must name the folder of the Penn Treebank's files, such as "
            "ptb.train.txt. Received: none"
        )
    fill(options, {"unroll": UNROLL, "evaluate_every": EVALUATE_EVERY})
    complete(options, NAME)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Trains, tests, and writes the record and the picture of a run.

    Args:
        options: The options, settled.

    Returns:
        What `run.json` holds.
    """
    keras.utils.set_random_seed(options.seed)
    layer = make_layer(
        options.model,
        options.units,
        options.arguments,
        return_sequences=True,
        return_state=True,
    )
    data = characters.load(
        options.data_dir,
        batch_size=options.batch_size,
        unroll=options.unroll,
        **{size: getattr(options, size) for size in SIZES},
    )
    model = text_network(
        layer, data.num_classes, batch_size=options.batch_size, unroll=options.unroll
    )
    settle_rates(options, model)
    model.compile(
        make_optimizer(options.rates, len(data.train)),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[BitsPerCharacter()],
        jit_compile=options.jit_compile or "auto",
    )
    return carry_out(
        model,
        # The text has one order.
        Task(data.train, data.valid, data.test, passes=data.train),
        options,
        name=NAME,
        monitor="bits_per_character",
        unit="bits per character",
        tests_each_time=True,
        log=False,
        callbacks=[ResetStates(every=len(data.train))],
        test_callbacks=[ResetStates()],
    )
