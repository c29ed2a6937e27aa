"""The record of a run: its settings, what it ran with, what came out."""

import hashlib
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
from keras_ortho.sealed import read_sealed
from keras_ortho.training import best_epoch
from keras_ortho.version import __version__

# What a record has of each stretch of a run, and of some of them.
CURVES = ("curves", "best_validation", "best_test", "last", "controls")


def digest(arrays: Iterable[Any]) -> str:
    """Tells data from others: the SHA-256 of arrays, with their shapes and dtypes.

    Args:
        arrays: Arrays, or tensors.

    Example:
    >>> digest([np.zeros(3)]) == digest([np.zeros(4)])
    False
    """
    found = hashlib.sha256()
    for array in map(np.asarray, arrays):
        found.update(f"{array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def run_record(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Describes a run that begins, so that it can be done again.

    Args:
        settings: Its settings by name, the seed among them.

    Returns:
        What JSON can hold: the settings, the versions of the package, of Keras, of
        its backend and of Python, the commit of the checkout (`None` outside of
        one, with `"-dirty"` where files differ from it that are no results), the
        number of CPU cores, the kind of machine, and when it began, in UTC.

    Example:
    >>> record = run_record({"model": "scornn", "seed": 0})
    >>> record["settings"]["seed"]
    0
    """
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
    except PackageNotFoundError:  # A build of another name, such as tensorflow-cpu.
        return None


def _commit() -> str | None:
    try:
        commit = _git("rev-parse", "--short=10", "HEAD").stdout.strip()
    except FileNotFoundError:  # There is no git.
        return None
    if not commit:  # No checkout.
        return None
    # What earlier runs wrote changes nothing in this one.
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
    """Sums up a run whose best stretch was chosen on the validation data.

    Args:
        history: What `keras_ortho.training.train` gave.
        monitor: Name of the figure without `"val_"`, of which less is better.
        updates: Updates in a stretch of the history.
        tested: Figures on the test data of the weights that were best on the
            validation data. Default: `None`, where the history has them.

    Returns:
        What JSON can hold: `"updates"` and `"curves"` of all figures,
        `"best_validation"`, `"last"`, and, where the run tested each time,
        `"best_test"`, which is chosen on the test data: figures and updates; and
        the `"seconds"` of training and of evaluation.
    """
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
    """Reads the record of a run, which `write_sealed` wrote.

    Args:
        path: The file.
        names: What it must hold besides what `run_record` makes.

    Raises:
        ValueError: If it is damaged. The message names it.
    """
    made = ("commit", "keras", "backend", "backend_version", "python", "cores")
    return read_sealed(path, ["settings.seed", *made, *names])


def brief(record: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out of a record what a table of many runs does not need: the curves.

    Example:
    >>> brief({"figures": {"loss": 0.5}, "updates": [5, 10], "curves": {}})
    {'figures': {'loss': 0.5}, 'updates': [10]}
    """
    kept = {name: value for name, value in record.items() if name not in CURVES}
    return kept | {"updates": record["updates"][-1:]}


def draw(
    path: Path,
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
    monitor: str,
    **kwargs: Any,
) -> None:
    """Draws a validated figure of runs against their updates.

    Of several seeds that is the median, in a band from the least to the greatest.

    Args:
        path: PNG file to write.
        runs: The records of each name, one a seed.
        monitor: Name of the figure.
        **kwargs: As for `plot_curves`.
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
    """A row for each record, as long as the shortest."""
    curves = [record["curves"][name] for record in records]
    length = min(map(len, curves))
    return np.array([curve[:length] for curve in curves])
