"""Plots of the time of a training step against units, steps and batch size."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_ortho.extras import require

LETTERS = {"units": "n", "steps": "T", "batch": "B"}


@dataclasses.dataclass(frozen=True)
class Panel:
    """One panel of a figure.

    Attributes:
        label: Label of the x-axis.
        field: Field of a row that varies along the x-axis.
        at: Required values of the other fields.
    """

    label: str
    field: str
    at: Mapping[str, int]

    @property
    def title(self) -> str:
        """Values of the fields that do not vary."""
        return ", ".join(f"{LETTERS[name]} = {n:,}" for name, n in self.at.items())

    def rows(self, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Selects the rows that the panel shows."""
        return [r for r in rows if all(r[name] == n for name, n in self.at.items())]


def plot(
    rows: Sequence[Mapping[str, Any]],
    path: Path,
    lines: Mapping[str, str],
    panels: Sequence[Panel],
) -> None:
    """Plots the time of a training step, with a line for each candidate."""
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
                # Matplotlib's default cycle has ten colors.
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
