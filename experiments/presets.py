"""The papers' settings, one row for each task and model, as `presets.toml` has them."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.layers import Units
from experiments.optimizers import PARTS


@dataclass(frozen=True)
class Preset:
    """A paper's settings for a model on a task: see `presets.toml`."""

    task: str
    model: str
    units: Units
    rates: Mapping[str, str]
    source: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()
    batch_size: int = 50
    epochs: int | None = None
    steps: int | None = None
    parameters: float | None = None
    published: str = ""


def _read() -> Iterator[Preset]:
    path = Path(__file__).with_suffix(".toml")
    tasks = tomllib.loads(path.read_text("utf-8"))
    sources = tasks.pop("sources")
    for task, usual in tasks.items():
        for own in usual.pop("rows"):
            row = {**usual, **own}
            if "steps" in own:  # Either replaces both.
                row.pop("epochs", None)
            rates = {"others": row.pop("rate")}
            rates |= {
                part: row.pop(f"{part}_rate") for part in PARTS if f"{part}_rate" in row
            }
            units, lengths = row.pop("units"), tuple(row.pop("lengths", ()))
            row |= {"rates": rates, "source": sources[row["source"]]}
            row["units"] = tuple(units) if isinstance(units, list) else units
            yield Preset(task, lengths=lengths, **row)


PRESETS = tuple(_read())


def find(
    task: str, model: str, units: Units | None = None, length: int | None = None
) -> Preset:
    """Finds a paper's settings."""
    rows = [row for row in PRESETS if row.task == task]
    for row in rows:
        fits = length is None or not row.lengths or length in row.lengths
        if fits and row.model == model and units in (None, row.units):
            return row
    known = [(row.model, row.units, row.lengths) for row in rows]
    raise ValueError(
        f"`preset`: no paper has such settings for {task}. Available: "
        f"{known}. Received: model={model!r}, units={units}, length={length}"
    )
