"""Networks that are trained on images one after the other, and compared."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from experiments.catalog import SIZES
from experiments.options import check_values, fill, fill_smoke, new_parser
from experiments.report import run_record
from keras_ortho.diagnostics import plot_curves
from keras_ortho.files import replacing
from keras_ortho.metrics import ErrorRate
from keras_ortho.tasks.pipeline import Task
from keras_ortho.training import best_epoch, train
from keras_ortho.training_callbacks import TestFigures

# Columns of the table that all have.
SCORES = {
    "epoch": "epoch",
    "validation_accuracy": "validation",
    "test_accuracy": "test",
    "best_test_accuracy": "best test",
}


def rivals_parser(
    description: str, kinds: Sequence[str], data: str, epochs: int
) -> argparse.ArgumentParser:
    """Makes a parser with the options that the comparisons share.

    Args:
        description: What `--help` says.
        kinds: The networks to choose from.
        data: What `--data-dir` is the folder of.
        epochs: How many passes the help names.

    Returns:
        The parser.
    """
    parser = new_parser(description)
    add = parser.add_argument
    add("--models", nargs="+", choices=kinds, default=list(kinds), help="(all)")
    add("--data-dir", type=Path, help=data)
    add("--epochs", type=int, help=f"passes over the training data ({epochs})")
    for size in SIZES:
        add(f"--{size.replace('_', '-')}", type=int, help="images (the paper's)")
    return parser


def settle(
    options: argparse.Namespace,
    usual: Mapping[str, Any],
    smoke: Mapping[str, Any],
    make: Callable[[Path], Mapping[str, Any]],
) -> None:
    """Fills in what the options leave open.

    Args:
        options: The options, which are changed.
        usual: What they are then.
        smoke: What they are then in a smoke run.
        make: Makes the data of a smoke run in a folder, and gives the options that
            read them.

    Raises:
        ValueError: If options contradict each other or a number cannot be.
    """
    check_values(options)
    if options.smoke:
        fill_smoke(options, make)
    fill(options, smoke if options.smoke else usual)


def data_options(options: argparse.Namespace) -> dict[str, Any]:
    """Picks the arguments of a task.

    Args:
        options: The options, settled.

    Returns:
        Arguments by name: where the data are, their sizes, the seed.
    """
    given = {name: getattr(options, name) for name in ("data_dir", "seed", *SIZES)}
    return {name: value for name, value in given.items() if value is not None}


def contend(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    task: Task,
    options: argparse.Namespace,
    name: str,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Trains a network, and gives its figures.

    Args:
        model: The network.
        optimizer: Its optimizer.
        task: The data.
        options: The options, settled. Lists among them are what the networks that
            are compared go through.
        name: Name of the folder of this network.
        settings: What sets it apart from the others.

    Returns:
        What JSON can hold: `"epoch"`, accuracies there, which is chosen on
        validation data, the best test accuracy of all epochs, the curves of training
        loss and test accuracy, and `"seconds"`.
    """
    model.compile(
        optimizer,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[ErrorRate()],
    )
    callbacks: list[keras.callbacks.Callback] = [TestFigures(task.test)]
    if options.tensorboard:
        logs = options.out / "tensorboard" / name
        callbacks.append(keras.callbacks.TensorBoard(logs))
    shared = {
        key: value
        for key, value in run_record(vars(options))["settings"].items()
        if key not in ("out", "epochs", "data_dir", "tensorboard")
        and not isinstance(value, list)
    }
    history = train(
        model,
        task.passes,
        options.out / name,
        epochs=options.epochs,
        validation_data=task.valid,
        # Finite also where a rate is too large.
        monitor="val_error_rate",
        callbacks=callbacks,
        settings={**shared, **settings},
    )
    best = history[best_epoch([row["val_error_rate"] for row in history])]
    return {
        "epoch": best["epoch"],
        "validation_accuracy": 1 - best["val_error_rate"],
        "test_accuracy": 1 - best["test_error_rate"],
        "best_test_accuracy": 1 - min(row["test_error_rate"] for row in history),
        "training_loss": [row["loss"] for row in history],
        "test_accuracies": [1 - row["test_error_rate"] for row in history],
        "seconds": round(sum(row["seconds"] for row in history), 1),
    }


def write_table(
    path: Path, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Writes a table of figures: of texts and integers, and others to four places.

    Args:
        path: Markdown file to write.
        columns: Titles by the name of the figure, the network's name first.
        rows: Figures by name, a network each.

    Example:
    >>> write_table(Path("t.md"), {"model": "network"}, [{"model": "BNP"}])
    """
    lines = [
        f"| {' | '.join(columns.values())} |",
        f"|---|{'--:|' * (len(columns) - 1)}",
    ]
    lines += [f"| {' | '.join(_cell(row[name]) for name in columns)} |" for row in rows]
    with replacing(path) as aside:
        aside.write_text("\n".join(lines) + "\n")


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def draw_curves(
    folder: Path, results: Mapping[str, Mapping[str, Any]], suffix: str = ""
) -> None:
    """Draws `loss.png`, of the training, and `accuracy.png`, of the test.

    Args:
        folder: Folder for them.
        results: What `contend` gave, by title.
        suffix: What to put behind the names of the files. Default: nothing.
    """
    for figure, label, name in (
        ("training_loss", "training loss", "loss"),
        ("test_accuracies", "test accuracy", "accuracy"),
    ):
        curves = {title: result[figure] for title, result in results.items()}
        plot_curves(folder / f"{name}{suffix}.png", curves, ylabel=label)
