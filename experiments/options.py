"""The command line that the experiments share: its parser, its checks, its errors."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.layers import LAYERS, Units
from experiments.optimizers import PARTS
from keras_ortho.extras import require

# What a smoke run makes of its own, and so takes from nobody.
MADE = ("data_dir", "name")


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Ends the command with a line on what is wrong with its options or its data.

    Raises:
        SystemExit: For an error that a user can do something about.
    """
    try:
        yield
    except (ValueError, FileNotFoundError, BlockingIOError, ImportError) as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        raise SystemExit(2) from error


def new_parser(description: str) -> argparse.ArgumentParser:
    """Makes a parser with the options of every experiment.

    Args:
        description: What `--help` says.

    Returns:
        The parser.

    Example:
    >>> new_parser("A task.").parse_args(["--out", "folder"]).seed
    0
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder for the results")
    add("--seed", type=int, default=0, help="(0)")
    add("--smoke", action="store_true", help="try it, small, on data that it makes")
    add("--tensorboard", action="store_true", help="write logs for TensorBoard, too")
    return parser


def add_model_options(
    parser: argparse.ArgumentParser, evaluate_every: int | None
) -> None:
    """Adds the options of a recurrent network and its training.

    Args:
        parser: A parser, which is changed.
        evaluate_every: Updates between validations that the help names; `None` for
            an epoch.
    """
    add = parser.add_argument
    add("--model", choices=list(LAYERS), default="scornn", help="(scornn)")
    add("--preset", choices=["paper"], help="take the settings of the model's paper")
    add("--units", type=read_units, help="or, for enrnn, LONG/SHORT (128)")
    add(
        "--argument",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the layer, such as negative_ones=95; may be repeated",
    )
    add("--rate", metavar="RULE", help="of the optimizer: 'adam 1e-3', 'rmsprop 1e-4'")
    for part in PARTS:
        add(f"--{part}-rate", metavar="RULE", help=f"that of the {part} variables")
    add("--batch-size", type=int, help="(50)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=int, help="passes over the training data (1)")
    length.add_argument("--steps", type=int, help="or updates")
    add(
        "--evaluate-every",
        type=int,
        help=f"updates between validations ({evaluate_every or 'an epoch'}); with "
        "--epochs about as many, so that an epoch can be divided",
    )
    add("--resume", action="store_true", help="go on with the run in the folder")
    add("--jit-compile", action="store_true", help="compile by XLA")


def read_units(text: str) -> Units:
    """Reads `"170"`, or `"310/720"` for two kinds of units.

    Args:
        text: What the command line has.

    Returns:
        A number or two.

    Raises:
        argparse.ArgumentTypeError: If it is no such text.

    Example:
    >>> read_units("310/720")
    (310, 720)
    """
    numbers = text.split("/")
    if len(numbers) <= 2 and all(n.isdecimal() and int(n) for n in numbers):
        sizes = [int(number) for number in numbers]
        return sizes[0] if len(sizes) == 1 else (sizes[0], sizes[1])
    raise argparse.ArgumentTypeError(
        f"must be a positive number, or two as 96/64. Received: {text}"
    )


def fill(options: argparse.Namespace, values: Mapping[str, Any]) -> None:
    """Sets the options that are not given.

    Args:
        options: The options, which are changed.
        values: What they are then, by name.

    Example:
    >>> options = argparse.Namespace(epochs=None, width=8)
    >>> fill(options, {"epochs": 20, "width": 32})
    >>> options
    Namespace(epochs=20, width=8)
    """
    for name, value in values.items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)


def fill_smoke(
    options: argparse.Namespace, make: Callable[[Path], Mapping[str, Any]]
) -> None:
    """Makes the data of a smoke run, and sets the options that read it.

    Args:
        options: The options, which are changed.
        make: Makes the data in a folder, and gives the options.

    Raises:
        ValueError: If an option names other data.
    """
    for name in MADE:
        if getattr(options, name, None) is not None:
            raise ValueError(
                f"--smoke has its own data: no {_flag(name)}. "
                f"Received: {getattr(options, name)}"
            )
    fill(options, make(options.out / "data"))


def check_values(options: argparse.Namespace) -> None:
    """Checks what can be known of each option by itself.

    Args:
        options: The options, numbers and lists of them among others.

    Raises:
        ValueError: If an integer or a rate is not positive, or the seed is negative.
        ImportError: If TensorBoard is wanted and not installed.

    Example:
    >>> options = argparse.Namespace(seed=0, rates=[0.01, 0.1], tensorboard=False)
    >>> check_values(options)
    """
    if options.seed < 0:
        raise ValueError(f"--seed must not be negative. Received: {options.seed}")
    for name, value in vars(options).items():
        kinds = (int, float) if name.endswith(("rate", "rates")) else int
        for number in value if isinstance(value, list) else [value]:
            counts = isinstance(number, kinds) and not isinstance(number, bool)
            if counts and name != "seed" and not number > 0:
                raise ValueError(f"{_flag(name)} must be positive. Received: {number}")
    if options.tensorboard:
        require("tensorboard", extra="tensorboard")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
