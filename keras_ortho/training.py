"""Training runs that are logged, and resumed after a kill."""

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import keras
from keras.callbacks import EarlyStopping

from keras_ortho import training_checks
from keras_ortho.backend.processes import on_first, process_index
from keras_ortho.checks import check_count, check_number
from keras_ortho.distribution import (
    own_share,
    settings_by_replicas,
    shared_evaluation,
)
from keras_ortho.extras import require
from keras_ortho.locks import locked
from keras_ortho.tasks.sharing import training_share
from keras_ortho.training_run import MODEL, Run, best_epoch
from keras_ortho.weight_averages import WeightAverages

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
    only loads. Where another callback has stopped it, it goes on; an epoch that was cut
    short stays short, and the next one begins with the batch that follows. In the end
    the model has the weights of the best epoch.

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
            `history.csv`. A new run begins in none that has a file of such a name.
        epochs: Number of epochs in all.
        validation_data: `tf.data.Dataset` to choose the best epoch on.
        steps_per_epoch: Batches in an epoch, which may be less or more than those
            of `data`. Default: `None`, all of them once.
        monitor: Name of the figure that is least in the best epoch, see
            `best_epoch`. Default: `"val_loss"`.
        save_seconds: Least time between two saves, in seconds. Default: 30.
        callbacks: More callbacks, whose own state is not saved. What they add to
            the `logs` of an epoch is in its figures. Default: none.
        settings: Settings that identify the run, as values for JSON: a run is resumed
            only with the settings that it was started with. `monitor` is always one of
            them. Unless given here, so are `optimizer` (the classes of the optimizers),
            `loss` (the names of the losses), `parameters` (their number in the model)
            and `batches` (their number in the data). Nothing else of the model is
            compared; a resumed run keeps the learning rate that was saved in its
            folder. Default: none.
        progress: Whether to show a progress bar over the epochs. Default: `True`.

    Returns:
        A dictionary for each epoch, with `"epoch"` from 1 on, `"seconds"`, and
        the figures that `model.fit` reports. Those of a metric that gives a vector
        are numbered, as in `"f1_score_0"`.

    Raises:
        ValueError: If `epochs` or `steps_per_epoch` is not positive, `save_seconds`
            negative; if `data` or `validation_data` is not a `tf.data.Dataset`, or the
            number of batches of `data` is unknown; if a setting cannot be written as
            JSON; if `callbacks` are not callbacks, or include a `SwapEMAWeights`; if
            `model` is not built and compiled, or cannot be resumed; if `monitor` is not
            reported by `fit`, or is finite in no epoch; if `folder` is not a folder,
            holds files that are not of a run, or a run with other settings, another
            `monitor`, other optimizer variables or more epochs, or damaged files, which
            the message names. On several devices also as `own_share` and
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
    training_checks.check_folder(folder)
    training_checks.check_monitor(monitor)
    training_checks.check_model(model)
    callbacks = training_checks.check_callbacks(callbacks)
    training_checks.check_validation_data(validation_data)
    size = _size(data)
    steps = size if steps_per_epoch is None else steps_per_epoch
    training_checks.check_steps(model, steps)
    share = own_share()
    all_settings = {
        **training_checks.run_settings(model, monitor, size, settings),
        **settings_by_replicas(model),
    }
    with _own_folder(folder) as own:
        averages = WeightAverages()
        bar = epochs if progress else None
        run = Run(own, monitor, steps, save_seconds, averages, bar)
        run.set_model(model)
        on_first(run.check_folder)
        on_first(lambda: run.check_settings(all_settings))
        on_first(run.tidy)
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
                _from_batch(training_share(data, share), size, run.batches),
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
    if callable(data):
        training_checks.check_passes(data)
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


def _from_batch(data: Any, size: int, batch: int) -> Any:
    """The batches of all passes, without end, from one on."""
    tf = require("tensorflow")
    first, skipped = divmod(batch, size)
    numbers = tf.data.Dataset.counter(first, dtype=tf.int64)
    passes = numbers.flat_map(data if callable(data) else lambda _: data)
    return passes.skip(skipped).prefetch(tf.data.AUTOTUNE)
