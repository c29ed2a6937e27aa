"""The settings of a run: from the command line, else a preset, else the defaults."""

import argparse
import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments import smoke
from experiments.layers import LAYERS, Units, kind_of, parts_of, units_text
from experiments.optimizers import PARTS, parse
from experiments.presets import PRESETS, Preset, find
from keras_ortho.extras import require

# The end of every task's `--help`.
WRITES = """An interrupted run is resumed with --resume. The command writes run.json
(settings, versions, curves and figures), curve.png and, to run/best.keras, the network
with the best validation figure."""
SCHEDULER = (
    "address of the scheduler of a Dask cluster for the runs, as tcp://host:8786"
)
# Settings that a smoke run makes itself, and that cannot be given with it.
MADE = ("data_dir", "name")
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


@dataclass(frozen=True)
class Task:
    """A task on which a run trains one recurrent network.

    `smoke` makes small data in a folder, and returns the settings that load them, for
    which `smoke_extras` are needed; `usual` are the default settings, `needed` the
    required ones. `data`, `length` and `sizes` say what these options name or count;
    empty if there are none.
    """

    smoke: Callable[[Path], Mapping[str, Any]]
    usual: Mapping[str, Any] = field(default_factory=dict)
    data: str = "folder or file of the data set"
    length: str = ""
    sizes: str = "sequences (the usual number)"
    needed: Mapping[str, str] = field(default_factory=dict)
    smoke_extras: tuple[str, ...] = ()


TASKS = {
    "copying": Task(
        lambda folder: smoke.sequences(10),
        {"length": 1_000, "evaluate_every": 100},
        data="",
        length="the delay",
    ),
    "adding": Task(
        lambda folder: smoke.sequences(20),
        {"length": 200, "evaluate_every": 500},
        data="",
        length="the sequences",
    ),
    "addition": Task(
        lambda folder: smoke.sums(),
        {"digits": 3, "batch_size": 32},
        data="",
        sizes="questions (nine tenths of 50 000, and half of the rest)",
    ),
    "mnist": Task(smoke.mnist),
    "permuted-mnist": Task(smoke.mnist),
    "sequence-mnist": Task(smoke.mnist, {"length": 28}, length="the sequences"),
    "pixel-cifar10": Task(smoke.cifar10),
    "noise-padded-cifar10": Task(smoke.cifar10),
    "ucr": Task(
        smoke.ucr,
        {"evaluate_every": 40},
        sizes="",
        needed={"name": "a data set, such as ECG200"},
    ),
    "char-ptb": Task(
        smoke.ptb,
        # Four times per epoch with batches of 32.
        {"unroll": 50, "evaluate_every": 800},
        data="folder of the Penn Treebank's files",
        sizes="characters (all)",
        needed={
            "data_dir": "the folder of the Penn Treebank's files, such as ptb.train.txt"
        },
    ),
    "speech": Task(
        smoke.speech,
        {"batch_size": 8},
        data="folder that `keras-ortho-data` wrote",
        sizes="",
        needed={"data_dir": "folder that `keras-ortho-data` wrote"},
        smoke_extras=("speech",),
    ),
}

# Modules of each extra that examples import only after minutes or hours of work.
EXTRAS = {
    "plot": ("matplotlib",),
    "speech": ("scipy", "soundfile", "librosa", "pystoi", "pesq", "tqdm"),
}


def read_task(
    name: str, description: str, argv: Sequence[str] | None = None
) -> Settings:
    """Reads the command line of a task, and fills in what it leaves open."""
    task = TASKS[name]
    given = _task_parser(name, description).parse_args(argv)
    if given.smoke and given.preset:
        raise ValueError("--smoke and --preset exclude each other. Received: both")
    check_values(given, *(task.smoke_extras if given.smoke else ()))
    for option in ("jobs", "scheduler"):
        value = getattr(given, option)
        if value and not given.seeds:
            raise ValueError(f"--{option} needs --seeds. Received: --{option} {value}")
    _check_folder(given)
    made = _smoke_data(given, task.smoke)
    for setting, what in task.needed.items():
        if not (made.get(setting) or getattr(given, setting)):
            raise ValueError(f"{_flag(setting)} must name {what}. Received: none")
    length = getattr(given, "length", None) or task.usual.get("length")
    preset = matched = None
    if given.preset:
        preset = find(name, given.model, given.units, length)
    if given.match:
        matched = _matched(name, given, length)
    return _settle_run(name, vars(given), preset, matched, made, task.usual)


def _settle_run(
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
    for part, rule in rules.items():
        try:
            parse(rule, updates=1)
        except ValueError as error:
            option = "--rate" if part == "others" else f"--{part}-rate"
            raise ValueError(f"{option}: {error}") from error
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


def _matched(
    task: str, given: argparse.Namespace, length: int | None
) -> tuple[str, Units, Mapping[str, Any]]:
    """Returns the network to match: its paper's, or one with `--units`."""
    of_papers = {(row.task, row.model, row.units) for row in PRESETS}
    if any(
        (task, given.match) == (of, model) and given.units in (None, units)
        for of, model, units in of_papers
    ):
        row = find(task, given.match, given.units, length)
        return row.model, row.units, row.arguments
    if given.units is None:
        raise ValueError(
            f"--match needs --units, as no paper has {given.match} on {task}. "
            "Received: none"
        )
    return given.match, given.units, {}


def read_comparison(
    parser: argparse.ArgumentParser,
    usual: Mapping[str, Any],
    small: Mapping[str, Any],
    make: Callable[[Path], Mapping[str, Any]],
) -> Settings:
    """Reads the command line of a comparison of networks."""
    given = parser.parse_args()
    check_values(given)
    made = _smoke_data(given, make)
    return settle(vars(given), made, small if given.smoke else usual)


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
    description: str, kinds: Sequence[str], data: str
) -> argparse.ArgumentParser:
    """Makes a parser with the options that all comparisons of image networks share."""
    parser = new_parser(description)
    add = parser.add_argument
    add("--models", nargs="+", choices=kinds, default=list(kinds), help="(all)")
    add("--data-dir", type=Path, help=data)
    _add_sizes(parser, "images (the paper's)")
    return parser


