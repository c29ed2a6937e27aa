import contextlib
import csv
import functools
import os
import signal
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_ortho import ScoRNN
from keras_ortho.locks import LOCK
from keras_ortho.optimizers import paper_optimizer, two_rate_adam
from keras_ortho.tasks import adding
from keras_ortho.training import train
from tests.modules import ROOT

pytestmark = pytest.mark.backends


class Killed(BaseException):
    pass


def recurrent():
    model = keras.Sequential(
        [keras.Input((10, 2)), ScoRNN(6, dropout=0.1, seed=1), keras.layers.Dense(1)]
    )
    model.compile(paper_optimizer(others=keras.optimizers.Adam(0.03)), "mse")
    return model


def dense():
    """For what concerns the files alone: nothing is compiled."""
    model = keras.Sequential(
        [
            keras.Input((10, 2)),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.1, seed=1),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(0.03), "mse", run_eagerly=True)
    return model


def run(folder, epochs=4, kill_at=None, make=recurrent, **kwargs):
    keras.utils.set_random_seed(0)
    task = adding.load(10, batch_size=8, train_size=40, test_size=16)
    model = make()

    class Kill(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == kill_at:
                raise Killed

    kwargs = {"save_seconds": 0.0, "progress": False, "callbacks": [Kill()], **kwargs}
    history = train(
        model, task.passes, folder, epochs=epochs, validation_data=task.test, **kwargs
    )
    return model, history


run_dense = functools.partial(run, make=dense)


def figures(history):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in history]


def assert_same_weights(model, expected):
    for value, wanted in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize(
    ("make", "kill_at", "steps"),
    [
        (recurrent, 3, None),
        pytest.param(dense, 1, None, marks=pytest.mark.slow),
        pytest.param(dense, 3, 2, marks=pytest.mark.slow),
    ],
)
def test_a_killed_run_ends_as_an_unbroken_one(make, kill_at, steps, tmp_path):
    """With another order of the data in each pass over them."""
    given = {"make": make, "steps_per_epoch": steps}
    unbroken, expected = run(tmp_path / "unbroken", **given)
    with pytest.raises(Killed):
        run(tmp_path / "broken", kill_at=kill_at, **given)
    resumed, history = run(tmp_path / "broken", **given)
    assert [row["epoch"] for row in history] == [1, 2, 3, 4]
    assert figures(history) == figures(expected)
    assert_same_weights(resumed, unbroken)


@pytest.mark.slow_on_jax
def test_ends_with_the_best_epoch(tmp_path):
    model, history = run(tmp_path)
    best = min(row["val_loss"] for row in history)
    task = adding.load(10, batch_size=8, train_size=40, test_size=16, seed=0)
    assert model.evaluate(task.test, verbose=0) == pytest.approx(best, rel=1e-5)
    loaded = keras.saving.load_model(tmp_path / "best.keras")
    assert_same_weights(loaded, model)
    with open(tmp_path / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["val_loss"]) for row in rows] == [r["val_loss"] for r in history]
    assert {path.name for path in tmp_path.iterdir()} == {
        LOCK,
        "best.keras",
        "history.csv",
        "settings.json",
        "state.weights.h5",
        f"state-best-{1 + [r['val_loss'] for r in history].index(best)}.weights.h5",
    }


def test_a_finished_run_only_loads(tmp_path):
    model, history = run_dense(tmp_path)
    again, same = run_dense(tmp_path, kill_at=0)
    assert same == history
    assert_same_weights(again, model)


@pytest.mark.slow_on_jax
def test_more_epochs_go_on(tmp_path):
    run_dense(tmp_path / "two", epochs=2)
    _, history = run_dense(tmp_path / "two")
    _, expected = run_dense(tmp_path / "four")
    assert figures(history) == figures(expected)


@pytest.mark.slow_on_jax
def test_fewer_epochs_than_there_are(tmp_path):
    run_dense(tmp_path, epochs=2)
    with pytest.raises(ValueError, match="at least 2: .* Received: epochs=1"):
        run_dense(tmp_path, epochs=1)


