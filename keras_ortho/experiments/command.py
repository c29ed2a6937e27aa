"""The command line of an experiment: `python examples/adding.py --model scornn`."""

import argparse
import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_ortho.experiments.catalog import EXPERIMENTS, SIZES, Experiment
from keras_ortho.experiments.layers import LAYERS, TITLES, Units, make_layer
from keras_ortho.experiments.optimizers import PARTS, make_optimizer
from keras_ortho.experiments.presets import find
from keras_ortho.experiments.report import draw, run_record, summary, write_record
from keras_ortho.metrics import ErrorRate
from keras_ortho.tasks.pipeline import Task
from keras_ortho.training import train
from keras_ortho.training_callbacks import TestFigures

# What a run has where neither a preset nor an option says otherwise.
DEFAULTS: dict[str, Any] = {
    "units": 128,
    "rates": {"others": "adam 1e-3", "recurrent": "rmsprop 1e-4"},
    "arguments": {},
    "batch_size": 50,
}
# Options that change nothing about what comes out, or are in it already.
UNSETTLED = {"out", "resume", "tensorboard", "data_dir", "preset", "argument", "rate"}
UNSETTLED |= {f"{part}_rate" for part in PARTS}
SMOKE: dict[str, Any] = {"units": 8, "batch_size": 20, "epochs": 2}


