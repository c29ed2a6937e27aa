"""The settings of a run: from the command line, else a preset, else the defaults."""

import argparse
import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from experiments import smoke
from experiments.layers import LAYERS, Units, kind_of, units_text
from experiments.optimizers import PARTS, parse
from experiments.presets import PRESETS, find
from keras_ortho.extras import require

# The end of every task's `--help`.
WRITES = """The command writes run.json (settings, versions, curves and figures),
curve.png and, to run/best.keras, the network with the best validation figure."""
SCHEDULER = (
    "address of the scheduler of a Dask cluster for the runs, as tcp://host:8786"
)
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
# Modules of each extra that examples import only after minutes or hours of work.
EXTRAS = {
    "plot": ("matplotlib",),
    "speech": ("scipy", "soundfile", "librosa", "pystoi", "pesq", "tqdm"),
}


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


class Task(NamedTuple):
    """What makes small data, and a task's own defaults; `None` must be given."""

    smoke: Callable[[Path], Mapping[str, Any]]
    usual: Mapping[str, Any] = MappingProxyType({})


TASKS = {
    "copying": Task(
        functools.partial(smoke.sequences, 10), {"length": 1_000, "evaluate_every": 100}
    ),
    "adding": Task(
        functools.partial(smoke.sequences, 20),
        {"length": 200, "evaluate_every": 500, "fixed_order": False},
    ),
    "addition": Task(
        lambda _: {"digits": 1, "train_size": 40, "valid_size": 7, "test_size": 7},
        {"digits": 3, "batch_size": 32},
    ),
    "mnist": Task(smoke.mnist),
    "permuted-mnist": Task(smoke.mnist),
    "sequence-mnist": Task(smoke.mnist, {"length": 28}),
    "pixel-cifar10": Task(smoke.cifar10),
    "noise-padded-cifar10": Task(smoke.cifar10, {"fixed_noise": False}),
    "ucr": Task(smoke.ucr, {"name": None, "evaluate_every": 40}),
    # Four times per epoch with batches of 32.
    "char-ptb": Task(
        smoke.ptb, {"data_dir": None, "unroll": 50, "evaluate_every": 800}
    ),
    "speech": Task(smoke.speech, {"data_dir": None, "batch_size": 8}),
}
# Of tasks' own settings.
HELP = {
    "length": "length of the sequences, or of the delay",
    "digits": "maximum number of digits of a number",
    "unroll": "characters to back-propagate through",
    "name": "name of the data set, such as ECG200",
    "fixed_order": "one order for all epochs",
    "fixed_noise": "one noise for all epochs",
}


def read_task(
    name: str, description: str, argv: Sequence[str] | None = None
) -> Settings:
    """Reads the command line of a task, and fills in what it leaves open."""
    task, given = TASKS[name], _task_parser(name, description).parse_args(argv)
    if given.smoke and given.preset:
        raise ValueError("--smoke and --preset exclude each other. Received: both")
    check_values(given, *["speech"] * (given.smoke and name == "speech"))
    started = [*given.out.glob("run/settings.json"), *given.out.glob("seed-*/run")]
    if started and not given.resume:
        raise ValueError(
            "--out holds a run: resume it with --resume, or choose another folder. "
            f"Received: {given.out}"
        )
    made = _made(given, task.smoke)
    for setting, usual in task.usual.items():
        if usual is None and not (made.get(setting) or getattr(given, setting)):
            raise ValueError(f"{_flag(setting)} must be given. Received: none")
    length = getattr(given, "length", None) or task.usual.get("length")
    settled = dict(USUAL)
    if given.smoke:
        settled |= SMOKE | ({"units": (6, 2)} if given.model == "enrnn" else {})
    if given.preset:
        preset = find(name, given.model, given.units, length)
        settled |= {setting: getattr(preset, setting) for setting in USUAL}
    if given.epochs or given.steps:  # Either replaces both.
        settled |= {"epochs": None, "steps": None}
    own = {"task": name, "matched": None, **vars(given)}
    if given.match:  # A paper's network, or one of other units.
        known = {(row.model, row.units) for row in PRESETS if row.task == name}
        own["matched"] = given.match, given.units, {}
        if given.units is None or own["matched"][:2] in known:
            row = find(name, given.match, given.units, length)
            own["matched"] = row.model, row.units, row.arguments
        size = f"{given.match} with {units_text(own['matched'][1])} units"
        settled["source"] = f"as many parameters as {size}"
    rules = {part: own.pop(f"{part}_rate") for part in PARTS}
    rules["others"] = own.pop("rate")
    own["chosen"] = [part for part, rule in rules.items() if rule]
    settled["rates"] = settled["rates"] | {p: rules[p] for p in own["chosen"]}
    settled["arguments"] = {**settled["arguments"], **dict(own.pop("argument"))}
    return settle(own, made, task.usual, settled)


def read_comparison(
    parser: argparse.ArgumentParser,
    usual: Mapping[str, Any],
    small: Mapping[str, Any],
    make: Callable[[Path], Mapping[str, Any]],
) -> Settings:
    """Reads the command line of a comparison of networks."""
    given = parser.parse_args()
    check_values(given)
    made = _made(given, make)
    return settle(vars(given), made, small if given.smoke else usual)