def test_what_a_kill_leaves_is_removed(tmp_path):
    run_dense(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    for name in ("state.weights.h5", "best.keras", "state-best-2.weights.h5"):
        (tmp_path / f"tmp-123-{name}").write_bytes(b"half")
    _, history = run_dense(tmp_path)
    assert len(history) == 4
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_file_costs_no_result(after, tmp_path, monkeypatch):
    """Just before or just after the file gets its name."""
    unbroken, expected = run_dense(tmp_path / "unbroken")
    replace, left = os.replace, 0

    def kill(source, target):
        nonlocal left
        left -= 1
        if left or after:
            replace(source, target)
        if not left:
            raise Killed

    monkeypatch.setattr(os, "replace", kill)
    for number in range(1, 12):
        left = number
        folder = tmp_path / str(number)
        with contextlib.suppress(Killed):
            run_dense(folder)
        killed, left = left == 0, -1
        resumed, history = run_dense(folder)
        assert figures(history) == figures(expected)
        assert_same_weights(resumed, unbroken)
        if not killed:
            break
    # Four states, the settings, two results and at least one best epoch.
    assert number > 8


ALONE = """
import sys
import time
import keras
from tests.test_training import run_dense
class Slow(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print("epoch", epoch, flush=True)
        time.sleep(epoch * 60)
run_dense(sys.argv[1], callbacks=[Slow()])
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_ended_costs_no_result(ending, tmp_path):
    unbroken, expected = run_dense(tmp_path / "unbroken")
    with subprocess.Popen(
        [sys.executable, "-c", ALONE, tmp_path / "ended"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert [process.stdout.readline() for _ in "01"] == ["epoch 0\n", "epoch 1\n"]
        process.send_signal(ending)
    assert process.returncode != 0
    resumed, history = run_dense(tmp_path / "ended")
    assert figures(history) == figures(expected)
    assert_same_weights(resumed, unbroken)


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if path.name != LOCK}


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("name", ["best.keras", "settings.json", "history.csv"])
def test_a_folder_with_files_of_somebody_else_is_left_alone(name, tmp_path):
    (tmp_path / name).write_text("{}")
    (tmp_path / "state-of-mine").write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=rf"`folder` must .* Received: .*{name}$"):
        run_dense(tmp_path)
    assert contents(tmp_path) == before


class Constant(keras.callbacks.Callback):
    """Has the validation losses be what is given."""

    def __init__(self, figures):
        super().__init__()
        self.figures = figures

    def on_epoch_end(self, epoch, logs=None):
        logs["val_loss"] = self.figures[epoch]


def test_two_in_one_folder(tmp_path):
    class Second(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            with pytest.raises(BlockingIOError, match="Another process is using"):
                run_dense(tmp_path, callbacks=[])

    _, history = run_dense(tmp_path, epochs=1, callbacks=[Second()])
    assert len(history) == 1


def amsgrad():
    return keras.optimizers.Adam(0.03, amsgrad=True)


@pytest.mark.slow_on_jax
def test_a_state_of_another_model_is_not_called_damaged(tmp_path):
    run_dense(tmp_path, epochs=2)

    def other(units, optimizer, loss="mse"):
        parts = [keras.layers.Flatten(), keras.layers.Dense(units)]
        model = keras.Sequential([keras.Input((10, 2)), *parts])
        model.compile(optimizer, loss)
        return model

    with pytest.raises(ValueError, match=r"parameters=63 \(the run has 21\)$"):
        run(tmp_path, epochs=2, make=lambda: other(3, "adam"))
    with pytest.raises(ValueError, match=r"optimizer=SGD \(the run has Adam\),"):
        run(tmp_path, epochs=2, make=lambda: other(1, "sgd"))
    changed = r"loss=mean_absolute_error \(the run has mean_squared_error\)$"
    with pytest.raises(ValueError, match=changed):
        run(tmp_path, epochs=2, make=lambda: other(1, "adam", "mae"))
    for same in (keras.losses.mean_squared_error, keras.losses.MeanSquaredError()):
        with pytest.raises(ValueError, match=r"Received: optimizer_variables=\d+ \("):
            run(tmp_path, epochs=2, make=lambda same=same: other(1, amsgrad(), same))


@pytest.mark.slow_on_jax
def test_a_damaged_state_is_named(tmp_path):
    run_dense(tmp_path, epochs=1)
    state = tmp_path / "state.weights.h5"
    state.write_bytes(state.read_bytes()[:-1000])
    with pytest.raises(ValueError, match="state.weights.h5 cannot be read: .*Received"):
        run_dense(tmp_path)
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(ValueError, match="`folder` must contain a run of `train`"):
        run_dense(tmp_path)


@pytest.fixture
def forged(monkeypatch):
    """Runs whose validation losses are given."""

    def forge(folder, figures, **kwargs):
        from keras_ortho._training_state import TrainingState

        original = TrainingState.on_epoch_end
        weights = {}

        def on_epoch_end(run, epoch, logs=None):
            weights[epoch] = run.model.get_weights()
            original(run, epoch, {**logs, "val_loss": figures[epoch]})

        with monkeypatch.context() as patch:
            patch.setattr(TrainingState, "on_epoch_end", on_epoch_end)
            model, history = run_dense(folder, epochs=len(figures), **kwargs)
        return model, history, weights

    return forge


@pytest.mark.slow
def test_the_best_epoch_is_one_of_the_history(forged, tmp_path):
    """Not one that was better, after the last save, and went with the kill."""
    with pytest.raises(Killed):
        forged(tmp_path, [5.0, 4.0, 1.0, 9.0], kill_at=3, save_seconds=1e9)
    # Nothing had been saved but by the end of `fit`, which a kill does not reach.
    assert not (tmp_path / "state.weights.h5").exists()
    with pytest.raises(Killed):
        forged(tmp_path, [5.0, 4.0, 9.0, 9.0], kill_at=2)
    with pytest.raises(Killed):
        forged(tmp_path, [5.0, 4.0, 1.0, 9.0], kill_at=3, save_seconds=1e9)
    model, history, _ = forged(tmp_path, [5.0, 4.0, 6.0, 7.0])
    assert [row["val_loss"] for row in history] == [5.0, 4.0, 6.0, 7.0]
    expected, _, _ = forged(tmp_path / "unbroken", [5.0, 4.0, 6.0, 7.0])
    assert_same_weights(model, expected)


@pytest.mark.slow_on_jax
def test_of_equal_epochs_the_last_is_the_best(forged, tmp_path):
    model, _, weights = forged(tmp_path, [3.0, 2.0, 2.0, 4.0])
    for value, wanted in zip(model.get_weights(), weights[2], strict=True):
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.slow
def test_epochs_without_a_figure_are_not_the_best(forged, tmp_path):
    nan = float("nan")
    model, history, weights = forged(tmp_path, [nan, 3.0, nan, 4.0])
    assert len(history) == 4
    for value, wanted in zip(model.get_weights(), weights[1], strict=True):
        np.testing.assert_array_equal(value, wanted)
    with pytest.raises(ValueError, match="must be finite in some epoch. Received: val"):
        forged(tmp_path / "never", [nan, nan])


@pytest.mark.slow_on_jax
def test_a_run_is_not_continued_with_other_settings(tmp_path):
    run_dense(tmp_path, epochs=1, settings={"rate": 0.1, "units": 6})
    run_dense(tmp_path, epochs=2, settings={"rate": 0.1, "units": 6})
    with pytest.raises(ValueError, match=r"Received: rate=0.2 \(the run has 0.1\)$"):
        run_dense(tmp_path, epochs=2, settings={"rate": 0.2, "units": 6})


@pytest.mark.slow_on_jax
def test_the_model_must_be_built(tmp_path):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="Received: .* with built=False"):
        train(model, None, tmp_path, epochs=1, validation_data=None)


@pytest.mark.slow_on_jax
def test_the_number_of_batches_must_be_known(tmp_path):
    model = keras.Sequential([keras.Input((10, 2)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = adding.load(10, train_size=40, test_size=16).train
    with pytest.raises(ValueError, match="`data`.*Received: .* with cardinality -1$"):
        train(model, data.repeat(), tmp_path, epochs=1, validation_data=data)
    with pytest.raises(ValueError, match="`validation_data` must be finite.*infinite"):
        train(model, data, tmp_path, epochs=1, validation_data=data.repeat())
    arrays = (np.ones((4, 10, 2)), np.ones((4, 10, 1)))
    with pytest.raises(ValueError, match=r"`data` must be a .*Received: tuple$"):
        train(model, arrays, tmp_path, epochs=1, validation_data=data)
    assert not any(tmp_path.iterdir())


def test_the_best_may_be_the_highest_of_what_a_callback_adds(tmp_path):
    class Score(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            logs["val_score"] = [0.5, 0.9, 0.2, 0.7][epoch]

    given = {"monitor": "val_score", "mode": "max", "callbacks": [Score()]}
    model, history = run_dense(tmp_path / "scores", **given)
    assert [row["val_score"] for row in history] == [0.5, 0.9, 0.2, 0.7]
    second, _ = run_dense(tmp_path / "alone", epochs=2, monitor="loss", mode="min")
    assert_same_weights(model, second)
    with pytest.raises(ValueError, match=r"mode=min \(the run has max\)"):
        run_dense(tmp_path / "scores", **given | {"mode": "min"})


@pytest.mark.slow_on_jax
def test_shows_progress(tmp_path, capsys):
    run_dense(tmp_path, progress=True)
    shown = capsys.readouterr().out
    assert "4/4" in shown
    assert "val_loss" in shown


@pytest.mark.slow_on_jax
def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match="Received: epochs=0"):
        run_dense(tmp_path, epochs=0)
    with pytest.raises(ValueError, match=r"\['loss', 'val_loss'\].*Received: monitor="):
        run_dense(tmp_path, monitor="val_accuracy")


@pytest.mark.slow_on_jax
def test_bad_arguments_leave_no_trace(tmp_path):
    """Whatever is wrong is said before the folder is touched."""

    def uncompiled():
        return keras.Sequential([keras.Input((10, 2)), keras.layers.Dense(1)])

    def in_executions():
        model = dense()
        model.compile("sgd", "mse", steps_per_execution=2)  # Of 5 batches.
        return model

    def stateful():
        layers = [ScoRNN(3, stateful=True), keras.layers.Dense(1)]
        model = keras.Sequential([keras.Input(batch_shape=(8, 10, 2)), *layers])
        model.compile("sgd", "mse")
        return model

    cases = [
        ({"make": lambda: None}, "`model`.*None"),
        ({"make": uncompiled}, "compiled=False"),
        ({"make": stateful}, "CarriedState.*stateful=True"),
        ({"callbacks": ["x"]}, r"callbacks=\['x'\]"),
        ({"callbacks": keras.callbacks.Callback()}, "callbacks=<"),
        ({"settings": ["a"]}, r"settings=\['a'\]"),
        ({"settings": {"monitor": "loss"}}, "monitor.*settings="),
        ({"monitor": ["loss"]}, r"`monitor`.*monitor=\['loss'\]"),
        ({"mode": "most"}, "`mode`.*mode='most'"),
    ]
    if keras.backend.backend() != "torch":  # Keras takes one step at a time there.
        cases.append(({"make": in_executions}, "steps_per_execution=2"))
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            run_dense(tmp_path, **arguments)
    task = adding.load(10, batch_size=8, train_size=40, test_size=16)
    with pytest.raises(ValueError, match="`validation_data`.*Received: NoneType$"):
        train(dense(), task.train, tmp_path, epochs=1, validation_data=None)
    with pytest.raises(ValueError, match="`validation_data`.*with cardinality 0$"):
        train(
            dense(), task.train, tmp_path, epochs=1, validation_data=task.test.take(0)
        )
    with pytest.raises(ValueError, match="`data` .*Received: data=<function"):
        train(
            dense(), lambda: task.train, tmp_path, epochs=1, validation_data=task.test
        )
    assert not any(tmp_path.iterdir())
    file = tmp_path / "file"
    file.write_text("mine")
    for folder in (None, 5, file):
        with pytest.raises(ValueError, match="`folder` .*Received: folder="):
            run_dense(folder)
    assert file.read_text() == "mine"


@pytest.mark.slow_on_jax
def test_the_monitor_of_a_run_stays(tmp_path):
    run_dense(tmp_path, epochs=1)
    with pytest.raises(ValueError, match=r"monitor=loss \(the run has val_loss\)"):
        run_dense(tmp_path, epochs=1, monitor="loss")


class Now(keras.callbacks.Callback):
    """Adds a figure in every second epoch."""

    def on_epoch_end(self, epoch, logs=None):
        if epoch % 2:
            logs["extra"] = float(epoch)


@pytest.mark.slow_on_jax
def test_a_figure_of_some_epochs_only(tmp_path):
    run_dense(tmp_path, epochs=2, callbacks=[Now()])
    _, history = run_dense(tmp_path, callbacks=[Now()])
    assert [row.get("extra") for row in history] == [None, 1, None, 3]
    with open(tmp_path / "history.csv", newline="") as file:
        assert [row["extra"] for row in csv.DictReader(file)] == ["", "1.0", "", "3.0"]


@pytest.mark.slow
def test_goes_on_from_weights_that_were_changed_after_the_last_epoch(tmp_path):
    """By `EarlyStopping`, whose weights are those of an epoch before."""

    def stopped():
        early = keras.callbacks.EarlyStopping(patience=1, restore_best_weights=True)
        return [Constant([1.0, 2.0, 3.0, 3.0]), early]

    rare = {"save_seconds": 1e9}
    _, history = run_dense(tmp_path / "stopped", callbacks=stopped(), **rare)
    assert len(history) == 2
    _, again = run_dense(tmp_path / "stopped", callbacks=stopped(), **rare)
    assert again == history  # It was over.
    _, history = run_dense(tmp_path / "stopped", callbacks=[])
    _, expected = run_dense(tmp_path / "unbroken", callbacks=[])
    assert [row["loss"] for row in history] == [row["loss"] for row in expected]


def test_a_run_that_another_callback_has_stopped_goes_on(tmp_path):
    class Pause(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = True

    assert len(run_dense(tmp_path, callbacks=[Pause()])[1]) == 1
    assert len(run_dense(tmp_path, callbacks=[Pause()])[1]) == 2


def test_an_epoch_that_is_cut_short_skips_no_batch(tmp_path):
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 1

    seen = []

    class Seeing(keras.layers.Layer):
        def call(self, inputs, training=False):
            if training:
                seen.append(keras.ops.convert_to_numpy(inputs))
            return inputs

    def make():
        model = keras.Sequential(
            [keras.Input((10, 2)), Seeing(), keras.layers.Flatten()]
        )
        model.add(keras.layers.Dense(1))
        model.compile("sgd", "mse", run_eagerly=True)
        seen.clear()
        return model

    _, history = run(tmp_path / "cut", epochs=2, make=make, callbacks=[Stop()])
    assert len(history) == 1
    before = list(seen)
    run(tmp_path / "cut", epochs=2, make=make, callbacks=[])
    found = before + seen
    run(tmp_path / "whole", epochs=2, make=make, callbacks=[])
    assert len(found) == 2 + 5
    np.testing.assert_array_equal(found, seen[: len(found)])


@pytest.mark.slow_on_jax
def test_the_same_model_goes_on_with_its_loss_scale(tmp_path):
    """And what it saves is what a new process goes on from."""

    def scaled():
        model = dense()
        # Grows after ten updates: two epochs, from which on it is another one.
        optimizer = keras.optimizers.LossScaleOptimizer(
            keras.optimizers.Adam(0.03), initial_scale=8.0, dynamic_growth_steps=10
        )
        model.compile(optimizer, "mse", run_eagerly=True)
        return model

    unbroken, expected = run(tmp_path / "unbroken", epochs=4, make=scaled)
    model, _ = run(tmp_path / "broken", epochs=2, make=scaled)
    run(tmp_path / "broken", epochs=3, make=lambda: model)
    resumed, history = run(tmp_path / "broken", epochs=4, make=scaled)
    assert figures(history) == figures(expected)
    found = [float(model.optimizer.dynamic_scale) for model in (resumed, unbroken)]
    assert found[0] == found[1] != 8.0


@pytest.mark.slow_on_jax
def test_a_run_is_not_continued_with_other_batches(tmp_path):
    run_dense(tmp_path, epochs=2)
    task = adding.load(10, batch_size=4, train_size=40, test_size=16)
    with pytest.raises(ValueError, match=r"batches=10 \(the run has 5\)"):
        train(dense(), task.passes, tmp_path, epochs=3, validation_data=task.test)


@pytest.mark.slow_on_jax
def test_averages_where_no_recurrent_matrix_is_trained(tmp_path):
    def frozen():
        model = recurrent()
        model.layers[0].trainable = False
        model.compile(two_rate_adam(ema_momentum=0.5), "mse")
        return model

    _, history = run(tmp_path, epochs=1, make=frozen)
    assert np.isfinite(history[0]["val_loss"])


def averaging():
    model = dense()
    optimizer = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    model.compile(optimizer, "mse", run_eagerly=True)
    return model


@pytest.mark.slow_on_jax
def test_averages_are_validated_and_kept(tmp_path):
    keras.utils.set_random_seed(0)
    task = adding.load(10, batch_size=8, train_size=40, test_size=16)
    model, reference, averages = averaging(), [], None
    for number in range(2):
        for x, y in task.passes(np.int64(number)).as_numpy_iterator():
            model.train_on_batch(x, y)
            weights = model.get_weights()
            before = averages or weights  # Keras begins with the first update.
            averages = [(a + w) / 2 for a, w in zip(before, weights, strict=True)]
        model.set_weights(averages)
        reference.append(model.evaluate(task.test, verbose=0))
        model.set_weights(weights)
    trained, history = run(tmp_path, epochs=2, make=averaging)
    # Averages of float32 numbers of order one.
    found = [row["val_loss"] for row in history]
    np.testing.assert_allclose(found, reference, rtol=1e-5)
    best = min(reference)
    np.testing.assert_allclose(trained.evaluate(task.test, verbose=0), best, rtol=1e-5)


@pytest.mark.slow_on_jax
def test_a_run_with_averages_goes_on(tmp_path):
    run(tmp_path / "two", epochs=2, make=averaging, save_seconds=1e9)
    resumed, history = run(tmp_path / "two", make=averaging)
    unbroken, expected = run(tmp_path / "four", make=averaging)
    assert figures(history) == figures(expected)
    assert_same_weights(resumed, unbroken)
    swap = keras.callbacks.SwapEMAWeights()
    with pytest.raises(ValueError, match="`callbacks` must not contain .* Received: "):
        run(tmp_path / "no", make=averaging, callbacks=[swap])


@pytest.mark.slow_on_jax
def test_what_failed_before_its_first_state_is_begun_anew(tmp_path):
    with pytest.raises(ValueError, match="Received: monitor='val_acc'"):
        run_dense(tmp_path, epochs=1, monitor="val_acc")
    _, history = run_dense(tmp_path, epochs=1)
    assert len(history) == 1


@pytest.mark.slow_on_jax
def test_settings_are_compared_as_they_are_written(tmp_path):
    for settings in ({"a": float("nan"), "b": [1]}, {"b": (1,), "a": float("nan")}):
        run_dense(tmp_path, epochs=1, settings=settings)
    with pytest.raises(
        ValueError, match="`settings` must be serializable .*Received: "
    ):
        run_dense(tmp_path / "other", settings={"a": np.float32(1)})
    with pytest.raises(ValueError, match="Received: save_seconds=None"):
        run_dense(tmp_path / "other", save_seconds=None)


class Silent(keras.Model):
    """A model with figures of its own: no loss, and a vector."""

    def __init__(self):
        super().__init__()
        self.layer = keras.layers.Dense(1)

    def call(self, inputs):
        return self.layer(inputs[:, 0])

    def train_step(self, data):
        return {"mine": 1.0}

    def test_step(self, data):
        return {"loss": 2.0, "f1": keras.ops.convert_to_tensor([0.25, 1.0])}


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its train_step")
def test_figures_of_a_model_of_ones_own(tmp_path):
    def make():
        model = Silent()
        model(np.zeros((1, 10, 2)))
        model.compile("sgd", run_eagerly=True)
        return model

    with pytest.raises(ValueError, match=r"'val_f1_1'.*Received: monitor='val_f1'"):
        run(tmp_path / "vector", make=make, monitor="val_f1")
    run(tmp_path / "part", epochs=1, make=make, monitor="val_f1_0", progress=True)
    _, (row, _) = run(tmp_path, epochs=2, make=make, progress=True)
    assert row == {
        "epoch": 1,
        "seconds": row["seconds"],
        "mine": 1.0,
        "val_loss": 2.0,
        "val_f1_0": 0.25,
        "val_f1_1": 1.0,
    }