def main(name: str, description: str, argv: Sequence[str] | None = None) -> None:
    """Runs an experiment from the command line.

    Args:
        name: Name of the experiment.
        description: What `--help` says.
        argv: The arguments. Default: those of the process.

    Raises:
        SystemExit: If the arguments are wrong or contradict each other, or data is
            missing.
    """
    experiment = EXPERIMENTS[name]
    parser = make_parser(experiment, description)
    options = parser.parse_args(argv)
    try:
        settle(options, experiment)
        run(options, experiment)
    except (ValueError, FileNotFoundError, ImportError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


def make_parser(experiment: Experiment, description: str) -> argparse.ArgumentParser:
    """Makes the parser of an experiment's options.

    Args:
        experiment: The experiment.
        description: What `--help` says.

    Returns:
        The parser.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder for the results")
    add("--model", choices=list(LAYERS), default="scornn", help="(scornn)")
    add("--preset", choices=["paper"], help="take the settings of the model's paper")
    add("--units", type=_units, help="or, for enrnn, LONG/SHORT (128)")
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
    if experiment.length is not None:
        add("--length", type=int, default=experiment.length, help="%(default)s steps")
    if experiment.data:
        add("--data-dir", type=Path, help="folder or file of the data set")
    if experiment.name == "ucr":
        add("--name", help="of the data set, such as ECG200")
    for size in SIZES if experiment.name != "ucr" else ():
        add(f"--{size.replace('_', '-')}", type=int, help="sequences (the paper's)")
    add("--batch-size", type=int, help="(50)")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=int, help="passes over the training data (1)")
    length.add_argument("--steps", type=int, help="or updates")
    add(
        "--evaluate-every",
        type=int,
        default=experiment.evaluate_every,
        help=f"updates between validations ({experiment.evaluate_every or 'an epoch'})",
    )
    add("--seed", type=int, default=0, help="(0)")
    add("--resume", action="store_true", help="go on with the run in the folder")
    add("--smoke", action="store_true", help="try it, small, on data that it makes")
    add("--tensorboard", action="store_true", help="write logs for TensorBoard, too")
    add("--jit-compile", action="store_true", help="compile by XLA")
    return parser


def _units(text: str) -> Units:
    sizes = tuple(int(size) for size in text.split("/"))
    if len(sizes) == 1:
        return sizes[0]
    if len(sizes) == 2:
        return sizes[0], sizes[1]
    raise argparse.ArgumentTypeError(f"a number, or two as 96/64. Received: {text}")


def settle(options: argparse.Namespace, experiment: Experiment) -> None:
    """Fills in what the options leave open, from the preset or the defaults.

    Args:
        options: The options, which are changed.
        experiment: The experiment.

    Raises:
        ValueError: If options contradict each other or a value cannot be.
    """
    if options.smoke and options.preset:
        raise ValueError("--smoke is small, and --preset is not. Received: both")
    _check_folder(options)
    options.source = None
    settings = dict(DEFAULTS)
    if options.smoke:
        for name, value in experiment.smoke(options.out / "data").items():
            setattr(options, name, value)
        units: Units = (6, 2) if options.model == "enrnn" else SMOKE["units"]
        settings |= SMOKE | {"units": units}
    elif options.preset:
        preset = find(
            experiment.name,
            options.model,
            options.units,
            getattr(options, "length", None),
        )
        settings |= {
            name: getattr(preset, name)
            for name in ("units", "rates", "arguments", "batch_size", "epochs", "steps")
        }
        options.source = preset.source
    if experiment.name == "ucr" and not options.name:
        raise ValueError("--name must name a data set, such as ECG200. Received: none")
    for name in ("units", "batch_size"):
        if getattr(options, name) is None:
            setattr(options, name, settings[name])
    if options.epochs is None and options.steps is None:
        options.steps = settings.get("steps")
        options.epochs = settings.get("epochs") or (None if options.steps else 1)
    options.arguments = {**settings["arguments"], **_arguments(options.argument)}
    options.rates = dict(settings["rates"])
    for part in ("others", *PARTS):
        rule = options.rate if part == "others" else getattr(options, f"{part}_rate")
        if rule is not None:
            options.rates[part] = rule
    for name in ("epochs", "steps", "evaluate_every"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ValueError(
                f"--{name.replace('_', '-')} must be positive. Received: {value}"
            )


def _check_folder(options: argparse.Namespace) -> None:
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


def run(options: argparse.Namespace, experiment: Experiment) -> dict[str, Any]:
    """Trains, tests, and writes the record and the picture of a run.

    Args:
        options: The options, settled.
        experiment: The experiment.

    Returns:
        What `run.json` holds.
    """
    keras.utils.set_random_seed(options.seed)
    layer = make_layer(
        options.model,
        options.units,
        options.arguments,
        return_sequences=experiment.sequences,
    )
    optimizer = make_optimizer(options.rates)
    task = experiment.load(options)
    model = network(layer, task, experiment)
    model.compile(
        optimizer,
        _loss(experiment),
        metrics=[ErrorRate()] if experiment.monitor == "error_rate" else None,
        jit_compile=options.jit_compile or "auto",
    )
    each, times = schedule(options, len(task.train))
    settings = {
        name: value for name, value in vars(options).items() if name not in UNSETTLED
    }
    record = run_record({"task": experiment.name, **settings})
    parameters = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    record |= {"parameters": parameters, "baseline": task.baseline}
    callbacks: list[keras.callbacks.Callback] = []
    if experiment.tests_each_time:
        callbacks.append(TestFigures(task.test))
    if options.tensorboard:
        callbacks.append(keras.callbacks.TensorBoard(options.out / "tensorboard"))
    title = TITLES[options.model]
    print(f"{title}, {parameters:,} parameters: {times} times {each} updates")
    history = train(
        model,
        task.passes,
        options.out / "run",
        epochs=times,
        steps_per_epoch=each,
        validation_data=task.valid,
        monitor=f"val_{experiment.monitor}",
        callbacks=callbacks,
        # A longer run goes on from a shorter one.
        settings={
            name: str(value)
            for name, value in settings.items()
            if name not in ("epochs", "steps")
        },
    )
    tested = model.evaluate(task.test, return_dict=True, verbose=0)
    record |= summary(history, experiment.monitor, each, tested)
    record |= {"monitor": experiment.monitor, "figures": figures(record, experiment)}
    write_record(options.out / "run.json", record)
    draw(
        options.out / "curve.png",
        {title: record},
        experiment.monitor,
        baselines={experiment.forecast: task.baseline} if task.baseline else None,
        ylabel=f"validation {experiment.monitor.replace('_', ' ')}",
    )
    for name, value in record["figures"].items():
        print(f"{name}: {value:.5g}")
    return record


def figures(record: Mapping[str, Any], experiment: Experiment) -> dict[str, float]:
    """Names the figures of a run: accuracies, where it measures error rates.

    Args:
        record: What `summary` gives.
        experiment: The experiment.

    Returns:
        Figures by what they are.
    """
    monitor = experiment.monitor
    unit = "accuracy" if monitor == "error_rate" else experiment.loss
    best = record["best_validation"]
    found = {
        f"best validation {unit}": best[f"val_{monitor}"],
        f"test {unit} there": best[f"test_{monitor}"],
        f"last validation {unit}": record["last"][f"val_{monitor}"],
    }
    if "best_test" in record:
        found[f"last test {unit}"] = record["last"][f"test_{monitor}"]
        found[f"best test {unit}"] = record["best_test"][f"test_{monitor}"]
    if monitor == "error_rate":
        found = {name: 1 - rate for name, rate in found.items()}
    return found


def _loss(experiment: Experiment) -> Any:
    if experiment.loss == "mse":
        return "mse"
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def network(
    layer: keras.layers.Layer, task: Task, experiment: Experiment
) -> keras.Model:
    """Makes the network of an experiment: the layer, and a dense one after it.

    Args:
        layer: The recurrent layer.
        task: The data, for their shape.
        experiment: The experiment.

    Returns:
        The model, built.
    """
    outputs = experiment.outputs or task.num_classes
    shape = task.train.element_spec[0].shape[1:]
    return keras.Sequential([keras.Input(shape), layer, keras.layers.Dense(outputs)])


def schedule(options: argparse.Namespace, batches: int) -> tuple[int, int]:
    """Divides a run into stretches between validations.

    Args:
        options: The options, settled.
        batches: Batches in an epoch.

    Returns:
        The number of updates in a stretch, and of stretches.

    Raises:
        ValueError: If the run is shorter than one stretch.
    """
    total = options.steps or options.epochs * batches
    each = min(options.evaluate_every or batches, total)
    return each, total // each
