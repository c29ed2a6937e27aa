"""Records of runs: their settings, environment and results."""

import csv
import functools
import hashlib
import json
import math
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_ortho.diagnostics import plot_curves
from keras_ortho.files import naming, read_json, replacing
from keras_ortho.locks import locked
from keras_ortho.training import best_epoch
from keras_ortho.version import __version__

# Entries of a record that say how it was made.
MADE = ("commit", "keras", "backend", "backend_version", "python", "cores")
# Entries of a record that `brief` leaves out, and settings that it keeps.
CURVES = ("curves", "best_validation", "best_test", "last", "controls")
BRIEF = ("task", "seed", "model", "units", "batch_size", "steps", "name")


def digest(arrays: Iterable[Any]) -> str:
    """Returns the SHA-256 of arrays, their shapes and dtypes, to tell data apart."""
    found = hashlib.sha256()
    for array in map(np.asarray, arrays):
        found.update(f"{array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def check_record(out: Path, record: str, part: str, others: Iterable[str] = ()) -> None:
    """Refuses a folder with files that would be replaced but were written otherwise."""
    found = [name for name in (record, *others) if (out / name).exists()]
    try:
        read_json(out / record, ["keras_ortho", part])
    except (OSError, ValueError) as error:
        if found:
            raise ValueError(
                f"--out must be a folder without {found[0]}, or the folder of a run. "
                f"Received: {out / found[0]}, which no run of this kind has written"
            ) from error


def run_record(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Describes a run at its start, so that it can be repeated."""
    backend = keras.backend.backend()
    return {
        "settings": {
            name: os.fspath(value) if isinstance(value, os.PathLike) else value
            for name, value in settings.items()
        },
        "keras_ortho": __version__,
        "commit": _commit(),
        "keras": keras.version(),
        "backend": backend,
        "backend_version": _version(backend),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # A build under another name, such as tensorflow-cpu.
        return None


def _commit() -> str | None:
    try:
        commit = _git("rev-parse", "--short=10", "HEAD").stdout.strip()
    except FileNotFoundError:  # Git is not installed.
        return None
    if not commit:  # Not in a checkout.
        return None
    # Results of earlier runs do not affect this one.
    written = (":(top,exclude)results", ":(top,exclude)RESULTS.md")
    same = _git("diff", "--quiet", "HEAD", "--", ":/", *written).returncode == 0
    return commit if same else f"{commit}-dirty"


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    here = Path(__file__).parent
    return subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True)


def summary(
    history: Sequence[Mapping[str, float]],
    monitor: str,
    updates: int,
    tested: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Summarizes a run whose best stretch is chosen on the validation data."""
    rows = [dict(row) for row in history]
    curves = {
        name: [row.get(name, math.nan) for row in rows]
        for name in dict.fromkeys(name for row in rows for name in row)
        if name not in ("epoch", "seconds")
    }
    found: dict[str, Any] = {
        "updates": [updates * (i + 1) for i in range(len(rows))],
        "curves": curves,
        "seconds": round(sum(row["seconds"] for row in rows), 1),
    }

    def at(index: int) -> dict[str, float]:
        figures = {name: values[index] for name, values in curves.items()}
        return {"updates": found["updates"][index], **figures}

    measured = {f"test_{name}": value for name, value in (tested or {}).items()}
    found["best_validation"] = at(best_epoch(curves[f"val_{monitor}"])) | measured
    found["last"] = at(-1)
    if f"test_{monitor}" in curves:
        found["best_test"] = at(best_epoch(curves[f"test_{monitor}"]))
    return found


def read_record(path: Path, names: Iterable[str] = ()) -> dict[str, Any]:
    """Reads the record of a run, with these entries besides those of `run_record`."""
    return read_json(path, ["settings", *MADE, *names])


def brief(record: Mapping[str, Any]) -> dict[str, Any]:
    """Drops from a record what tables of many runs do not need, such as curves."""
    kept = {name: value for name, value in record.items() if name not in CURVES}
    settings = {k: v for k, v in record["settings"].items() if k in BRIEF}
    return kept | {"settings": settings, "updates": record["updates"][-1:]}


def as_kept(path: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a file of records keeps of one: in a CSV file not its curves."""
    return brief(record) if path.suffix == ".csv" else dict(record)


def read_records(path: Path, names: Iterable[str] = ()) -> dict[str, dict[str, Any]]:
    """Reads a file of records by the names of their runs; none without a file."""
    return _records(path, path.stat().st_mtime_ns, *names) if path.exists() else {}


@functools.lru_cache(maxsize=64)
def _records(path: Path, written: int, *names: str) -> dict[str, dict[str, Any]]:
    if path.suffix == ".csv":
        return _rows(path)
    with naming(path):
        found = json.loads(path.read_text("utf-8"))
        for record in found.values():
            for name in ("settings", *MADE, *names):
                record[name]
        return found


def _rows(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            record = found[row.pop("run", "")] = {}
            for title, text in row.items():
                if not title or text is None:
                    raise ValueError(f"{path} is damaged: a row of another length")
                outer, _, name = title.rpartition(".")
                part = record.setdefault(outer, {}) if outer else record
                part[name] = _value(text)
    return found


def add_record(path: Path, run: str, record: Mapping[str, Any]) -> None:
    """Adds the record of a run to a file of records, or replaces it there."""
    with locked(path.parent, f".{path.name}.lock", wait=True):
        records = read_records(path) | {run: as_kept(path, record)}
        if path.suffix == ".json":
            lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in records.items())
            with replacing(path) as new:
                new.write_text("{" + ",\n".join(lines) + "}\n", "utf-8")
            return
        rows = [{"run": run, **_flat(each)} for run, each in records.items()]
        with replacing(path) as new, new.open("w", encoding="utf-8", newline="") as to:
            titles = dict.fromkeys(title for row in rows for title in row)
            writer = csv.DictWriter(to, titles, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def _flat(record: Mapping[str, Any], outer: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{outer}{name}.")
        else:
            # A text that reads like a number, as a commit may, is kept in quotes.
            plain = isinstance(value, str) and _value(value) == value
            flat[f"{outer}{name}"] = value if plain else json.dumps(value)
    return flat


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def draw(
    path: Path,
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
    monitor: str,
    **kwargs: Any,
) -> None:
    """Plots a validation figure of runs against their updates.

    Several seeds are shown as their median, in a band from minimum to maximum.
    """
    values = {name: _stack(found, f"val_{monitor}") for name, found in runs.items()}
    plot_curves(
        path,
        {name: np.median(of, axis=0) for name, of in values.items()},
        x={
            name: found[0]["updates"][: values[name].shape[1]]
            for name, found in runs.items()
        },
        bands={
            name: (of.min(axis=0), of.max(axis=0))
            for name, of in values.items()
            if len(of) > 1
        },
        xlabel="update",
        **kwargs,
    )


def _stack(records: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    """Stacks a curve of each record, cut to the length of the shortest."""
    curves = [record["curves"][name] for record in records]
    length = min(map(len, curves))
    return np.array([curve[:length] for curve in curves])
