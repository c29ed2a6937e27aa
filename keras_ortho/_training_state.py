"""What a training run keeps in its folder, and goes on from."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import keras
from keras.callbacks import EarlyStopping, SwapEMAWeights

from keras_ortho.backend.processes import copy_from_first, process_count
from keras_ortho.files import naming, read_json, replacing, write_csv, write_json

SETTINGS, STATE = "settings.json", "state.weights.h5"
MODEL, HISTORY = "best.keras", "history.csv"
POSITION = "position"


def best_epoch(figures: Sequence[float], mode: str = "min") -> int:
    """Returns the index of the epoch that `train` considers the best.

    If several epochs share the best value, it is the last of them, trained longest.

    Args:
        figures: One value for each epoch. Values that are not finite are ignored.
        mode: `"min"` if lower is better, otherwise `"max"`. Default: `"min"`.

    Returns:
        The index, from 0 on, of the epoch.

    Raises:
        ValueError: If no value is finite.

    Example:
    >>> best_epoch([0.5, 0.25, float("nan"), 0.25, 0.5])
    3
    """
    finite = list(filter(math.isfinite, figures))
    if not finite:
        raise ValueError(f"`figures` must contain a finite value. Received: {figures}")
    best = max(finite) if mode == "max" else min(finite)
    return max(i for i, figure in enumerate(figures) if figure == best)


class Averages(SwapEMAWeights):
    """The first callback: validation and the other callbacks see the averages."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Puts the averages into the model until the last callback."""
        self.on_test_begin()


class TrainingState(keras.callbacks.Callback):
    """The last callback: saves the run, with the position in the data and the seeds.

    `BackupAndRestore` writes weights and epoch one after the other: a run killed in
    between trains an epoch twice. Here, one file holds everything but the weights of
    the best epoch, whose file has the number of the epoch in its name.
    """

    def __init__(
        self,
        folder: Path,
        monitor: str,
        mode: str,
        save_seconds: float,
        averages: Sequence[Averages],
        early: Sequence[EarlyStopping],
    ) -> None:
        super().__init__()
        self.folder, self.monitor, self.mode = folder, monitor, mode
        self.save_seconds, self.averages, self.early = save_seconds, averages, early
        self.bar: keras.utils.Progbar | None = None
        self.history: list[dict[str, float]] = []
        # Batches trained on so far, and before the current epoch.
        self.batches = self._batches_before = 0
        self.started = self.saved = time.monotonic()
        self.stopped_early = False

    def open(self, settings: dict[str, Any]) -> None:
        """Begins a run, or checks that the one in the folder has the same settings."""
        path = self.folder / SETTINGS
        settings = json.loads(json.dumps(settings))
        names = (SETTINGS, STATE, MODEL, HISTORY)
        found = [name for name in names if (self.folder / name).exists()]
        if found and SETTINGS not in found:
            raise ValueError(
                "`folder` must contain a run of `train`, or no file with the name of "
                f"one that `train` writes. Received: {self.folder} with {found}"
            )
        before = read_json(path, ["monitor"]) if found else settings
        if STATE not in found:
            before = settings
            write_json(path, settings)
        differ = [
            f"{name}={settings.get(name)} (the run has {before.get(name)})"
            for name in sorted({*before, *settings})
            # Compared as text, in which NaN equals itself.
            if json.dumps(before.get(name)) != json.dumps(settings.get(name))
        ]
        if differ:
            raise ValueError(
                f"`folder` contains a run with other settings: {path}. Received: "
                + ", ".join(differ)
            )
        for name in (*names, "state-best-*.weights.h5"):  # Left by a killed process.
            for aside in self.folder.glob(f"tmp-*-{name}"):
                aside.unlink()

    def restore(self) -> None:
        """Restores the state in the folder of the first process, if there is one."""
        path = self.folder / STATE
        if process_count() > 1:
            copy_from_first([path, *self._bests()], self.folder)
        if not path.exists():
            return
        with naming(path):
            self.model.load_weights(path)
            with h5py.File(path) as file:
                position = json.loads(file[POSITION][()])
            for variable, value in zip(self.seeds(), position["seeds"], strict=True):
                variable.assign(value)
        self.history, self.batches = position["history"], position["batches"]
        self.stopped_early = position["stopped_early"]

    def seeds(self) -> list[Any]:
        """Returns the states of random generators, which Keras does not save."""
        weights = {id(weight) for weight in self.model.weights}
        return [v for v in self.model.variables if id(v) not in weights]

    def _bests(self) -> list[Path]:
        return list(self.folder.glob("state-best-*.weights.h5"))

    def _best(self) -> Path | None:
        """Returns the file of the best epoch; `None` if the metric is never finite."""
        figures = [row[self.monitor] for row in self.history]
        if not any(map(math.isfinite, figures)):
            return None
        best = best_epoch(figures, self.mode) + 1
        return self.folder / f"state-best-{best}.weights.h5"

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Records the time and the number of batches at the start of the epoch."""
        self.started = time.monotonic()
        self._batches_before = self.batches

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Counts the batches."""
        # Not in `on_train_batch_end`, for which Keras would wait for the device.
        self.batches = self._batches_before + batch + self.model.steps_per_execution

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Adds the epoch to the history, and saves the state if a save is due."""
        figures = _numbers(logs or {})
        if self.monitor not in figures:
            raise ValueError(
                "`monitor` must be one of the metrics that `fit` reports: "
                f"{sorted(figures)}. Received: monitor={self.monitor!r}"
            )
        now = time.monotonic()
        seconds = round(now - self.started, 3)
        self.history.append({"epoch": epoch + 1, "seconds": seconds, **figures})
        if self.bar:
            names = [name for name in ("loss", self.monitor) if name in figures]
            self.bar.update(epoch + 1, [(name, figures[name]) for name in names])
        best = self._best()
        if best and best.name == f"state-best-{epoch + 1}.weights.h5":
            _replace(best, self.model.save_weights)
        for averages in self.averages:
            averages.on_test_end()
        # After the last epoch, other callbacks and Keras may change the weights.
        last = epoch + 1 == self.params["epochs"] or self.model.stop_training
        if best and (last or now - self.saved > self.save_seconds):
            _replace(self.folder / STATE, self._save)
            for other in self._bests():
                if other != best:
                    other.unlink()
            self.saved = time.monotonic()

    def _save(self, path: Path) -> None:
        position = {
            "history": self.history,
            "batches": self.batches,
            "seeds": [keras.ops.convert_to_numpy(s).tolist() for s in self.seeds()],
            "stopped_early": any(each.stopped_epoch for each in self.early),
        }
        self.model.save_weights(path)
        with h5py.File(path, "a") as file:
            file[POSITION] = json.dumps(position)

    def finish(self) -> None:
        """Loads the weights of the best epoch into the model, and saves it."""
        best = self._best()
        if best is None:
            raise ValueError(
                f"`monitor` must be finite in some epoch. Received: {self.monitor} "
                f"was {self.history[-1][self.monitor]} in each of {len(self.history)}"
            )
        self.model.load_weights(best)
        _replace(self.folder / MODEL, self.model.save)
        write_csv(self.folder / HISTORY, self.history)


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    with replacing(path) as aside:
        write(aside)


def _numbers(figures: Mapping[str, Any]) -> dict[str, float]:
    """Returns values by name; entries of a vector get its name and their index."""
    found: dict[str, float] = {}
    for name, value in figures.items():
        value = keras.ops.convert_to_numpy(value)
        for place, entry in enumerate(value.ravel()):
            found[f"{name}_{place}" if value.ndim else name] = float(entry)
    return found
