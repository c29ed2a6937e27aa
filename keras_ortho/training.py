"""Training runs that are logged, and can resume after being killed."""

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import h5py
import keras
from keras.callbacks import EarlyStopping, SwapEMAWeights

from keras_ortho import files
from keras_ortho.checks import check, check_choice, check_count, check_number
from keras_ortho.extras import require
from keras_ortho.files import locked
from keras_ortho.keras_internals import layers_within
from keras_ortho.optimizers.groups import optimizers_within

__all__ = ["MODEL", "best_epoch", "train"]

SETTINGS, STATE = "settings.json", "state.weights.h5"
MODEL, HISTORY = "best.keras", "history.csv"
POSITION = "position"
Logs = dict[str, Any] | None


def train(
    model: keras.Model,
    data: Any,
    folder: files.FilePath,
    *,
    epochs: int,
    validation_data: Any,
    steps_per_epoch: int | None = None,
    monitor: str = "val_loss",
    mode: Literal["min", "max"] = "min",
    save_seconds: float = 30.0,
    callbacks: Iterable[keras.callbacks.Callback] = (),
    settings: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> list[dict[str, float]]:
    """Runs `model.fit` such that a killed run can resume where it stopped.

    The model, its optimizer, the state of its dropout and the history are saved from
    time to time. When called again with the same arguments, the function resumes with
    the next batch and reaches the same weights as an uninterrupted run. A run that is
    finished, or that an `EarlyStopping` in `callbacks` has ended, is only loaded. At
    the end, the model has the weights of the best epoch. If an optimizer averages the
    weights (`use_ema`), validation and the result use the averages.

    Args:
        model: A built and compiled model. A new run starts from its weights. It must
            have no stateful layer, but may have a `CarriedState`. Its
            `steps_per_execution` must divide the number of batches in an epoch.
        data: `tf.data.Dataset` to train on, with a known number of batches in a fixed
            order; or a function from the number of a pass, an int64 tensor, to the
            data set of that pass, such as `passes` of the tasks.
        folder: Folder of the run. At the end it contains `best.keras` and
            `history.csv`. A new run needs a folder without files of these names.
        epochs: Total number of epochs.
        validation_data: `tf.data.Dataset` on which the best epoch is chosen.
        steps_per_epoch: Number of batches in an epoch, which may be smaller or larger
            than that of `data`. Default: `None`, each batch of `data` once.
        monitor: Name of the metric that marks the best epoch, see `best_epoch`; a
            callback may add it to the logs. Default: `"val_loss"`.
        mode: `"min"` if lower is better, otherwise `"max"`. Default: `"min"`.
        save_seconds: Minimum time between two saves, in seconds. Default: 30.
        callbacks: Additional callbacks, whose own state is not saved. Values that they
            add to the `logs` of an epoch are part of the history. Default: none.
        settings: Settings that identify the run, as JSON values: a run resumes only
            with those it was started with. `monitor`, `mode` and properties of the
            model and of the data are among them. Default: none.
        progress: Whether to show a progress bar over the epochs. Default: `True`.

    Returns:
        A dictionary for each epoch of `"epoch"`, from 1 on, `"seconds"`, and the
        metrics that `model.fit` reports. The entries of a vector are numbered, as in
        `"f1_score_0"`.

    Raises:
        ValueError: If an argument is invalid; if `monitor` is not reported, or never
            finite; or if `folder` holds a damaged run, another, or other such files.
        BlockingIOError: If another process is training in the folder.

    Example:
    >>> from keras_ortho.tasks import adding
    >>> task = adding.load(20, train_size=500, test_size=100)
    >>> model = keras.Sequential([keras.Input((20, 2)), keras.layers.SimpleRNN(1)])
    >>> model.compile("adam", "mse")
    >>> history = train(model, task.passes, "run", epochs=2, validation_data=task.valid)
    """
    check_count("epochs", epochs)
    if steps_per_epoch is not None:
        check_count("steps_per_epoch", steps_per_epoch)
    save_seconds = check_number("save_seconds", save_seconds)
    check_choice("mode", mode, ("min", "max"))
    _check_model(model)
    callbacks = list(callbacks)
    swapping = any(isinstance(each, SwapEMAWeights) for each in callbacks)
    wanted = "not contain `SwapEMAWeights`: `train` itself applies the averages"
    check(not swapping, "callbacks", wanted, f"callbacks={callbacks}")
    check_batches("validation_data", validation_data)
    zero = require("tensorflow").constant(0, "int64")
    size = check_batches("data", data(zero) if callable(data) else data)
    steps = size if steps_per_epoch is None else steps_per_epoch
    together = model.steps_per_execution
    # Otherwise, Keras would train on some extra batches.
    wanted = f"have `steps_per_execution` that divides the {steps} batches of an epoch"
    check(steps % together == 0, "model", wanted, f"steps_per_execution={together}")
    run_settings = _settings(model, size) | dict(settings or {})
    run_settings |= {"monitor": monitor, "mode": mode}
    if any(each.use_ema for each in optimizers_within(model)):
        callbacks.insert(0, _Averages())
    with locked(folder):
        run = _TrainingState(Path(folder), monitor, mode, save_seconds, callbacks)
        run.set_model(model)
        run.open(run_settings)
        run.restore()
        done = len(run.history)
        wanted = f"be at least {done}: the run in {folder} has that many"
        check(done <= epochs, "epochs", wanted, f"epochs={epochs}")
        if progress:
            run.bar = keras.utils.Progbar(
                epochs, unit_name="epoch", stateful_metrics=["loss", monitor]
            )
        if done < epochs and not (run.stopped_early and run.early):
            model.fit(
                _from_batch(data, size, run.batches),
                steps_per_epoch=steps,
                initial_epoch=done,
                epochs=epochs,
                validation_data=validation_data,
                callbacks=[*callbacks, run],
                shuffle=False,  # The data set determines the order.
                verbose=0,
            )
        run.finish()
    return run.history


def _check_model(model: Any) -> None:
    ready = isinstance(model, keras.Model) and model.built and model.compiled
    wanted = "be a Keras model that is built (give it an `Input`) and compiled"
    check(ready, "model", wanted, repr(model))
    for layer in layers_within(model):
        stateful = isinstance(layer, keras.layers.RNN) and layer.stateful
        wanted = "have no stateful layer: use `keras_ortho.layers.CarriedState`"
        check(not stateful, "model", wanted, f"{layer.name} with stateful=True")


def check_batches(name: str, data: Any) -> int:
    """Returns the number of batches of a `tf.data.Dataset`, known and positive."""
    is_dataset = isinstance(data, require("tensorflow").data.Dataset)
    size = int(data.cardinality()) if is_dataset else 0
    wanted = (
        "be a `tf.data.Dataset` with batches, of a known number: made of arrays with "
        "`tf.data.Dataset.from_tensor_slices((x, y)).batch(32)`, not repeated, or with "
        "`tf.data.experimental.assert_cardinality`"
    )
    check(size > 0, name, wanted, f"{type(data).__name__} with {size} batches")
    return size


def _settings(model: keras.Model, batches: int) -> dict[str, Any]:
    """Returns what must match when a run resumes."""
    # A second `build` would duplicate some variables of `LossScaleOptimizer`.
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    optimizers = optimizers_within(model)
    return {
        "optimizer": ", ".join(type(each).__name__ for each in optimizers),
        "optimizer_variables": len(model.optimizer.variables),
        "loss": ", ".join(map(_loss_name, keras.tree.flatten(model.loss))),
        "parameters": model.count_params(),
        "batches": batches,
    }


def _loss_name(loss: Any) -> str:
    """Returns the name of a loss: the same for `"mse"`, its function and its class."""
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    own = getattr(loss, "name", None) or getattr(loss, "__name__", None)
    return own or type(loss).__name__


def _from_batch(data: Any, size: int, batch: int) -> Any:
    """Returns the batches of all passes, endlessly, starting with a given one."""
    tf = require("tensorflow")
    first, skipped = divmod(batch, size)
    numbers = tf.data.Dataset.counter(first, dtype=tf.int64)
    passes = numbers.flat_map(data if callable(data) else lambda _: data)
    return passes.skip(skipped).prefetch(tf.data.AUTOTUNE)


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
    check(finite, "figures", "contain a finite value", figures)
    best = max(finite) if mode == "max" else min(finite)
    return max(i for i, figure in enumerate(figures) if figure == best)


class _Averages(SwapEMAWeights):
    """The first callback: validation and the other callbacks see the averages."""

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Puts the averages into the model until the last callback."""
        self.on_test_begin()


class _TrainingState(keras.callbacks.Callback):
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
        callbacks: Sequence[keras.callbacks.Callback],
    ) -> None:
        super().__init__()
        self.folder, self.monitor, self.mode = folder, monitor, mode
        self.save_seconds = save_seconds
        self.averages = [each for each in callbacks if isinstance(each, _Averages)]
        self.early = [each for each in callbacks if isinstance(each, EarlyStopping)]
        self.bar: keras.utils.Progbar | None = None
        self.history: list[dict[str, float]] = []
        # Batches trained on so far, and before the current epoch.
        self.batches = self._batches_before = 0
        self.started = self.saved = time.monotonic()
        self.stopped_early = False

    def open(self, settings: dict[str, Any]) -> None:
        """Begins a run, or checks that the one in the folder has the same settings."""
        path = self.folder / SETTINGS
        names = (SETTINGS, STATE, MODEL, HISTORY)
        found = [name for name in names if (self.folder / name).exists()]
        wanted = "contain a run of `train`, or none of the files that it writes"
        ours = not found or SETTINGS in found
        check(ours, "folder", wanted, f"{self.folder} with {found}")
        before = files.read_json(path, ["monitor"]) if found else settings
        if STATE not in found:
            before = settings
            files.write_json(path, settings)
        differ = [
            f"{name}={settings.get(name)} (the run has {before.get(name)})"
            for name in sorted({*before, *settings})
            # Compared as text, in which NaN equals itself.
            if json.dumps(before.get(name)) != json.dumps(settings.get(name))
        ]
        wanted = f"be another: {path} contains a run with other settings"
        check(not differ, "folder", wanted, ", ".join(differ))
        for name in (*names, "state-best-*.weights.h5"):  # Left by a killed process.
            for aside in self.folder.glob(f"tmp-*-{name}"):
                aside.unlink()

    def restore(self) -> None:
        """Restores the state in the folder, if there is one."""
        path = self.folder / STATE
        if not path.exists():
            return
        with files.naming(path):
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

    def _best(self) -> Path | None:
        """Returns the file of the best epoch; `None` if the metric is never finite."""
        figures = [row[self.monitor] for row in self.history]
        if not any(map(math.isfinite, figures)):
            return None
        best = best_epoch(figures, self.mode) + 1
        return self.folder / f"state-best-{best}.weights.h5"

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        self.started = time.monotonic()
        self._batches_before = self.batches

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        # Not in `on_train_batch_end`, for which Keras would wait for the device.
        self.batches = self._batches_before + batch + self.model.steps_per_execution

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Adds the epoch to the history, and saves the state if a save is due."""
        figures = _numbers(logs or {})
        wanted = f"be one of the metrics that `fit` reports: {sorted(figures)}"
        check(self.monitor in figures, "monitor", wanted, f"monitor={self.monitor!r}")
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
            for other in list(self.folder.glob("state-best-*.weights.h5")):
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
        files.write_csv(self.folder / HISTORY, self.history)


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    with files.replacing(path) as aside:
        write(aside)


def _numbers(figures: Mapping[str, Any]) -> dict[str, float]:
    """Returns values by name; entries of a vector get its name and their index."""
    found: dict[str, float] = {}
    for name, value in figures.items():
        value = keras.ops.convert_to_numpy(value)
        for place, entry in enumerate(value.ravel()):
            found[f"{name}_{place}" if value.ndim else name] = float(entry)
    return found
