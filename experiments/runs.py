"""Trains, tests, records and draws the runs of experiments."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from experiments.layers import build, title_of, trained_parameters
from experiments.optimizers import Plateau, make_optimizer, with_plateau
from experiments.options import Settings
from experiments.records import check_record, digest, draw, run_record, summary
from keras_ortho.diagnostics import plot_curves
from keras_ortho.files import locked, read_json, write_json
from keras_ortho.metrics import ErrorRate
from keras_ortho.tasks.pipeline import Task
from keras_ortho.training import best_epoch, train
from keras_ortho.training_callbacks import TestFigures

RECORD = "run.json"
# Keras's names for the figures that the papers report.
MONITORS = {
    "mse": "loss",
    "cross-entropy": "loss",
    "accuracy": "error_rate",
    "bits per character": "bits_per_character",
    "error in dB^2": "valid_frame_mse",
}
# Settings that do not affect the results, or that other settings already reflect.
UNRECORDED = (
    *("out", "resume", "data_dir", "preset", "chosen"),
    *("match", "matched", "seeds", "jobs", "scheduler"),
)
# Columns of the tables of all comparisons.
SCORES = {
    "epoch": "epoch",
    "validation_accuracy": "validation",
    "test_accuracy": "test",
    "best_test_accuracy": "best test",
}


def fit(
    model: keras.Model,
    task: Task,
    settings: Settings,
    figure: str,
    *,
    tests_each_time: bool = True,
    baseline: str = "",
    log: bool = True,
    data: str = "",
    callbacks: Sequence[keras.callbacks.Callback] = (),
    test_callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict[str, Any]:
    """Trains a network, or resumes, tests it, and writes `run.json` and `curve.png`."""
    monitor, out = MONITORS[figure], settings.out
    each, times = schedule(settings, len(task.train))
    # A longer run can resume a shorter one, if its stretches are the same.
    kept = settings.record(*UNRECORDED, "task", "epochs", "steps")
    if each != (settings.evaluate_every or len(task.train)):
        kept["evaluate_every"] = each
    kept["backend"] = keras.backend.backend()
    kept["data"] = data or _first_batches(task)
    parameters = trained_parameters(model)
    record = run_record(settings.record(*UNRECORDED))
    record |= {"parameters": parameters, "baseline": task.baseline, "monitor": monitor}
    callbacks = [*callbacks]
    if with_plateau(model):
        in_a_pass = max(1, round(len(task.train) / each))
        callbacks.append(Plateau(f"val_{monitor}", in_a_pass))
    if tests_each_time:
        callbacks.append(TestFigures(task.test, list(test_callbacks)))
    title = title_of(settings.model)
    print(f"{title}, {parameters:,} parameters: {times} times {each} updates")

    def evaluate(batches: Any) -> dict[str, float]:
        own = list(test_callbacks)
        return model.evaluate(batches, callbacks=own, return_dict=True, verbose=0)

    with locked(out):
        check_record(out, RECORD, "figures")
        history = train(
            model,
            task.passes,
            out / "run",
            epochs=times,
            steps_per_epoch=each,
            validation_data=task.valid,
            monitor=f"val_{monitor}",
            callbacks=callbacks,
            settings={name: str(value) for name, value in kept.items()},
        )
        made = out / RECORD
        if made.exists() and len(read_json(made)["updates"]) == len(history):
            print("Nothing was left to train.")
            return read_json(made)
        record |= summary(history, monitor, each, evaluate(task.test))
        record["controls"] = {
            control: evaluate(batches)[monitor]
            for control, batches in task.controls.items()
        }
        record["figures"] = figures(record, figure)
        write_json(made, record)
        draw(out / "curve.png", {title: [record]}, baseline, log=log)
    for name, value in record["figures"].items():
        print(f"{name}: {value:.5g}")
    return record


def _first_batches(task: Task) -> str:
    return digest(
        part
        for batches in (task.train, task.valid, task.test)
        for part in keras.tree.flatten(next(iter(batches)))
    )


def classify(task: Task, settings: Settings) -> None:
    """Builds and trains a network that finds the class of a sequence."""

    def network(layer: keras.layers.Layer) -> keras.Model:
        inputs = keras.Input(task.train.element_spec[0].shape[1:])
        return keras.Sequential([inputs, layer, keras.layers.Dense(task.num_classes)])

    model, settings = build(network, settings)
    fit_classifier(model, task, settings)


def fit_classifier(
    model: keras.Model, task: Task, settings: Settings
) -> dict[str, Any]:
    """Trains a network that returns class logits."""
    optimizer = make_optimizer(settings.rates, len(task.train))
    compile_classifier(model, optimizer, jit_compile=settings.jit_compile or "auto")
    return fit(model, task, settings, "accuracy", baseline="most frequent class")


def compile_classifier(model: keras.Model, optimizer: Any, **kwargs: Any) -> None:
    """Compiles a network that returns class logits, with the cross-entropy loss."""
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, weighted_metrics=[ErrorRate()], **kwargs)


def fit_rival(
    model: keras.Model, task: Task, settings: Settings, name: str, own: Mapping
) -> dict[str, Any]:
    """Trains one of several image networks that are compared."""
    shared = settings.record("out", "epochs", "data_dir")
    shared = {key: v for key, v in shared.items() if not isinstance(v, list)}
    history = train(
        model,
        task.passes,
        settings.out / name,
        epochs=settings.epochs,
        validation_data=task.valid,
        # Finite even if a learning rate is too large.
        monitor="val_error_rate",
        callbacks=[TestFigures(task.test)],
        settings={**shared, "data": _first_batches(task), **own},
    )
    best = history[best_epoch([row["val_error_rate"] for row in history])]
    accuracies = [1 - row["test_error_rate"] for row in history]
    return {
        "epoch": best["epoch"],
        "validation_accuracy": 1 - best["val_error_rate"],
        "test_accuracy": 1 - best["test_error_rate"],
        "best_test_accuracy": max(accuracies),
        "training_loss": [row["loss"] for row in history],
        "test_accuracies": accuracies,
        "seconds": round(sum(row["seconds"] for row in history), 1),
    }


def draw_rivals(
    folder: Path, results: Mapping[str, Mapping[str, Any]], suffix: str = ""
) -> None:
    """Draws the training loss in `loss.png` and the test accuracy in `accuracy.png`."""
    for figure, label, name in (
        ("training_loss", "training loss", "loss"),
        ("test_accuracies", "test accuracy", "accuracy"),
    ):
        curves = {title: result[figure] for title, result in results.items()}
        plot_curves(folder / f"{name}{suffix}.png", curves, ylabel=label)


def schedule(settings: Settings, batches: int) -> tuple[int, int]:
    """Divides a run, or its epochs if they are longer, into stretches to validate."""
    total = settings.steps or settings.epochs * batches
    each = settings.evaluate_every or batches
    divided = batches if settings.steps is None and each < batches else total
    each = divided // max(1, round(divided / each))
    return each, total // each


def figures(record: Mapping[str, Any], figure: str) -> dict[str, float]:
    """Returns the figures of a record by title, with accuracies for error rates."""
    monitor, best, last = record["monitor"], record["best_validation"], record["last"]
    found = {
        f"best validation {figure}": best[f"val_{monitor}"],
        f"test {figure} there": best[f"test_{monitor}"],
        f"last validation {figure}": last[f"val_{monitor}"],
    }
    if "best_test" in record:
        found[f"last test {figure}"] = last[f"test_{monitor}"]
        found[f"best test {figure}"] = record["best_test"][f"test_{monitor}"]
    for control, value in record["controls"].items():
        found[f"{figure}, {control}"] = value
    flipped = monitor == "error_rate"
    return {name: 1 - v if flipped else v for name, v in found.items()}
