"""Tables and plots of the rows of `gpu.py`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpu_names import BASES, FORMS, LAYER_NAMES, NAMES, PRECISIONS
from gpu_rows import Row, key, why_not
from machine import versions
from plots import Panel, plot

TITLES = {"train": "Training step", "infer": "Inference"}
SHAPE = "| n | T | B | precision | "


def report(rows: Iterable[Row], about: dict[str, Any]) -> str:
    """Formats all tables."""
    rows = list(rows)
    commits = ", ".join(sorted({str(row["commit"]) for row in rows}))
    parts = [
        f"# {about['device']}\n\n{about['processor']}, {about['cores']} cores; "
        f"{versions(about)}; commit {commits}.\n"
    ]
    for kind, title in TITLES.items():
        parts.append(f"## {title}\n\n{time_table(rows, kind)}")
    parts.append(f"## Kernel, compilation, memory\n\n{cost_table(rows)}")
    parts.append(f"## Profiles\n\n{profiles(rows)}")
    parts.append(f"## Distance from float64\n\n{check_table(rows)}")
    return "\n".join(parts)


def time_table(rows: list[Row], kind: str) -> str:
    """Formats the times of a step, and their ratios to those of the baselines."""
    lines = [
        SHAPE + "| ms | " + " | ".join(f"over {name}" for name in BASES) + " |",
        "|--:|--:|--:|---|---|--:" + "|--:" * len(BASES) + "|",
    ]
    timed = [row for row in rows if row["kind"] == "time"]
    times = {key(row): row.get(kind) for row in timed}
    for row in timed:
        seconds = row.get(kind)
        cells = [f"{1e3 * seconds:.3g}" if seconds else why_not(row)]
        for name in BASES:
            other = times.get(key({**row, "name": name}))
            cells.append(f"{seconds / other:.2f}" if seconds and other else "")
        lines.append(_line(row, cells))
    return "\n".join(lines) + "\n"


def cost_table(rows: list[Row]) -> str:
    """Formats the other costs of a training step: kernel, compilation and memory.

    The kernel's share is the time of the recurrent matrix and its gradient, divided by
    the time of the whole step. The planned memory is what XLA allocates in addition to
    the arguments and results.
    """
    lines = [
        SHAPE + "| kernel, ms | its share | trace, s | compile, s | planned, MiB "
        "| peak, MiB |",
        "|--:|--:|--:|---|---" + "|--:" * 6 + "|",
    ]
    known = {key(row): row for row in rows}
    shown = dict.fromkeys(
        key({**row, "kind": "time"})
        for row in rows
        if row["kind"] in ("time", "memory")
    )
    for place in shown:
        row = known.get(place, {})
        fields = ("precision", "units", "steps", "batch", "name")
        common = dict(zip(fields, place[1:], strict=True))
        alone = key({**common, "kind": "kernel", "steps": 0, "batch": 0})
        kernel = known.get(alone, {}).get("train")
        memory = known.get(key({**common, "kind": "memory"}), {})
        train = row.get("train")
        peak = f"{memory['memory_mib']:.0f}" if "memory_mib" in memory else ""
        cells = [
            f"{1e3 * kernel:.3g}" if kernel else "",
            f"{kernel / train:.3f}" if kernel and train else "",
            f"{row['trace']:.2f}" if "trace" in row else "",
            f"{row['compile']:.2f}" if "compile" in row else "",
            f"{row['temporary_mib']:.0f}" if "temporary_mib" in row else "",
            peak or why_not(memory),
        ]
        lines.append(_line(common, cells))
    return "\n".join(lines) + "\n"


def profiles(rows: list[Row]) -> str:
    """Formats the profiles of training steps."""
    parts = []
    for row in rows:
        if row["kind"] != "profile":
            continue
        head = (
            f"### {row['name']}, n = {row['units']}, T = {row['steps']}, "
            f"B = {row['batch']}, {row['precision']}\n\n"
        )
        if why_not(row):
            parts.append(head + why_not(row) + "\n")
            continue
        lines = [f"Operations took {1e3 * row['busy']:.3g} ms in all:", ""]
        for name, seconds in row["groups"].items():
            lines.append(f"- {name}: {1e3 * seconds:.3g} ms")
        lines += ["", "The longest:", ""]
        for longest in row["longest"]:
            milliseconds = 1e3 * longest["seconds"]
            lines.append(
                f"- {milliseconds:.3g} ms `{longest['operation']}` {longest['source']}"
            )
        lines += ["", "A turn of each loop:", ""]
        for loop in row["loops"]:
            kinds = ", ".join(f"{n} {kind}" for kind, n in loop["operations"].items())
            turns = "unknown" if loop["turns"] is None else loop["turns"]
            lines.append(f"- {turns} turns of {kinds}: {loop['source']}")
        parts.append(head + "\n".join(lines) + f"\n\nThe trace: {row['folder']}\n")
    return "\n".join(parts)


def check_table(rows: list[Row]) -> str:
    """Formats the error of each layer relative to its definition in float64."""
    lines = [
        SHAPE + "| quantity | error | allowed |",
        "|--:|--:|--:|---|---|---|--:|--:|",
    ]
    for row in rows:
        if row["kind"] == "check":
            quantity, (error, allowed) = max(
                row["quantities"].items(), key=lambda item: item[1][0] / item[1][1]
            )
            lines.append(_line(row, [quantity, f"{error:.2g}", f"{allowed:.2g}"]))
    return "\n".join(lines) + "\n"


def _line(row: Row, cells: list[str]) -> str:
    shape = [row["units"], row["steps"], row["batch"], row["precision"], row["name"]]
    return "| " + " | ".join(map(str, [*shape, *cells])) + " |"


def plots(rows: Iterable[Row], form: str, path: Path) -> list[Path]:
    """Plots training times against units, steps and batch size, for each precision."""
    units, steps, batch = FORMS[form][0][0]
    panels = (
        Panel("units n", "units", {"steps": steps, "batch": batch}),
        Panel("steps T", "steps", {"units": units, "batch": batch}),
        Panel("batch B", "batch", {"units": units, "steps": steps}),
    )
    styles = {name: "-" if name in LAYER_NAMES else "--" for name in NAMES}
    timed = [row for row in rows if row["kind"] == "time"]
    drawn = []
    for precision in PRECISIONS:
        chosen = [row for row in timed if row["precision"] == precision]
        if chosen:
            image = path.with_name(f"{path.name}-{precision}.png")
            plot(chosen, image, styles, panels)
            drawn.append(image)
    return drawn
