"""The state of a training run, in memory and on disk."""

import contextlib
import csv
import json
import math
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
from keras.callbacks import EarlyStopping

from keras_ortho import training_checks
from keras_ortho.backend.processes import copy_from_first, on_first, process_count
from keras_ortho.files import remove_asides, replacing
from keras_ortho.generations import Generations, reading
from keras_ortho.sealed import file_sha256, is_sealed, read_sealed, write_sealed
from keras_ortho.weight_averages import WeightAverages

SETTINGS = "settings.json"
BEST = "best.weights.h5"
MODEL = "best.keras"
LAST = "last.weights.h5"
SEEDS = "seeds.json"
BATCHES = "batches.json"
STOPPED = "stopped-early"
HISTORY = "history.csv"
# The files in the folder itself, beside the states.
FILES = (SETTINGS, BEST, MODEL, HISTORY)


def best_epoch(figures: Sequence[float]) -> int:
    """Returns the index of the epoch that `train` considers the best.

    It is the epoch with the lowest value. If several epochs share that value, as is
    common for error rates on few examples, it is the last of them, which was trained
    longest.

    Args:
        figures: One value for each epoch; lower is better. Values that are not finite
            are ignored.

    Returns:
        The index of the epoch, counting from 0.

    Raises:
        ValueError: If no value is finite.

    Example:

    >>> best_epoch([0.5, 0.25, float("nan"), 0.25, 0.5])
    3
    """
    least = min(filter(math.isfinite, figures), default=None)
    if least is None:
        raise ValueError(f"`figures` must contain a finite value. Received: {figures}")
    return max(i for i, figure in enumerate(figures) if figure == least)


