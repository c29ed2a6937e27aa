"""The table and the figures of networks that are compared."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_ortho.diagnostics import plot_curves
from keras_ortho.files import replacing

# Columns of the table that all have.
SCORES = {
    "epoch": "epoch",
    "validation_accuracy": "validation",
    "test_accuracy": "test",
    "best_test_accuracy": "best test",
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
