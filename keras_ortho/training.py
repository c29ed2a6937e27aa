"""Training runs that are logged, and resumed after a kill."""

import contextlib
import csv
import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
from keras.callbacks import EarlyStopping

from keras_ortho import training_checks
from keras_ortho.backend.processes import (
    copy_from_first,
    on_first,
    process_count,
    process_index,
)
from keras_ortho.checks import check_count, check_number
from keras_ortho.distribution import (
    own_share,
    settings_by_replicas,
    shared_evaluation,
)
from keras_ortho.extras import require
from keras_ortho.files import remove_asides, replacing
from keras_ortho.generations import Generations, reading
from keras_ortho.locks import locked
from keras_ortho.sealed import file_sha256, read_sealed, write_sealed
from keras_ortho.tasks.sharing import training_share
from keras_ortho.weight_averages import WeightAverages

SETTINGS = "settings.json"
BEST = "best.weights.h5"
MODEL = "best.keras"
LAST = "last.weights.h5"
SEEDS = "seeds.json"
STOPPED = "stopped-early"
HISTORY = "history.csv"


def train(
    model: keras.Model,
    data: Any,
    folder: str | os.PathLike[str],
    *,
    epochs: int,
    validation_data: Any,
    steps_per_epoch: int | None = None,
    monitor: str = "val_loss",
    save_seconds: float = 30.0,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    settings: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> list[dict[str, float]]:
    """Runs `model.fit` so that a killed run continues where it was.

    The model, its optimizer, the state of its dropout and the history are saved now
    and then. Called again with the same arguments it goes on from there, with the
    batch that follows, to the same weights as an unbroken run. Where all epochs are
    done, or a `keras.callbacks.EarlyStopping` has ended the run and is given again, it
    only loads; where another callback has stopped it, it goes on. In the end the model
    has the weights of the best epoch.

    The last two states are kept, with a checksum for each of their files: if the last
    is damaged, a warning says so and the run goes on from the one before.

    Where an optimizer averages the weights, by `use_ema`, the averages are what is
    validated, what callbacks see at the end of an epoch, and what the model has in the
    end; the training goes on with the weights themselves.

    On several devices each gets its part of the batches, see `tasks.sharing`. Several
    processes call this alike, with the whole data; only the first uses the folder, and
    the others have from it the state that the run goes on from.

    Args:
        model: A built and compiled model. Its weights are where a new run starts. It
            has no stateful layer, but may have a `CarriedState`, and its
            `steps_per_execution` divides the batches in an epoch.
        data: `tf.data.Dataset` to train on, which is repeated and must always have
            the same order. Or, for another order in each pass over the data, a
            function from the number of the pass, an int64 tensor that counts from 0
            on, to its `tf.data.Dataset`: no call may change what the next one
            gives, as `Dataset.shuffle` does by default. The tasks have such a
            function as `passes`. Its number of batches must be known.
        folder: Folder of this run. In the end it holds `best.keras` and
            `history.csv`; nothing but what a run wrote should be in it.
        epochs: Number of epochs in all.
        validation_data: `tf.data.Dataset` to choose the best epoch on.
        steps_per_epoch: Batches in an epoch, which may be less or more than those
            of `data`. Default: `None`, all of them once.
        monitor: Name of the figure that is least in the best epoch, see
            `best_epoch`. Default: `"val_loss"`.
        save_seconds: Least time between two saves, in seconds. Default: 30.
        callbacks: More callbacks, whose own state is not saved. What they add to
            the `logs` of an epoch is in its figures. Default: none.
        settings: What makes this run another one than others, as JSON can hold it:
            a run is only continued with those that it was started with. `monitor` is
            one of them, and, unless they are given here, so are `optimizer`, the
            classes of the optimizers, `loss`, the names of the losses, and
            `parameters`, how many the model has. Nothing else of the model is
            compared; a rate is the run's, as it has it in its folder. Default: none.
        progress: Whether to show a progress bar over the epochs. Default: `True`.

    Returns:
        A dictionary for each epoch, with `"epoch"` from 1 on, `"seconds"`, and
        the figures that `model.fit` reports. Those of a metric that gives a vector
        are numbered, as in `"f1_score_0"`.

    Raises:
        ValueError: If `epochs` or `steps_per_epoch` is not positive, `save_seconds`
            negative, `data` or `validation_data` is no `tf.data.Dataset`, that of
            `data` of a known number of batches, a setting is not one that JSON can
            hold, `callbacks` are none or hold a `SwapEMAWeights`, `model` is none that
            is built and compiled, or one that cannot be resumed, `monitor` is no figure
            of `fit` or in no epoch finite, or the folder holds a run with other
            settings, another `monitor` or more epochs, or one whose files are damaged:
            the message names them. On several devices also as `own_share` and
            `shared_evaluation` of `keras_ortho.distribution`.
        BlockingIOError: If another process trains in the folder.

    Example:

    >>> from keras_ortho.tasks import adding
    >>> task = adding.load(20, train_size=500, test_size=100)
    >>> model = keras.Sequential(
    ...     [keras.Input((20, 2)), keras.layers.SimpleRNN(8), keras.layers.Dense(1)]
    ... )
    >>> model.compile("adam", "mse")
    >>> history = train(
    ...     model, task.passes, "run", epochs=2, validation_data=task.valid
    ... )
    """
    counts = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, count in counts.items():
        if count is not None:
            check_count(name, count)
    save_seconds = check_number("save_seconds", save_seconds)
    training_checks.check_model(model)
    callbacks = training_checks.check_callbacks(callbacks)
    training_checks.check_validation_data(validation_data)
    size = _size(data)
    steps = size if steps_per_epoch is None else steps_per_epoch
    training_checks.check_steps(model, steps)
    share = own_share()
    all_settings = {
        **training_checks.run_settings(model, monitor, settings),
        **settings_by_replicas(model),
    }
    with _own_folder(folder) as own:
        averages = WeightAverages()
        run = _Run(own, monitor, save_seconds, averages, epochs if progress else None)
        run.set_model(model)
        on_first(lambda: run.check_settings(all_settings))
        run.restore()
        if len(run.history) > epochs:
            raise ValueError(
                f"`epochs` must be at least {len(run.history)}, which the run in "
                f"{folder} has. Received: epochs={epochs}"
            )
        run.early = [each for each in callbacks if isinstance(each, EarlyStopping)]
        over = run.stopped_early and run.early
        if len(run.history) < epochs and not over:
            model.fit(
                _from_batch(
                    training_share(data, share), size, len(run.history) * steps
                ),
                steps_per_epoch=steps,
                initial_epoch=len(run.history),
                epochs=epochs,
                validation_data=shared_evaluation(model, validation_data),
                callbacks=[averages, *callbacks, run],
                shuffle=False,  # It is the data set's own matter.
                verbose=0,
            )
        run.finish()
    return run.history


def best_epoch(figures: Sequence[float]) -> int:
    """Finds the epoch that `train` calls the best.

    It is the one with the least figure and, of several with the same, as the error rate
    on few examples has them, the last: it was trained longest.

    Args:
        figures: A figure for each epoch, of which less is better.

    Returns:
        The index of the epoch, from 0 on.

    Raises:
        ValueError: If no figure is finite.

    Example:

    >>> best_epoch([0.5, 0.25, float("nan"), 0.25, 0.5])
    3
    """
    least = min(filter(math.isfinite, figures), default=None)
    if least is None:
        raise ValueError(f"`figures` must have a finite one. Received: {figures}")
    return max(i for i, figure in enumerate(figures) if figure == least)


@contextlib.contextmanager
def _own_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Holds the folder in the first process; another has one that goes at the end."""
    with contextlib.ExitStack() as stack:
        on_first(lambda: stack.enter_context(locked(folder)))
        if process_index() == 0:
            yield Path(folder)
        else:
            yield Path(stack.enter_context(tempfile.TemporaryDirectory()))


def _size(data: Any) -> int:
    tf = require("tensorflow")
    one_pass = data(tf.constant(0, tf.int64)) if callable(data) else data
    training_checks.check_dataset("data", one_pass)
    size = int(one_pass.cardinality())
    if size < 1:
        raise ValueError(
            "`data` must have a known number of batches, at least one, as "
            "`tf.data.experimental.assert_cardinality` states it. "
            f"Received: {one_pass} with cardinality {size}"
        )
    return size


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _numbers(figures: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Figures by name, those of a vector by its name and their place."""
    for name, value in figures.items():
        value = keras.ops.convert_to_numpy(value)
        if not value.ndim:
            yield name, float(value)
        for place, each in enumerate(value.ravel() if value.ndim else ()):
            yield f"{name}_{place}", float(each)


def _from_batch(data: Any, size: int, batch: int) -> Any:
    """The batches of all passes, without end, from one on."""
    tf = require("tensorflow")
    first, skipped = divmod(batch, size)
    numbers = tf.data.Dataset.counter(first, dtype=tf.int64)
    passes = numbers.flat_map(data if callable(data) else lambda _: data)
    return passes.skip(skipped).prefetch(tf.data.AUTOTUNE)


class _Run(keras.callbacks.Callback):
    """The state of a run, in memory and on disk.

    The history, and with it the model and its optimizer, are saved as one state. The
    weights of the best epoch lie beside the states, too: they may be newer.
    """

    def __init__(
        self,
        folder: Path,
        monitor: str,
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
        self.save_seconds = save_seconds
        self.averages = averages
        self.history: list[dict[str, float]] = []
        self.started = self.saved = time.monotonic()
        self.states = Generations(folder)
        self.best_sha256 = ""
        # Whether `EarlyStopping` has ended the run; those that may.
        self.stopped_early = False
        self.early: list[EarlyStopping] = []
        for name in (SETTINGS, BEST, MODEL, HISTORY):
            remove_asides(folder / name)

    def check_settings(self, settings: dict[str, Any]) -> None:
        """Compares the settings with those of the run in the folder, if it is one."""
        path = self.folder / SETTINGS
        try:
            settings = json.loads(json.dumps(settings))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`settings` must be what JSON can hold: {error}. Received: {settings}"
            ) from error
        # What ended before its first state is not gone on from.
        if not (path.exists() and self.states.exist()):
            write_sealed(path, settings)
            return
        # Older runs do not say these.
        unsaid = {"monitor": self.monitor, **training_checks.model_settings(self.model)}
        before = {**unsaid, **read_sealed(path)}
        keys = sorted({*before, *settings})
        # As text, in which NaN is what it is.
        differ = [
            k for k in keys if _as_text(before.get(k)) != _as_text(settings.get(k))
        ]
        if differ:
            raise ValueError(
                f"`folder` holds a run with other settings: {path}. Received: "
                + ", ".join(
                    f"{k}={settings.get(k)} (the run has {before.get(k)})"
                    for k in differ
                )
            )

    def restore(self) -> None:
        """Goes on from the newest state of the first process, if there is one."""
        if process_count() > 1:
            found: list[Path] = []
            on_first(lambda: self.states.read(found.append))
            copy_from_first(found[-1] if found else None, self.folder)
        self.states.read(self._read)

    def _read(self, state: Path) -> None:
        self.model.optimizer.build(self.model.trainable_variables)
        with reading(state / HISTORY), open(state / HISTORY, newline="") as file:
            self.history = [
                {name: float(value) for name, value in row.items() if value}
                | {"epoch": int(row["epoch"])}
                for row in csv.DictReader(file)
            ]
            if self.states.path(len(self.history)) != state:
                raise ValueError(f"it has {len(self.history)} epochs")
        with reading(state / BEST):
            self.model.load_weights(state / BEST)
        with reading(state / LAST):
            self.model.load_weights(state / LAST)
        with reading(state / SEEDS):
            seeds = json.loads((state / SEEDS).read_text())
            for variable, value in zip(self.seeds(), seeds, strict=True):
                variable.assign(value)
        self.stopped_early = (state / STOPPED).exists()
        # An epoch that the kill has undone may have been better.
        self._replace_best(lambda aside: shutil.copyfile(state / BEST, aside))

    def _replace_best(self, write: Callable[[Path], Any]) -> None:
        with replacing(self.folder / BEST) as aside:
            write(aside)
            self.best_sha256 = file_sha256(aside)

    def seeds(self) -> list[Any]:
        """The states of random generators, which Keras does not save as weights."""
        weights = {id(weight) for weight in self.model.weights}
        return [v for v in self.model.variables if id(v) not in weights]

    def best(self) -> int:
        return best_epoch([row[self.monitor] for row in self.history])

    def no_best(self) -> bool:
        """Whether no epoch can be the best."""
        return not any(math.isfinite(row[self.monitor]) for row in self.history)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.started = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        figures = dict(_numbers(logs or {}))
        if self.monitor not in figures:
            raise ValueError(
                f"`monitor` must be one of the figures of `fit`: {sorted(figures)}. "
                f"Received: monitor={self.monitor!r}"
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
        # After the last epoch other callbacks, and Keras, change the weights.
        last = epoch + 1 == self.params["epochs"] or self.model.stop_training
        if last or now - self.saved > self.save_seconds:
            self.save()

    def save(self) -> None:
        """Saves the state, unless the newest one is it, or none could be gone on from.

        Raises:
            ValueError: If the weights of the best epoch are not as they were written.
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
                    f"{self.folder / BEST} is damaged: it is not as it was written "
                    f"during this run, which can go on from {newest or 'its start'}"
                )
            seeds = [keras.ops.convert_to_numpy(seed).tolist() for seed in self.seeds()]
            (aside / SEEDS).write_text(json.dumps(seeds))
            if any(each.stopped_epoch for each in self.early):
                (aside / STOPPED).touch()
            with open(aside / HISTORY, "w", newline="") as file:
                # A callback may add a figure in some epochs only.
                names = dict.fromkeys(name for row in self.history for name in row)
                writer = csv.DictWriter(file, names)
                writer.writeheader()
                writer.writerows(self.history)
        self.saved = time.monotonic()

    def finish(self) -> None:
        """Gives the model the weights of the best epoch, and saves it."""
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
