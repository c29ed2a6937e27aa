"""Pictures of what a training step costs against units, steps and batch."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_ortho.extras import require

LETTERS = {"units": "n", "steps": "T", "batch": "B"}


@dataclasses.dataclass(frozen=True)
class Panel:
    """One of the axes of a picture.

    Attributes:
        label: What is written below it.
        field: What of a row goes along it.
        at: What the others of a row must be.
    """

    label: str
    field: str
    at: Mapping[str, int]

    @property
    def title(self) -> str:
        """What the others are."""
        return ", ".join(f"{LETTERS[name]} = {n:,}" for name, n in self.at.items())

    def rows(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Those of some rows that belong there."""
        return [r for r in rows if all(r[name] == n for name, n in self.at.items())]


def plot(
    rows: Sequence[Mapping[str, Any]],
    path: Path,
    lines: Mapping[str, str],
    panels: Sequence[Panel],
) -> None:
    """Draws the cost of a training step, a line for each candidate.

    Args:
        rows: One for each candidate and shape, with `"name"`, `"units"`, `"steps"`,
            `"batch"` and, where it was measured, `"train"` in seconds.
        path: Where the image goes.
        lines: How the line of each name is drawn, `"-"` or `"--"`.
        panels: What is drawn side by side.

    Raises:
        ImportError: If Matplotlib is not installed.
    """
    require("matplotlib", extra="plot").use("Agg")
    plt = require("matplotlib.pyplot", extra="plot")

    figure, axes = plt.subplots(1, len(panels), figsize=(15, 5), sharey=True)
    for axis, panel in zip(axes, panels, strict=True):
        chosen = panel.rows(rows)
        for number, (name, style) in enumerate(lines.items()):
            points = sorted(
                (row[panel.field], 1e3 * row["train"])
                for row in chosen
                if row["name"] == name and "train" in row
            )
            if points:
                # There are ten colors.
                marker, color = "os^v"[number // 10], f"C{number % 10}"
                axis.loglog(*zip(*points, strict=True), style + marker, color=color)
                axis.lines[-1].set_label(name)
                axis.lines[-1].set_markersize(4)
        ticks = sorted({row[panel.field] for row in chosen})
        axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axis.minorticks_off()
        axis.set_xlabel(panel.label)
        axis.set_title(panel.title)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("training step, ms")
    handles: dict[str, Any] = {}
    for axis in axes:
        shown, labels = axis.get_legend_handles_labels()
        handles = dict(zip(labels, shown, strict=True)) | handles
    rows_of_legend = -(-len(handles) // 6)
    figure.legend(handles.values(), handles, loc="lower center", ncols=6)
    figure.tight_layout(rect=(0, 0.05 * rows_of_legend, 1, 1))
    figure.savefig(path, dpi=120)
    plt.close(figure)
