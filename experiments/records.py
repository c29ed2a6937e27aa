"""Records of runs: their settings, environment and results."""

import hashlib
import json
import math
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_ortho.diagnostics import plot_curves
from keras_ortho.files import locked, read_json, replacing
from keras_ortho.training import best_epoch
from keras_ortho.version import __version__

# One record per seed.
Records = Sequence[Mapping[str, Any]]
# Entries of a record that say how it was made.
MADE = ("commit", "keras", "backend", "backend_version", "python", "cores")
# Entries that are left out of records of very many runs.
CURVES = ("curves", "best_validation", "best_test", "last", "controls")


def digest(arrays: Iterable[Any]) -> str:
    """Returns the SHA-256 of arrays, their shapes and dtypes, to tell data apart."""
    found = hashlib.sha256()
    for array in map(np.asarray, arrays):
        found.update(f"{array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def check_record(out: Path, record: str, part: str, others: Iterable[str] = ()) -> None:
    """Refuses a folder with files that would be replaced but were written otherwise."""
    found = [out / name for name in (record, *others) if (out / name).exists()]
    try:
        read_json(out / record, ["keras_ortho", part])
    except (OSError, ValueError) as error:
        if found:
            raise ValueError(
                f"--out must be a folder without {found[0].name}, or that of a run. "
                f"Received: {found[0]}, which no run of this kind has written"
            ) from error


def run_record(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Describes a run at its start, so that it can be repeated."""
    backend = keras.backend.backend()
    return {
        "settings": {
            name: str(value) if isinstance(value, Path) else value
            for name, value in settings.items()
        },
        "keras_ortho": __version__,
        "commit": _commit(),
        "keras": keras.version(),
        "backend": backend,
        "backend_version": sys.modules[backend].__version__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str | None:
    if not shutil.which("git"):
        return None
    commit = _git("rev-parse", "--short=10", "HEAD").stdout.strip()
    # Results of earlier runs do not affect this one.
    written = (":(top,exclude)results", ":(top,exclude)RESULTS.md")
    changed = _git("diff", "--quiet", "HEAD", "--", ":/", *written).returncode
    # Empty where this is no checkout.
    return f"{commit}{'-dirty' * bool(changed)}" if commit else None


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    here = Path(__file__).parent
    return subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True)


def summary(
    history: Sequence[Mapping[str, float]],
    monitor: str,
    updates: int,
    tested: Mapping[str, float],
) -> dict[str, Any]:
    """Summarizes a run; `tested` are figures of the stretch that is best validated."""
    names = dict.fromkeys(name for row in history for name in row)
    curves = {
        name: [row.get(name, math.nan) for row in history]
        for name in names
        if name not in ("epoch", "seconds")
    }

    def at(index: int) -> dict[str, float]:
        figures = {name: values[index] for name, values in curves.items()}
        return {"updates": updates * (index % len(history) + 1), **figures}

    best = at(best_epoch(curves[f"val_{monitor}"]))
    found = {
        "updates": [updates * (i + 1) for i in range(len(history))],
        "curves": curves,
        "seconds": round(sum(row["seconds"] for row in history), 1),
        "best_validation": best | {f"test_{name}": v for name, v in tested.items()},
        "last": at(-1),
    }
    if f"test_{monitor}" in curves:
        found["best_test"] = at(best_epoch(curves[f"test_{monitor}"]))
    return found


def read_record(path: Path, names: Iterable[str] = ()) -> dict[str, Any]:
    """Reads the record of a run, with these entries besides those of `run_record`."""
    return read_json(path, ["settings", *MADE, *names])


def brief(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record without its curves, with its last update alone."""
    kept = {name: value for name, value in record.items() if name not in CURVES}
    return kept | {"updates": record["updates"][-1:]}


def read_records(path: Path) -> dict[str, dict[str, Any]]:
    """Reads a file of records by the names of their runs; none without a file."""
    return read_json(path) if path.exists() else {}


def add_record(path: Path, run: str, record: Mapping[str, Any]) -> None:
    """Adds the record of a run to a file of records, or replaces it there."""
    with locked(path.parent, f".{path.name}.lock", wait=True):
        records = read_records(path) | {run: record}
        lines = (f'"{name}": {json.dumps(of)}' for name, of in records.items())
        with replacing(path) as aside:
            aside.write_text("{" + ",\n".join(lines) + "}\n", "utf-8")


def draw(
    path: Path, runs: Mapping[str, Records], baseline: str = "baseline", **kwargs: Any
) -> None:
    """Plots validation figures by update, of several seeds the median and the range."""
    curves, updates, bands = {}, {}, {}
    first = next(iter(runs.values()))[0]
    monitor, level = first["monitor"], first.get("baseline")
    for name, records in runs.items():
        found = [record["curves"][f"val_{monitor}"] for record in records]
        length = min(map(len, found))
        values = np.array([curve[:length] for curve in found])
        curves[name] = np.median(values, axis=0)
        updates[name] = records[0]["updates"][:length]
        if len(records) > 1:
            bands[name] = values.min(axis=0), values.max(axis=0)
    plot_curves(
        path,
        curves,
        x=updates,
        bands=bands,
        baselines={baseline: level} if level else None,
        xlabel="update",
        **{"ylabel": f"validation {monitor.replace('_', ' ')}", **kwargs},
    )