class Run(keras.callbacks.Callback):
    """The state of a run, in memory and on disk.

    The history, the model and its optimizer are saved together as one state. The
    weights of the best epoch are also stored beside the states, where they may be
    newer.

    Args:
        folder: The run's folder, which this process has locked.
        monitor: Name of the metric whose minimum marks the best epoch.
        steps: Number of batches in an epoch.
        save_seconds: Minimum time between two saves, in seconds.
        averages: The callback that replaces weights with their averages.
        bar: Number of epochs of the progress bar, or `None` for no progress bar.
    """

    def __init__(
        self,
        folder: Path,
        monitor: str,
        steps: int,
        save_seconds: float,
        averages: WeightAverages,
        bar: int | None,
    ) -> None:
        super().__init__()
        self.bar = bar and keras.utils.Progbar(
            bar, unit_name="epoch", stateful_metrics=["loss", monitor]
        )
        self.folder = folder
        self.monitor = monitor
        self.steps = steps
        self.save_seconds = save_seconds
        self.averages = averages
        self.history: list[dict[str, float]] = []
        # Batches trained on so far, and before the current epoch.
        self.batches = self._batches_before = 0
        self.started = self.saved = time.monotonic()
        self.states = Generations(folder, HISTORY)
        self.best_sha256 = ""
        # Whether an `EarlyStopping` has ended the run, and the ones that are given.
        self.stopped_early = False
        self.early: list[EarlyStopping] = []

    def check_folder(self) -> None:
        """Checks that the run would not replace files that no run has written.

        Raises:
            ValueError: If the folder contains such files.
        """
        own = self.states.exist() or is_sealed(self.folder / SETTINGS)
        found = [name for name in FILES if (self.folder / name).exists()]
        if found and not own:
            raise ValueError(
                "`folder` must contain a run of `train`, or no file with the name of "
                f"one that `train` writes. Received: {self.folder}, which holds "
                f"{', '.join(found)}"
            )

    def tidy(self) -> None:
        """Removes partly written files that a killed process has left behind."""
        self.states.tidy()
        for name in FILES:
            remove_asides(self.folder / name)

    def check_settings(self, settings: dict[str, Any]) -> None:
        """Compares the settings with those of a run in the folder, if there is one."""
        path = self.folder / SETTINGS
        try:
            settings = json.loads(json.dumps(settings))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`settings` must be serializable as JSON: {error}. Received: "
                f"{settings}"
            ) from error
        # A run that ended before its first state is not resumed.
        if not (path.exists() and self.states.exist()):
            write_sealed(path, settings)
            return
        # Settings that older runs do not store.
        unsaid = {
            "monitor": self.monitor,
            "batches": settings["batches"],
            **training_checks.model_settings(self.model),
        }
        before = {**unsaid, **read_sealed(path)}
        keys = sorted({*before, *settings})
        # Compared as text, in which NaN equals itself.
        differ = [
            k for k in keys if _as_text(before.get(k)) != _as_text(settings.get(k))
        ]
        if differ:
            raise ValueError(
                f"`folder` contains a run with other settings: {path}. Received: "
                + ", ".join(
                    f"{k}={settings.get(k)} (the run has {before.get(k)})"
                    for k in differ
                )
            )

    def restore(self) -> None:
        """Restores the newest state of the first process, if there is one."""
        if process_count() > 1:
            found: list[Path] = []
            on_first(lambda: self.states.read(found.append))
            copy_from_first(found[-1] if found else None, self.folder)
        self.states.read(self._read)

    def _read(self, state: Path) -> None:
        # A second `build` would duplicate some variables of `LossScaleOptimizer`.
        if not self.model.optimizer.built:
            self.model.optimizer.build(self.model.trainable_variables)
        with reading(state / HISTORY), open(state / HISTORY, newline="") as file:
            self.history = [
                {name: float(value) for name, value in row.items() if value}
                | {"epoch": int(row["epoch"])}
                for row in csv.DictReader(file)
            ]
            if self.states.path(len(self.history)) != state:
                raise ValueError(f"it has {len(self.history)} epochs")
        for name in (BEST, LAST):
            with reading(state / name), _whole_optimizer():
                self.model.load_weights(state / name)
        with reading(state / SEEDS):
            seeds = json.loads((state / SEEDS).read_text())
            for variable, value in zip(self.seeds(), seeds, strict=True):
                variable.assign(value)
        self.batches = len(self.history) * self.steps
        if (state / BATCHES).exists():  # Not written by older versions.
            with reading(state / BATCHES):
                self.batches = int(json.loads((state / BATCHES).read_text()))
        self.stopped_early = (state / STOPPED).exists()
        # The stored best weights may be those of an epoch lost when the run was killed.
        self._replace_best(lambda aside: shutil.copyfile(state / BEST, aside))

    def _replace_best(self, write: Callable[[Path], Any]) -> None:
        with replacing(self.folder / BEST) as aside:
            write(aside)
            self.best_sha256 = file_sha256(aside)

    def seeds(self) -> list[Any]:
        """Returns the states of random generators, which Keras does not save."""
        weights = {id(weight) for weight in self.model.weights}
        return [v for v in self.model.variables if id(v) not in weights]

    def best(self) -> int:
        """Returns the index of the best epoch, counting from 0."""
        return best_epoch([row[self.monitor] for row in self.history])

    def no_best(self) -> bool:
        """Returns whether the monitored metric is finite in no epoch."""
        return not any(math.isfinite(row[self.monitor]) for row in self.history)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Records the time and the number of batches at the start of the epoch."""
        self.started = time.monotonic()
        self._batches_before = self.batches

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Counts the batches."""
        # Not in `on_train_batch_end`, for which Keras would wait for the device.
        done = batch + self.model.steps_per_execution
        self.batches = self._batches_before + done

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Adds the epoch to the history, and saves the state if a save is due."""
        figures = dict(_numbers(logs or {}))
        if self.monitor not in figures:
            raise ValueError(
                "`monitor` must be one of the metrics that `fit` reports: "
                f"{sorted(figures)}. Received: monitor={self.monitor!r}"
            )
        now = time.monotonic()
        self.history.append(
            {"epoch": epoch + 1, "seconds": round(now - self.started, 3), **figures}
        )
        if self.bar:
            names = [name for name in ("loss", self.monitor) if name in figures]
            self.bar.update(epoch + 1, [(name, figures[name]) for name in names])
        if math.isfinite(figures[self.monitor]) and self.best() == epoch:
            self._replace_best(self.model.save_weights)
        self.averages.give_back()
        # After the last epoch, other callbacks and Keras may change the weights.
        last = epoch + 1 == self.params["epochs"] or self.model.stop_training
        if last or now - self.saved > self.save_seconds:
            self.save()

    def save(self) -> None:
        """Saves the state, unless it is saved already, or no epoch can be the best.

        Raises:
            ValueError: If the file with the weights of the best epoch is damaged.
        """
        newest = self.states.newest
        epochs = len(self.history)
        if self.no_best() or (newest and newest == self.states.path(epochs)):
            return
        with self.states.add(epochs) as aside:
            self.model.save_weights(aside / LAST)
            shutil.copyfile(self.folder / BEST, aside / BEST)
            if file_sha256(aside / BEST) != self.best_sha256:
                raise ValueError(
                    f"{self.folder / BEST} is damaged: it changed since this run wrote "
                    f"it. The run can resume from {newest or 'its start'}"
                )
            seeds = [keras.ops.convert_to_numpy(seed).tolist() for seed in self.seeds()]
            (aside / SEEDS).write_text(json.dumps(seeds))
            (aside / BATCHES).write_text(json.dumps(self.batches))
            if any(each.stopped_epoch for each in self.early):
                (aside / STOPPED).touch()
            with open(aside / HISTORY, "w", newline="") as file:
                # A callback may add a value in some epochs only.
                names = dict.fromkeys(name for row in self.history for name in row)
                writer = csv.DictWriter(file, names)
                writer.writeheader()
                writer.writerows(self.history)
        self.saved = time.monotonic()

    def finish(self) -> None:
        """Loads the weights of the best epoch into the model, and saves it.

        Raises:
            ValueError: If the monitored metric is finite in no epoch.
        """
        state = self.states.newest
        if self.no_best() or state is None:
            raise ValueError(
                f"`monitor` must be finite in some epoch. Received: {self.monitor} "
                f"was {self.history[-1][self.monitor]} in each of {len(self.history)}"
            )
        self.model.load_weights(state / BEST)
        with replacing(self.folder / MODEL) as aside:
            self.model.save(aside)
        with replacing(self.folder / HISTORY) as aside:
            shutil.copyfile(state / HISTORY, aside)


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _numbers(figures: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yields names and values; entries of a vector get its name and their index."""
    for name, value in figures.items():
        value = keras.ops.convert_to_numpy(value)
        if not value.ndim:
            yield name, float(value)
        for place, each in enumerate(value.ravel() if value.ndim else ()):
            yield f"{name}_{place}", float(each)


@contextlib.contextmanager
def _whole_optimizer() -> Iterator[None]:
    """Raises an error if Keras warns that it does not load the optimizer's variables.

    Raises:
        ValueError: In place of the warning.
    """
    skipped = "Skipping variable loading for optimizer"
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=skipped, category=UserWarning)
        try:
            yield
        except Exception as error:  # Keras wraps the warning in an error of its own.
            if skipped not in str(error):
                raise
            raise ValueError(
                "the optimizer of the run has other variables than that of `model`: "
                "its arguments, or the frozen layers, must have changed"
            ) from error
