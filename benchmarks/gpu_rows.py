"""Rows of `gpu.py`, in a file that is always complete and keeps finished work."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_ortho.files import remove_asides, replacing

Row = dict[str, Any]


def key(row: Row) -> tuple[Any, ...]:
    """Returns the key that identifies a row."""
    fields = ("kind", "precision", "units", "steps", "batch", "name")
    return tuple(row[name] for name in fields)


class Rows:
    """Measurements of one device, in a JSON file."""

    def __init__(self, path: Path, about: dict[str, Any], retry: bool = False) -> None:
        self.path = path
        self.commit = about["commit"]
        self.about = {k: v for k, v in about.items() if k != "commit"}
        self._rows: dict[tuple[Any, ...], Row] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_asides(path)
        if not path.exists():
            return
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["about"] != self.about:
            raise ValueError(
                f"`--out` must not hold measurements of something else. Received: "
                f"{path}, of {stored['about']}"
            )
        for row in stored["rows"]:
            if not (retry and why_not(row)):
                self._rows[key(row)] = row

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def missing(self, task: Row) -> list[str]:
        """Lists the candidates of a task that have no row."""

        def done(name: str) -> bool:
            row = self._rows.get(key({**task, "name": name}))
            return row is not None and (
                task["kind"] != "check" or row["commit"] == self.commit
            )

        return [name for name in task["names"] if not done(name)]

    def add(self, task: Row, results: dict[str, dict[str, Any]]) -> list[Row]:
        """Adds the results of a task, and writes the file."""
        fields = ("kind", "precision", "units", "steps", "batch")
        common = {name: task[name] for name in fields} | {"commit": self.commit}
        new = [{**common, "name": name, **found} for name, found in results.items()]
        self._rows |= {key(row): row for row in new}
        with replacing(self.path) as aside:
            rows = list(self._rows.values())
            aside.write_text(json.dumps({"about": self.about, "rows": rows}, indent=1))
        return new


def why_not(row: Row) -> str:
    """Returns the reason why a row has no measurement."""
    kinds = ("skipped", "failed")
    return ", ".join(f"{kind}: {row[kind]}" for kind in kinds if kind in row)


def failures(quantities: Mapping[str, Sequence[float]]) -> list[str]:
    """Lists the quantities whose error exceeds the allowed one."""
    return [
        f"{quantity}: off by {error:.2g}, {allowed:.2g} is allowed"
        for quantity, (error, allowed) in quantities.items()
        if not error <= allowed  # Also catches NaN.
    ]
