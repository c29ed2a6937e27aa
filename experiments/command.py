"""The command line of an experiment: `python examples/adding.py --model scornn`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from experiments.catalog import EXPERIMENTS, SIZES, Experiment
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
from keras_ortho.metrics import ErrorRate
from keras_ortho.tasks.pipeline import Task


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
    with plain_errors():
        options = make_parser(experiment, description).parse_args(argv)
        settle(options, experiment)
        run(options, experiment)


def make_parser(experiment: Experiment, description: str) -> argparse.ArgumentParser:
    """Makes the parser of an experiment's options.

    Args:
        experiment: The experiment.
        description: What `--help` says.

    Returns:
        The parser.
    """
    parser = new_parser(description)
    add_model_options(parser, experiment.evaluate_every)
    add = parser.add_argument
    if experiment.length is not None:
        usual = f"of {experiment.length_of} ({experiment.length} steps)"
        add("--length", type=int, help=usual)
    if experiment.data:
        add("--data-dir", type=Path, help="folder or file of the data set")
    if experiment.name == "ucr":
        add("--name", help="of the data set, such as ECG200")
    if experiment.name == "noise-padded-cifar10":
        add("--fixed-noise", action="store_true", help="the same in each epoch")
    for size in SIZES if experiment.name != "ucr" else ():
        add(
            f"--{size.replace('_', '-')}",
            type=int,
            help="sequences (the usual number)",
        )
    return parser


def settle(options: argparse.Namespace, experiment: Experiment) -> None:
    """Fills in what the options leave open, from the preset or the defaults.

    Args:
        options: The options, which are changed.
        experiment: The experiment.

    Raises:
        ValueError: If options contradict each other or a value cannot be.
    """
    check(options)
    if options.smoke:
        fill_smoke(options, experiment.smoke)
    if experiment.length is not None:
        fill(options, {"length": experiment.length})
    fill(options, {"evaluate_every": experiment.evaluate_every})
    if experiment.name == "ucr" and not options.name:
        raise ValueError("--name must name a data set, such as ECG200. Received: none")
    complete(options, experiment.name)


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
    task = experiment.load(options)
    model = network(layer, task, experiment)
    settle_rates(options, model)
    model.compile(
        make_optimizer(options.rates, len(task.train)),
        _loss(experiment),
        metrics=[ErrorRate()] if experiment.monitor == "error_rate" else None,
        jit_compile=options.jit_compile or "auto",
    )
    return carry_out(
        model,
        task,
        options,
        name=experiment.name,
        monitor=experiment.monitor,
        unit=experiment.loss,
        tests_each_time=experiment.tests_each_time,
        forecast=experiment.forecast,
    )


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
