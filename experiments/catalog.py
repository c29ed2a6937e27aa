"""The tasks of the papers, as `examples/` runs them."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from experiments import smoke
from keras_ortho.tasks import adding, copying, pixels, ucr
from keras_ortho.tasks.pipeline import Task


@dataclass(frozen=True)
class Experiment:
    """A task, and how it is trained and scored.

    Attributes:
        name: As in the presets.
        load: Makes the data from the options.
        smoke: Makes small data in a folder, and gives the options that load them.
        loss: `"mse"` or `"cross-entropy"`.
        outputs: Size of the output; `None` for the number of classes.
        sequences: Whether there is an output at each step.
        monitor: The figure to report, `"loss"` or `"error_rate"`.
        tests_each_time: Whether to test whenever it is validated, for papers that
            report the best test figure, or the curve on the test data.
        length: Length, where that is an option.
        length_of: What it is the length of.
        data: Whether it needs files, or a prepared data set.
        evaluate_every: Updates from one validation to the next; `None` for an epoch.
        forecast: Label of the baseline, where there is one.
    """

    name: str
    load: Callable[[argparse.Namespace], Task]
    smoke: Callable[[Path], dict[str, Any]]
    loss: str
    outputs: int | None = None
    sequences: bool = False
    monitor: str = "loss"
    tests_each_time: bool = False
    length: int | None = None
    length_of: str = "the sequences"
    data: bool = False
    evaluate_every: int | None = None
    forecast: str = ""


def _sizes(options: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(options, name) for name in SIZES}
    given = {name: size for name, size in given.items() if size is not None}
    return {"batch_size": options.batch_size, "seed": options.seed, **given}


SIZES = ("train_size", "valid_size", "test_size")
SMOKE_SIZES = {"train_size": 400, "valid_size": 40, "test_size": 40}


def _mnist(steps: int | None = None, permuted: bool = False) -> Callable[..., Task]:
    return lambda options: pixels.mnist(
        options.data_dir,
        steps=steps or options.length,
        permuted=permuted,
        **_sizes(options),
    )


def _cifar10(form: Literal["pixels", "noise-padded"]) -> Callable[..., Task]:
    return lambda options: pixels.cifar10(
        options.data_dir,
        form=form,
        fixed_noise=getattr(options, "fixed_noise", False),
        **_sizes(options),
    )


_IMAGES: dict[str, Any] = {
    "loss": "cross-entropy",
    "monitor": "error_rate",
    "tests_each_time": True,
    "data": True,
    "forecast": "most frequent class",
}

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "copying",
            lambda options: copying.load(
                options.length, **{"valid_size": 200, **_sizes(options)}
            ),
            lambda folder: {"length": 10, "evaluate_every": 20, **SMOKE_SIZES},
            "cross-entropy",
            outputs=copying.NUM_CLASSES,
            sequences=True,
            length=1_000,
            length_of="the delay",
            evaluate_every=100,
            forecast="no memory",
        ),
        Experiment(
            "adding",
            lambda options: adding.load(options.length, **_sizes(options)),
            lambda folder: {"length": 20, "evaluate_every": 20, **SMOKE_SIZES},
            "mse",
            outputs=1,
            tests_each_time=True,
            length=200,
            evaluate_every=500,
            forecast="always 1",
        ),
        Experiment("mnist", _mnist(784), smoke.mnist, **_IMAGES),
        Experiment("permuted-mnist", _mnist(784, True), smoke.mnist, **_IMAGES),
        Experiment("sequence-mnist", _mnist(), smoke.mnist, **_IMAGES, length=28),
        Experiment("pixel-cifar10", _cifar10("pixels"), smoke.cifar10, **_IMAGES),
        Experiment(
            "noise-padded-cifar10", _cifar10("noise-padded"), smoke.cifar10, **_IMAGES
        ),
        Experiment(
            "ucr",
            lambda options: ucr.load(
                options.name,
                options.data_dir,
                batch_size=options.batch_size,
                seed=options.seed,
            ),
            smoke.ucr,
            "cross-entropy",
            monitor="error_rate",
            tests_each_time=True,
            data=True,
            evaluate_every=40,
            forecast="most frequent class",
        ),
    )
}
