"""A run of an experiment: trained, tested, recorded and drawn."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from experiments.layers import TITLES, trained_parameters
from experiments.optimizers import Plateau, with_plateau
from experiments.report import draw, run_record, summary, write_record
from experiments.settings import recorded
from keras_ortho.files import remove_asides
from keras_ortho.locks import locked
from keras_ortho.tasks.pipeline import Task
from keras_ortho.training import train
from keras_ortho.training_callbacks import TestFigures

RECORD, PICTURE = "run.json", "curve.png"


def carry_out(
    model: keras.Model,
    task: Task,
    options: argparse.Namespace,
    *,
    name: str,
    monitor: str,
    unit: str,
    tests_each_time: bool = False,
    forecast: str = "",
    log: bool = True,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    test_callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, Any]:
    """Trains, tests, and writes the record and the picture of a run.

    Args:
        model: The network, compiled.
        task: The data.
        options: The options, complete.
        name: Name of the task.
        monitor: The figure to report, without `"val_"`.
        unit: What to call it.
        tests_each_time: Whether to test whenever it is validated.
        forecast: Label of the baseline, where there is one.
        log: Whether the axis of the picture is logarithmic.
        callbacks: Callbacks of the training. Default: none.
        test_callbacks: Callbacks of the tests. Default: none.

    Returns:
        What `run.json` holds.

    Raises:
        ValueError: If the files of a run that is to go on are damaged.
        BlockingIOError: If another process has a run in the same folder.
    """
    each, times = schedule(options, len(task.train))
    wanted = options.evaluate_every or len(task.train)
    other = {} if each == wanted else {"evaluate_every": each}
    settings = recorded(options)
    record = run_record({"task": name, **settings})
    parameters = trained_parameters(model)
    record |= {"parameters": parameters, "baseline": task.baseline}
    callbacks = list(callbacks)
    if with_plateau(model.optimizer):
        in_a_pass = max(1, round(len(task.train) / each))
        callbacks.append(Plateau(f"val_{monitor}", in_a_pass))
    if tests_each_time:
        callbacks.append(TestFigures(task.test, list(test_callbacks)))
    if options.tensorboard:
        callbacks.append(keras.callbacks.TensorBoard(options.out / "tensorboard"))
    title = TITLES[options.model]
    print(f"{title}, {parameters:,} parameters: {times} times {each} updates")
    out = options.out
    with locked(out):
        for file in (RECORD, PICTURE):
            remove_asides(out / file)
        history = train(
            model,
            task.passes,
            out / "run",
            epochs=times,
            steps_per_epoch=each,
            validation_data=task.valid,
            monitor=f"val_{monitor}",
            callbacks=callbacks,
            # A longer run goes on from a shorter one, if its stretches are the same.
            settings={
                name: str(value)
                for name, value in {**settings, **other}.items()
                if name not in ("epochs", "steps")
            },
        )
        tested = model.evaluate(
            task.test, callbacks=list(test_callbacks), return_dict=True, verbose=0
        )
        record |= summary(history, monitor, each, tested)
        record["controls"] = {
            control: model.evaluate(data, return_dict=True, verbose=0)[monitor]
            for control, data in task.controls.items()
        }
        record |= {"monitor": monitor, "figures": figures(record, monitor, unit)}
        write_record(out / RECORD, record)
        draw(
            out / PICTURE,
            {title: record},
            monitor,
            baselines={forecast: task.baseline} if task.baseline else None,
            ylabel=f"validation {monitor.replace('_', ' ')}",
            log=log,
        )
    for figure, value in record["figures"].items():
        print(f"{figure}: {value:.5g}")
    return record


def schedule(options: argparse.Namespace, batches: int) -> tuple[int, int]:
    """Divides a run into stretches between validations.

    A stretch has about as many updates as wanted: a whole number of stretches makes an
    epoch that is longer, or else the run, but for fewer updates than there are
    stretches.

    Args:
        options: The options, complete.
        batches: Batches in an epoch.

    Returns:
        The number of updates in a stretch, and of stretches.

    Example:
    >>> options = argparse.Namespace(steps=None, epochs=2, evaluate_every=800)
    >>> schedule(options, 3_135)
    (783, 8)
    """
    total = options.steps or options.epochs * batches
    each = options.evaluate_every or batches
    divided = batches if options.steps is None and each < batches else total
    each = divided // max(1, round(divided / each))
    return each, total // each


def figures(record: Mapping[str, Any], monitor: str, unit: str) -> dict[str, float]:
    """Names the figures of a run: accuracies, where it measures error rates.

    Args:
        record: What `summary` gives.
        monitor: The figure to report.
        unit: What to call it.

    Returns:
        Figures by what they are.
    """
    unit = "accuracy" if monitor == "error_rate" else unit
    best = record["best_validation"]
    found = {
        f"best validation {unit}": best[f"val_{monitor}"],
        f"test {unit} there": best[f"test_{monitor}"],
        f"last validation {unit}": record["last"][f"val_{monitor}"],
    }
    if "best_test" in record:
        found[f"last test {unit}"] = record["last"][f"test_{monitor}"]
        found[f"best test {unit}"] = record["best_test"][f"test_{monitor}"]
    for control, value in record.get("controls", {}).items():
        found[f"{unit}, {control}"] = value
    if monitor == "error_rate":
        found = {name: 1 - rate for name, rate in found.items()}
    return found
