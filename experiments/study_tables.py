"""Results of the study of the defaults: one row per run, and tables."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.study import MODELS, OF_MODELS, PROBLEMS, SETTINGS, Trial
from experiments.tables import check_own, table
from keras_ortho.files import replacing
from keras_ortho.locks import locked

TITLE = "# Settings, measured"


def outcome(trial: Trial, record: Mapping[str, Any]) -> dict[str, Any]:
    """Extracts from a record the row of the table."""
    problem = PROBLEMS[trial.problem]
    curve = record["curves"][problem.monitor]
    updates = record["updates"]
    reached = [
        next((n for n, v in zip(updates, curve, strict=True) if v <= wanted), None)
        for wanted in problem.thresholds
    ]
    return {
        "problem": trial.problem,
        "model": trial.model,
        "setting": trial.setting,
        "seed": trial.seed,
        "updates": updates[-1],
        "first": reached[0],
        "second": reached[1] if len(reached) > 1 else None,
        "best": min(curve),
        "last": curve[-1],
        "milliseconds": round(1e3 * record["seconds"] / updates[-1], 2),
        "commit": record["commit"],
    }


def read_rows(path: Path) -> dict[Trial, dict[str, str]]:
    """Reads the table of outcomes."""
    if not path.exists():
        return {}
    rows = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            try:
                trial = Trial(
                    row["problem"], row["model"], row["setting"], int(row["seed"])
                )
                float(row["last"])
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(
                    f"{path} is damaged: a row must have a problem, a model, a "
                    f"setting, a seed and figures. Received: {dict(row)}"
                ) from error
            rows[trial] = row
    return rows


def add_row(path: Path, row: Mapping[str, Any]) -> None:
    """Adds an outcome to the table, sorted so that a diff shows what is new."""
    with locked(path.parent, f".{path.name}.lock", wait=True):
        rows = [*read_rows(path).values(), {k: _text(v) for k, v in row.items()}]
        rows.sort(key=lambda r: (r["model"], r["problem"], r["setting"], r["seed"]))
        with (
            replacing(path) as aside,
            open(aside, "w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def write_tables(path: Path, rows: Mapping[Trial, Mapping[str, str]]) -> None:
    """Writes a table of settings by models for each problem.

    A cell has the median number of updates to the first threshold or, if some seed does
    not reach it, the median of the last figures in parentheses.
    """
    check_own(path, TITLE)
    lines = [TITLE]
    for problem, kind in PROBLEMS.items():
        found = {t: row for t, row in rows.items() if t.problem == problem}
        models = [model for model in MODELS if any(t.model == model for t in found)]
        settings = [
            name
            for name in (*SETTINGS, *OF_MODELS)
            if any(t.setting == name for t in found)
        ]
        if not found:
            continue
        lines += ["", f"## {problem}, updates to {kind.thresholds[0]:.3g}", ""]
        cells = [
            [name, *(_cell(found, model, name) for model in models)]
            for name in settings
        ]
        lines += table(["setting", *models], cells, right=True)
    for problem in PROBLEMS:
        lines += _seeds(problem, rows)
    with replacing(path) as aside:
        aside.write_text("\n".join(lines) + "\n", "utf-8")


def _seeds(problem: str, rows: Mapping[Trial, Mapping[str, str]]) -> list[str]:
    """Returns a table of medians and ranges of what was run from several seeds."""
    cells = []
    for model in MODELS:
        for setting in (*SETTINGS, *OF_MODELS):
            own = [
                row
                for t, row in rows.items()
                if (t.problem, t.model, t.setting) == (problem, model, setting)
            ]
            if len(own) > 1:
                figures = [_spread(own, name) for name in ("first", "second", "best")]
                cells.append([model, setting, str(len(own)), *figures])
    if not cells:
        return []
    wanted = [f"updates to {t:.3g}" for t in PROBLEMS[problem].thresholds]
    kept = [0, 1, 2, 3, *([4] if len(wanted) > 1 else []), 5]
    titles = ["model", "setting", "seeds", *wanted, "best figure"]
    cells = [[row[i] for i in kept] for row in cells]
    title = f"## {problem}, several seeds: median, least and most"
    return ["", title, "", *table(titles, cells, right=True)]


def _spread(rows: list[Mapping[str, str]], name: str) -> str:
    """Formats median and range if all rows have the figure, else how many have it."""
    values = sorted(float(row[name]) for row in rows if row[name])
    if len(values) < len(rows):
        return f"{len(values)} of {len(rows)}"
    return f"{np.median(values):.3g} ({values[0]:.3g} to {values[-1]:.3g})"


def _cell(rows: Mapping[Trial, Mapping[str, str]], model: str, setting: str) -> str:
    own = [r for t, r in rows.items() if (t.model, t.setting) == (model, setting)]
    if not own:
        return ""
    if all(row["first"] for row in own):
        return f"{np.median([int(row['first']) for row in own]):.0f}"
    return f"({np.median([float(row['last']) for row in own]):.3g})"
