"""Training runs that are logged, and can resume after being killed."""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import keras
from keras.callbacks import EarlyStopping, SwapEMAWeights

from keras_ortho._training_state import MODEL, Averages, TrainingState, best_epoch
from keras_ortho.backend.processes import on_first, process_index
from keras_ortho.checks import check_choice, check_count, check_number
from keras_ortho.distribution import own_share, settings_by_replicas, shared_evaluation
from keras_ortho.extras import require
from keras_ortho.files import FilePath
from keras_ortho.keras_internals import layers_within
from keras_ortho.locks import locked
from keras_ortho.optimizers.within import optimizers_within
from keras_ortho.tasks.sharing import training_share

__all__ = ["MODEL", "best_epoch", "train"]


def train(
    model: keras.Model,
    data: Any,
    folder: FilePath,
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

    With several devices, each gets its part of every batch. Several processes all call
    this function with the whole data; only the first one uses the folder.

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
        ValueError: If an argument is out of range; if `fit` does not report `monitor`,
            or it is finite in no epoch; or if `folder` holds files of these names from
            elsewhere, damaged files, or a run with other settings or more epochs.
        BlockingIOError: If another process is training in the folder.

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
    check_count("epochs", epochs)
    if steps_per_epoch is not None:
        check_count("steps_per_epoch", steps_per_epoch)
    save_seconds = check_number("save_seconds", save_seconds)
    check_choice("mode", mode, ("min", "max"))
    _check_model(model)
    callbacks = list(callbacks)
    if any(isinstance(each, SwapEMAWeights) for each in callbacks):
        raise ValueError(
            "`callbacks` must not contain `SwapEMAWeights`: `train` itself applies "
            f"the averages. Received: callbacks={callbacks}"
        )
    check_batches("validation_data", validation_data)
    first_pass = (
        data(require("tensorflow").constant(0, "int64")) if callable(data) else data
    )
    size = check_batches("data", first_pass)
    steps = size if steps_per_epoch is None else steps_per_epoch
    together = model.steps_per_execution
    if steps % together:  # Keras would train on some extra batches.
        raise ValueError(
            "`steps_per_execution` of `model` must divide the number of batches per "
            f"epoch, {steps}. Received: steps_per_execution={together}"
        )
    run_settings = _settings(model, size) | dict(settings or {})
    run_settings |= {"monitor": monitor, "mode": mode, **settings_by_replicas(model)}
    averaging = any(each.use_ema for each in optimizers_within(model))
    averages = [Averages()] if averaging else []
    early = [each for each in callbacks if isinstance(each, EarlyStopping)]
    with _own_folder(folder) as own:
        run = TrainingState(own, monitor, mode, save_seconds, averages, early)
        run.set_model(model)
        on_first(lambda: run.open(run_settings))
        run.restore()
        done = len(run.history)
        if done > epochs:
            raise ValueError(
                f"`epochs` must be at least {done}: the run in {folder} already has "
                f"that many. Received: epochs={epochs}"
            )
        if progress:
            run.bar = keras.utils.Progbar(
                epochs, unit_name="epoch", stateful_metrics=["loss", monitor]
            )
        if done < epochs and not (run.stopped_early and early):
            model.fit(
                _from_batch(training_share(data, own_share()), size, run.batches),
                steps_per_epoch=steps,
                initial_epoch=done,
                epochs=epochs,
                validation_data=shared_evaluation(model, validation_data),
                callbacks=[*averages, *callbacks, run],
                shuffle=False,  # The data set determines the order.
                verbose=0,
            )
        run.finish()
    return run.history


@contextlib.contextmanager
def _own_folder(folder: FilePath) -> Iterator[Path]:
    """Locks the folder in the first process; gives others a temporary folder."""
    with contextlib.ExitStack() as stack:
        on_first(lambda: stack.enter_context(locked(folder)))
        if process_index() == 0:
            yield Path(folder)
        else:
            yield Path(stack.enter_context(tempfile.TemporaryDirectory()))


def _check_model(model: Any) -> None:
    if not isinstance(model, keras.Model) or not (model.built and model.compiled):
        raise ValueError(
            "`model` must be a Keras model that is built (give it an `Input`, or call "
            f"it once) and compiled. Received: {model!r}"
        )
    for layer in layers_within(model):
        if isinstance(layer, keras.layers.RNN) and layer.stateful:
            raise ValueError(
                "`model` must have no stateful layer, whose states a resumed run "
                "would lose: use `keras_ortho.layers.CarriedState` instead. Received: "
                f"{layer.name} with stateful=True"
            )


def check_batches(name: str, data: Any) -> int:
    """Returns the number of batches of a `tf.data.Dataset`, known and positive."""
    is_dataset = isinstance(data, require("tensorflow").data.Dataset)
    size = int(data.cardinality()) if is_dataset else 0
    if size < 1:
        raise ValueError(
            f"`{name}` must be a `tf.data.Dataset` with batches, of a known number. "
            "Make one of arrays with `tf.data.Dataset.from_tensor_slices((x, y))"
            ".batch(32)`; leave out `repeat()`, or use "
            "`tf.data.experimental.assert_cardinality`. Received: "
            f"{type(data).__name__} with {size} batches"
        )
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