def _made(
    given: argparse.Namespace, make: Callable[[Path], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Makes the data of a smoke run; returns the settings that load them."""
    folder = getattr(given, "data_dir", None)
    if given.smoke and folder:
        raise ValueError(
            f"--smoke generates its own data: omit --data-dir. Received: {folder}"
        )
    # A name that no other data folder has.
    return make(given.out / "smoke-data") if given.smoke else {}


def new_parser(description: str, epilog: str = "") -> argparse.ArgumentParser:
    """Makes a parser with the options that all experiments share."""
    parser = argparse.ArgumentParser(
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder for the results")
    add("--seed", type=int, default=0, help="(0)")
    add("--smoke", action="store_true", help="run a small trial on generated data")
    return parser


def comparison_parser(
    description: str, kinds: Sequence[str], data: str, epochs: int
) -> argparse.ArgumentParser:
    """Makes a parser with the options that all comparisons of image networks share."""
    parser = new_parser(description)
    add = parser.add_argument
    add("--models", nargs="+", choices=kinds, default=list(kinds), help="(all)")
    add("--data-dir", type=Path, help=data)
    add("--epochs", type=int, help=f"passes over the training data ({epochs})")
    _add_sizes(parser)
    return parser


def _reader(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Lets argparse say what is wrong with a value; of its own it would not."""

    @functools.wraps(read)
    def read_option(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, TypeError) as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read_option


@_reader
def read_model(text: str) -> str:
    """Checks the name of a model."""
    kind_of(text)
    return text


@_reader
def read_units(text: str) -> Units:
    """Reads `"170"`, or `"310/720"` for two kinds of units."""
    numbers = text.split("/")
    if len(numbers) > 2 or not all(n.isdecimal() and int(n) for n in numbers):
        raise ValueError(
            f"must be a positive number, or two, such as 96/64. Received: {text}"
        )
    sizes = [int(number) for number in numbers]
    return sizes[0] if len(sizes) == 1 else (sizes[0], sizes[1])


@_reader
def _read_rule(text: str) -> str:
    parse(text, updates=1)
    return text


@_reader
def _read_argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"must be NAME=VALUE. Received: {text}")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):  # A word.
        return name, value


def _task_parser(name: str, description: str) -> argparse.ArgumentParser:
    task, parser = TASKS[name], new_parser(description, WRITES)
    usual = {**USUAL, **task.usual}
    add = parser.add_argument
    add(
        "--model",
        type=read_model,
        default="scornn",
        metavar="MODEL",
        help=f"one of {', '.join(LAYERS)} (scornn), or a layer or cell of your own: "
        "package.module:Name, file.py:Name",
    )
    add(
        "--match",
        type=read_model,
        metavar="MODEL",
        help="match the parameters of this model in its paper, or with --units",
    )
    add("--preset", choices=["paper"], help="use the settings of the model's paper")
    add("--units", type=read_units, help="units (128); LONG/SHORT for enrnn")
    add(
        "--argument",
        type=_read_argument,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="argument of the layer, such as negative_ones=95; may be repeated",
    )
    rates = usual["rates"]
    help = f"rule of the optimizer, such as 'sgd 0.1' ({rates['others']})"
    add("--rate", type=_read_rule, metavar="RULE", help=help)
    for part in PARTS:
        rate = rates.get(part, "that of the recurrent ones")
        help = f"rule for the {part} variables ({rate})"
        add(f"--{part}-rate", type=_read_rule, metavar="RULE", help=help)
    add("--batch-size", type=int, help=f"({usual['batch_size']})")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=int, help="passes over the training data (1)")
    length.add_argument("--steps", type=int, help="updates, instead of --epochs")
    add(
        "--evaluate-every",
        type=int,
        help=f"updates between validations ({usual.get('evaluate_every', 'an epoch')}),"
        " rounded so that they divide an epoch, or --steps up to a remainder",
    )
    add("--seeds", type=int, metavar="N", help="run from --seed and the next N - 1")
    add("--jobs", type=int, metavar="N", help="with --seeds: N runs at once (1)")
    add("--scheduler", metavar="ADDRESS", help=SCHEDULER)
    add("--resume", action="store_true", help="resume the run in the folder")
    add("--jit-compile", action="store_true", help="compile with XLA")
    if name not in ("copying", "adding", "addition"):
        add("--data-dir", type=Path, help="folder or file of the data set")
    for setting, value in task.usual.items():
        if isinstance(value, bool):
            add(_flag(setting), action="store_true", help=HELP[setting])
        elif setting in HELP:
            kind = str if value is None else int
            add(_flag(setting), type=kind, help=f"{HELP[setting]} ({value})")
    if name not in ("ucr", "speech"):
        _add_sizes(parser)
    return parser


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    for size in SIZES:
        usual = "sequences, images or characters (the usual number)"
        parser.add_argument(_flag(size), type=int, help=usual)


def check_values(given: argparse.Namespace, *extras: str) -> None:
    """Checks the values and optional dependencies of options, before any work."""
    last = 2**32 - (getattr(given, "seeds", None) or 1)  # Of 32 bits.
    if not 0 <= given.seed <= last:
        raise ValueError(f"--seed must be in 0 .. {last}. Received: {given.seed}")
    for name, value in vars(given).items():
        for number in value if isinstance(value, list) else [value]:
            if type(number) is int and number < 1 and name != "seed":
                raise ValueError(f"{_flag(name)} must be positive. Received: {number}")
    for extra in ("plot", *extras):
        for module in EXTRAS[extra]:
            require(module, extra=extra)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