def _task_parser(name: str, description: str) -> argparse.ArgumentParser:
    task, parser = TASKS[name], new_parser(description, WRITES)
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
    rules = USUAL["rates"]
    usual = f"rule of the optimizer, such as 'sgd 0.1' ({rules['others']})"
    add("--rate", metavar="RULE", help=usual)
    for part in PARTS:
        usual = rules.get(part, "that of the recurrent ones")
        help = f"rule for the {part} variables ({usual})"
        add(f"--{part}-rate", metavar="RULE", help=help)
    add("--batch-size", type=int, help="(50)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=int, help="passes over the training data (1)")
    length.add_argument("--steps", type=int, help="updates, instead of --epochs")
    usual = task.usual.get("evaluate_every", "an epoch")
    add(
        "--evaluate-every",
        type=int,
        help=f"updates between validations ({usual}), rounded so that they divide an "
        "epoch, or --steps up to a remainder",
    )
    add("--seeds", type=int, metavar="N", help="run from --seed and the next N - 1")
    add("--jobs", type=int, metavar="N", help="with --seeds: N runs at once (1)")
    add("--scheduler", metavar="ADDRESS", help=SCHEDULER)
    add("--resume", action="store_true", help="resume the run in the folder")
    add("--jit-compile", action="store_true", help="compile with XLA")
    if task.length:
        usual = f"length of {task.length} ({task.usual['length']} steps)"
        add("--length", type=int, help=usual)
    if task.data:
        add("--data-dir", type=Path, help=task.data)
    if name == "addition":
        add("--digits", type=int, help="maximum number of digits of a number (3)")
    if name == "adding":
        add("--fixed-order", action="store_true", help="one order for all epochs")
    if name == "noise-padded-cifar10":
        add("--fixed-noise", action="store_true", help="one noise for all epochs")
    if name == "ucr":
        add("--name", help="name of the data set, such as ECG200")
    if name == "char-ptb":
        add("--unroll", type=int, help="characters to back-propagate through (50)")
    if task.sizes:
        _add_sizes(parser, task.sizes)
    return parser


def _add_sizes(parser: argparse.ArgumentParser, counted: str) -> None:
    for size in SIZES:
        parser.add_argument(_flag(size), type=int, help=counted)


def read_model(text: str) -> str:
    """Checks the name of a model."""
    try:
        kind_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    except TypeError as error:  # Raised by a user's file; argparse would hide it.
        raise argparse.ArgumentTypeError(
            f"`model` cannot be imported: TypeError: {error}. Received: {text!r}"
        ) from error
    return text


def read_units(text: str) -> Units:
    """Reads `"170"`, or `"310/720"` for two kinds of units."""
    numbers = text.split("/")
    if len(numbers) <= 2 and all(n.isdecimal() and int(n) for n in numbers):
        sizes = [int(number) for number in numbers]
        return sizes[0] if len(sizes) == 1 else (sizes[0], sizes[1])
    raise argparse.ArgumentTypeError(
        f"must be a positive number, or two, such as 96/64. Received: {text}"
    )


def _read_argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE. Received: {text}")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):  # A word.
        return name, value


def check_values(given: argparse.Namespace, *extras: str) -> None:
    """Checks the values and optional dependencies of options, before any work."""
    check_seed(given.seed, getattr(given, "seeds", None) or 1)
    for name, value in vars(given).items():
        kinds = (int, float) if name.endswith(("rate", "rates")) else int
        for number in value if isinstance(value, list) else [value]:
            counts = isinstance(number, kinds) and not isinstance(number, bool)
            if not counts or name == "seed":
                continue
            if not 0 < number < math.inf:
                must = "finite" if number == math.inf else "positive"
                raise ValueError(f"{_flag(name)} must be {must}. Received: {number}")
    for extra in ("plot", *extras):
        for module in EXTRAS[extra]:
            require(module, extra=extra)


def check_seed(seed: int, runs: int = 1) -> None:
    """Checks that seeds fit into the 32 bits that Keras and NumPy allow."""
    if not 0 <= seed <= 2**32 - runs:
        raise ValueError(f"--seed must be in 0 .. 2^32 - {runs}. Received: {seed}")


def _check_folder(given: argparse.Namespace) -> None:
    started = [*given.out.glob("run/settings.json"), *given.out.glob("seed-*/run")]
    if started and not given.resume:
        raise ValueError(
            "--out holds a run: resume it with --resume, or choose another folder. "
            f"Received: {given.out}"
        )
    if given.resume and not given.out.exists():
        raise ValueError(
            f"--resume needs a folder that holds a run. Received: {given.out}"
        )


def _smoke_data(
    given: argparse.Namespace, make: Callable[[Path], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Makes the data of a smoke run; returns the settings that load them."""
    if not given.smoke:
        return {}
    for name in MADE:
        if getattr(given, name, None) is not None:
            raise ValueError(
                f"--smoke generates its own data: omit {_flag(name)}. "
                f"Received: {getattr(given, name)}"
            )
    # A name that no other data folder has.
    return make(given.out / "smoke-data")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
