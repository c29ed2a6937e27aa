"""Training runs that are logged, and can resume after being killed."""

import contextlib
import inspect
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import keras
from keras.callbacks import Callback, EarlyStopping, SwapEMAWeights

from keras_ortho._training_state import MODEL, Averages, TrainingState, best_epoch
from keras_ortho.backend.processes import on_first, process_index
from keras_ortho.checks import check_choice, check_count, check_number
from keras_ortho.distribution import (
    own_share,
    settings_by_replicas,
    shared_evaluation,
)
from keras_ortho.extras import require
from keras_ortho.keras_internals import layers_within
from keras_ortho.locks import locked
from keras_ortho.optimizers.within import optimizers_within
from keras_ortho.tasks.sharing import training_share

__all__ = ["MODEL", "best_epoch", "train"]


def train(
    model: keras.Model,
    data: Any,
    folder: str | os.PathLike[str],
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
    time to time. When called again with the same arguments, the function resumes from
    the saved state, with the next batch, and reaches the same weights as an
    uninterrupted run. If all epochs are done, or a `keras.callbacks.EarlyStopping` has
    ended the run and is passed again, it only loads the results. If another callback
    has stopped the run, it continues: an epoch that was cut short stays short, and the
    next one starts with the following batch. At the end, the model has the weights of
    the best epoch.

    Each file is written aside and then renamed, so the folder holds a whole state
    whenever the run is killed or interrupted.

    If an optimizer averages the weights (`use_ema`), the averages are validated, seen
    by callbacks at the end of an epoch, and left in the model at the end; training
    itself continues with the weights.

    With several devices, each gets its part of every batch, see `tasks.sharing`.
    Several processes all call this function with the whole data. Only the first one
    uses the folder, and it sends the others the state to resume from.

    Args:
        model: A built and compiled model. A new run starts from its weights. It must
            have no stateful layer, but may have a `CarriedState`. Its
            `steps_per_execution` must divide the number of batches in an epoch.
        data: `tf.data.Dataset` to train on, which is repeated and must always have
            the same order. Alternatively, for a different order in each pass over the
            data, a function that maps the number of the pass, an int64 tensor that
            counts from 0, to the `tf.data.Dataset` of that pass. A call must not affect
            the result of the next one, as it does with `Dataset.shuffle` by default.
            The tasks provide such a function as `passes`. The number of batches must be
            known.
        folder: Folder of the run. At the end it contains `best.keras` and
            `history.csv`. A new run needs a folder without files of these names.
        epochs: Total number of epochs.
        validation_data: `tf.data.Dataset` on which the best epoch is chosen.
        steps_per_epoch: Number of batches in an epoch, which may be smaller or larger
            than that of `data`. Default: `None`, each batch of `data` once.
        monitor: Name of the metric that marks the best epoch, see `best_epoch`; a
            callback may add it to the logs. Default: `"val_loss"`.
        mode: `"min"` or `"max"`: whether the best value is the lowest or the highest.
            Default: `"min"`.
        save_seconds: Minimum time between two saves, in seconds. Default: 30.
        callbacks: Additional callbacks, whose own state is not saved. Values that they
            add to the `logs` of an epoch are part of the history. Default: none.
        settings: Settings that identify the run, as JSON values: a run resumes only
            with the settings that it was started with. `monitor` and `mode` are always
            among them. Unless given here, so are `optimizer` (the classes of the
            optimizers), `optimizer_variables` (their number of variables), `loss` (the
            names of the losses), `parameters` (the number of parameters of the model)
            and `batches` (the number of batches of the data). Nothing else of the model
            is compared. A resumed run keeps the learning rate saved in its folder.
            Default: none.
        progress: Whether to show a progress bar over the epochs. Default: `True`.

    Returns:
        A list with a dictionary for each epoch, with `"epoch"`, which counts from 1,
        `"seconds"`, and the metrics that `model.fit` reports. The entries of a
        vector-valued metric are numbered, as in `"f1_score_0"`.

    Raises:
        ValueError: If `epochs` or `steps_per_epoch` is not positive, or `save_seconds`
            is negative; if `data` or `validation_data` is not a `tf.data.Dataset`, or
            the number of batches of `data` is unknown; if a setting cannot be written
            as JSON; if `callbacks` contains anything but callbacks, or a
            `SwapEMAWeights`; if `model` is not built and compiled, or cannot be
            resumed; if `fit` does not report `monitor`, or it is finite in no epoch; if
            `folder` is not a folder, or contains files of these names from elsewhere, a
            run with other settings, another `monitor`, other optimizer variables or
            more epochs, or damaged files, which the message names. With several
            devices, also for the reasons listed for `own_share` and
            `shared_evaluation` in `keras_ortho.distribution`.
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
    for name, count in {"epochs": epochs, "steps_per_epoch": steps_per_epoch}.items():
        if count is not None:
            check_count(name, count)
    save_seconds = check_number("save_seconds", save_seconds)
    _check_folder(folder)
    if not isinstance(monitor, str):
        raise ValueError(
            "`monitor` must be the name of a metric, such as 'val_loss'. Received: "
            f"monitor={monitor!r}"
        )
    check_choice("mode", mode, ("min", "max"))
    _check_model(model)
    callbacks = _check_callbacks(callbacks)
    _check_validation_data(validation_data)
    size = _size(data)
    steps = size if steps_per_epoch is None else steps_per_epoch
    together = model.steps_per_execution
    if steps % together:  # Keras would train on some extra batches.
        raise ValueError(
            "`steps_per_execution` of `model` must divide the number of batches per "
            f"epoch, {steps}. Received: steps_per_execution={together}"
        )
    share = own_share()
    run_settings = _settings(model, monitor, mode, size, settings)
    averaging = any(each.use_ema for each in optimizers_within(model))
    averages = Averages() if averaging else None
    early = [each for each in callbacks if isinstance(each, EarlyStopping)]
    bar = epochs if progress else None
    with _own_folder(folder) as own:
        run = TrainingState(
            own, monitor, mode, steps, save_seconds, averages, early, bar
        )
        run.set_model(model)
        on_first(run.check_folder)
        on_first(lambda: run.check_settings(run_settings))
        on_first(run.tidy)
        run.restore()
        if len(run.history) > epochs:
            raise ValueError(
                f"`epochs` must be at least {len(run.history)}: the run in {folder} "
                f"already has that many. Received: epochs={epochs}"
            )
        if len(run.history) < epochs and not (run.stopped_early and early):
            model.fit(
                _from_batch(training_share(data, share), size, run.batches),
                steps_per_epoch=steps,
                initial_epoch=len(run.history),
                epochs=epochs,
                validation_data=shared_evaluation(model, validation_data),
                callbacks=[*([averages] if averages else []), *callbacks, run],
                shuffle=False,  # The data set determines the order.
                verbose=0,
            )
        run.finish()
    return run.history


@contextlib.contextmanager
def _own_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Locks the folder in the first process; gives others a temporary folder."""
    with contextlib.ExitStack() as stack:
        on_first(lambda: stack.enter_context(locked(folder)))
        if process_index() == 0:
            yield Path(folder)
        else:
            yield Path(stack.enter_context(tempfile.TemporaryDirectory()))


def _check_folder(folder: Any) -> None:
    is_path = isinstance(folder, str | os.PathLike)
    if not is_path or (os.path.exists(folder) and not os.path.isdir(folder)):
        raise ValueError(
            f"`folder` must be the path of a folder. Received: folder={folder!r}"
        )


def _check_model(model: Any) -> None:
    if not isinstance(model, keras.Model):
        raise ValueError(f"`model` must be a Keras model. Received: {model!r}")
    for name, remedy in (
        ("built", "give it an `Input`, or call it once"),
        ("compiled", "call its `compile`"),
    ):
        if not getattr(model, name):
            raise ValueError(
                f"`model` must be {name}: {remedy}. "
                f"Received: {model.name} with {name}=False"
            )
    for layer in layers_within(model):
        if isinstance(layer, keras.layers.RNN) and layer.stateful:
            raise ValueError(
                "`model` must have no stateful layer, whose states a resumed run "
                "would lose: use `keras_ortho.layers.CarriedState` instead. Received: "
                f"{layer.name} with stateful=True"
            )


def _check_callbacks(callbacks: Any) -> list[Callback]:
    found = list(callbacks) if isinstance(callbacks, Iterable) else [None]
    if not all(isinstance(each, Callback) for each in found):
        raise ValueError(
            f"`callbacks` must be a list of callbacks. Received: callbacks={callbacks}"
        )
    if any(isinstance(each, SwapEMAWeights) for each in found):
        raise ValueError(
            "`callbacks` must not contain `SwapEMAWeights`: `train` itself applies "
            f"the averages. Received: callbacks={callbacks}"
        )
    return found


def _check_validation_data(data: Any) -> None:
    check_dataset("validation_data", data)
    tf = require("tensorflow")
    if data.cardinality() == 0:
        raise ValueError(
            f"`validation_data` must not be empty. Received: {data} with cardinality 0"
        )
    if data.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(
            "`validation_data` must be finite, as each epoch reads all of it: leave "
            f"out `repeat()`. Received: {data} with infinite cardinality"
        )


def check_dataset(name: str, data: Any) -> None:
    """Checks that an argument is a `tf.data.Dataset`."""
    tf = require("tensorflow")
    if not isinstance(data, tf.data.Dataset):
        raise ValueError(
            f"`{name}` must be a `tf.data.Dataset`; for arrays, "
            "`tf.data.Dataset.from_tensor_slices((x, y)).batch(32)`. Received: "
            f"{type(data).__name__}"
        )


def _settings(
    model: keras.Model, monitor: str, mode: str, batches: int, settings: Any
) -> dict[str, Any]:
    """Returns what must match when a run resumes."""
    given = {} if settings is None else settings
    own = {"monitor": monitor, "mode": mode}
    if not isinstance(given, Mapping) or set(own) & set(given):
        raise ValueError(
            "`settings` must be a mapping without the reserved names `monitor` and "
            f"`mode`. Received: settings={settings}"
        )
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
        **given,
        **own,
        **settings_by_replicas(model),
    }


def _loss_name(loss: Any) -> str:
    """Returns the name of a loss: the same for `"mse"`, its function and its class."""
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    own = getattr(loss, "name", None) or getattr(loss, "__name__", None)
    return own or type(loss).__name__


def _size(data: Any) -> int:
    tf = require("tensorflow")
    if callable(data):
        try:
            inspect.signature(data).bind(0)
        except TypeError as error:
            raise ValueError(
                "`data` must be a `tf.data.Dataset`, or a function of the number of "
                f"the epoch: {error}. Received: data={data}"
            ) from error
    one_pass = data(tf.constant(0, tf.int64)) if callable(data) else data
    check_dataset("data", one_pass)
    size = int(one_pass.cardinality())
    if size < 1:
        raise ValueError(
            "The number of batches of `data` must be known "
            "(`tf.data.experimental.assert_cardinality` sets it), and at least one. "
            f"Received: {one_pass} with cardinality {size}"
        )
    return size


def _from_batch(data: Any, size: int, batch: int) -> Any:
    """Returns the batches of all passes, endlessly, starting with a given one."""
    tf = require("tensorflow")
    first, skipped = divmod(batch, size)
    numbers = tf.data.Dataset.counter(first, dtype=tf.int64)
    passes = numbers.flat_map(data if callable(data) else lambda _: data)
    return passes.skip(skipped).prefetch(tf.data.AUTOTUNE)
