import contextlib
import csv
import functools
import os
import shutil
import signal
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras.layers import Dense, Dropout, Flatten

from keras_ortho import ScoRNN
from keras_ortho.files import LOCK
from keras_ortho.optimizers import paper_optimizer
from keras_ortho.tasks import adding
from keras_ortho.training import train
from tests.modules import ROOT

Lambda = keras.callbacks.LambdaCallback
pytestmark = pytest.mark.backends


class Killed(BaseException):
    pass


def recurrent():
    layers = [ScoRNN(6, dropout=0.1, seed=1), Dense(1)]
    model = keras.Sequential([keras.Input((10, 2)), *layers])
    model.compile(paper_optimizer(others=keras.optimizers.Adam(0.03)), "mse")
    return model


def dense(optimizer=None, loss="mse"):
    """For what concerns the files alone: nothing is compiled."""
    layers = [Flatten(), Dropout(0.1, seed=1), Dense(1)]
    model = keras.Sequential([keras.Input((10, 2)), *layers])
    model.compile(optimizer or keras.optimizers.Adam(0.03), loss, run_eagerly=True)
    return model


def load():
    return adding.load(10, batch_size=8, train_size=40, test_size=16)


def run(folder, epochs=4, kill_at=None, make=recurrent, callbacks=(), **kwargs):
    keras.utils.set_random_seed(0)
    task, model = load(), make()

    def kill(epoch, logs):
        if epoch == kill_at:
            raise Killed

    callbacks = [*callbacks, Lambda(on_epoch_begin=kill)]
    given = {"epochs": epochs, "validation_data": task.test, "callbacks": callbacks}
    given |= {"save_seconds": 0.0, "progress": False} | kwargs
    return model, train(model, task.passes, folder, **given)


run_dense = functools.partial(run, make=dense)


def reporting(figures, name="val_loss"):
    """Has a figure of each epoch be what is given."""
    return Lambda(on_epoch_end=lambda epoch, logs: logs.update({name: figures[epoch]}))


def figures(history):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in history]


def assert_same_weights(model, expected):
    for value, wanted in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_array_equal(value, wanted)


def assert_same(found, expected):
    """Two runs have the same history and the same weights."""
    assert figures(found[1]) == figures(expected[1])
    assert_same_weights(found[0], expected[0])


@pytest.mark.parametrize(
    ("make", "steps"),
    [(recurrent, None), pytest.param(dense, 2, marks=pytest.mark.slow)],
)
def test_a_killed_run_ends_as_an_unbroken_one(make, steps, tmp_path):
    """With another order of the data in each pass over them."""
    given = {"make": make, "steps_per_epoch": steps}
    with pytest.raises(Killed):
        run(tmp_path / "broken", kill_at=3, **given)
    resumed = run(tmp_path / "broken", **given)
    assert [row["epoch"] for row in resumed[1]] == [1, 2, 3, 4]
    assert_same(resumed, run(tmp_path / "unbroken", **given))


@pytest.mark.slow_on_jax
def test_ends_with_the_best_epoch(tmp_path):
    model, history = run(tmp_path)
    best = min(row["val_loss"] for row in history)
    assert model.evaluate(load().test, verbose=0) == pytest.approx(best, rel=1e-5)
    assert_same_weights(keras.saving.load_model(tmp_path / "best.keras"), model)
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


@pytest.mark.slow
def test_more_epochs_go_on_without_what_a_kill_has_left(tmp_path):
    folder = tmp_path / "two"
    run_dense(folder, epochs=2)
    for name in ("state.weights.h5", "best.keras", "state-best-2.weights.h5"):
        (folder / f"tmp-123-{name}").write_bytes(b"half")
    four = run_dense(folder)
    assert not [*folder.glob("tmp-*")]
    assert_same(four, run_dense(tmp_path / "four"))
    again = run_dense(folder, kill_at=0)  # It only loads.
    assert again[1] == four[1]
    assert_same_weights(again[0], four[0])


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_file_costs_no_result(after, tmp_path, monkeypatch):
    """Just before or just after the file gets its name."""
    unbroken = run_dense(tmp_path / "unbroken")
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
        with contextlib.suppress(Killed):
            run_dense(tmp_path / str(number))
        killed, left = left == 0, -1
        assert_same(run_dense(tmp_path / str(number)), unbroken)
        if not killed:
            break
    # Four states, the settings, two results and at least one best epoch.
    assert number > 8


ALONE = """
import sys
import time
from tests.test_training import Lambda, run_dense
def wait(epoch, logs):
    print("epoch", epoch, flush=True)
    time.sleep(epoch * 60)
run_dense(sys.argv[1], callbacks=[Lambda(on_epoch_end=wait)])
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_ended_costs_no_result(ending, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", ALONE, tmp_path / "ended"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert [process.stdout.readline() for _ in "01"] == ["epoch 0\n", "epoch 1\n"]
        process.send_signal(ending)
    assert process.returncode != 0
    assert_same(run_dense(tmp_path / "ended"), run_dense(tmp_path / "unbroken"))


@pytest.mark.slow
def test_the_best_epoch_is_one_of_the_history(tmp_path):
    """Not one that was better, after the last save, and went with the kill."""
    for kill_at, rarely in ((2, 0.0), (3, 1e9)):
        killed = {"callbacks": [reporting([5.0, 4.0, 1.0, 9.0])], "kill_at": kill_at}
        with pytest.raises(Killed):
            run_dense(tmp_path / "killed", save_seconds=rarely, **killed)
    given = {"callbacks": [reporting([5.0, 4.0, 6.0, 7.0])]}
    model, history = run_dense(tmp_path / "killed", **given)
    assert [row["val_loss"] for row in history] == [5.0, 4.0, 6.0, 7.0]
    assert_same_weights(model, run_dense(tmp_path / "unbroken", **given)[0])


@pytest.mark.slow_on_jax
def test_a_figure_that_is_never_finite(tmp_path):
    with pytest.raises(ValueError, match="must be finite in some epoch. Received: val"):
        run_dense(tmp_path, epochs=2, callbacks=[reporting([float("nan")] * 2)])


def damage(folder):
    state = folder / "state.weights.h5"
    state.write_bytes(state.read_bytes()[:-1000])


def lose_settings(folder):
    (folder / "settings.json").unlink()


@pytest.mark.slow_on_jax
def test_a_folder_that_does_not_fit_is_left_alone(tmp_path):
    run_dense(tmp_path / "run", epochs=2, settings={"a": float("nan"), "b": [1]})
    same = {"b": (1,), "a": float("nan")}
    amsgrad = functools.partial(dense, keras.optimizers.Adam(0.03, amsgrad=True))
    run_dense(tmp_path / "run", epochs=2, settings=same)
    for change, arguments, message in (
        (None, {"epochs": 1}, "at least 2: .* Received: epochs=1"),
        (None, {"settings": {"b": [1]}}, r"Received: a=None \(the run has nan\)$"),
        (None, {"monitor": "loss"}, r"monitor=loss \(the run has val_loss\)"),
        (None, {"make": amsgrad}, r"Received: optimizer_variables=\d+ \("),
        (None, {"make": lambda: dense(loss="mae")}, "loss=mean_absolute_error"),
        (damage, {}, "The file is damaged.* Received: .*state.weights.h5: "),
        (lose_settings, {}, "`folder` must contain a run .* Received: .*best.keras"),
    ):
        folder = tmp_path / "copy"
        shutil.copytree(tmp_path / "run", folder)
        if change:
            change(folder)
        before = {path: path.read_bytes() for path in folder.iterdir()}
        with pytest.raises(ValueError, match=message):
            run_dense(folder, **{"epochs": 2, "settings": same, **arguments})
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
        shutil.rmtree(folder)


@pytest.mark.slow_on_jax
def test_bad_arguments_leave_no_trace(tmp_path):
    """Whatever is wrong is said before the folder is touched."""
    task = load()
    layers = [keras.Input(batch_shape=(8, 10, 2)), ScoRNN(3, stateful=True)]
    stateful = keras.Sequential(layers)
    stateful.compile("sgd", "mse")
    arrays = (np.ones((4, 10, 2)), np.ones((4, 10, 1)))
    swap = keras.callbacks.SwapEMAWeights()
    in_executions = dense()
    in_executions.steps_per_execution = 2
    uncompiled = keras.Sequential([keras.Input((10, 2)), Dense(1)])
    for arguments, message in (
        ({"epochs": 0}, "Received: epochs=0"),
        ({"save_seconds": None}, "Received: save_seconds=None"),
        ({"mode": "most"}, "`mode`.*mode='most'"),
        ({"model": uncompiled}, "`model` must be .* compiled. Received: <Sequential"),
        ({"model": stateful}, "CarriedState.*stateful=True"),
        ({"model": in_executions}, "steps_per_execution=2"),
        ({"callbacks": [swap]}, "`callbacks` must not contain .* Received: "),
        ({"steps_per_epoch": 0}, "Received: steps_per_epoch=0"),
        ({"data": arrays}, r"`data` must be a .*Received: tuple with 0 batches$"),
        ({"data": task.train.repeat()}, "`data`.*Received: .* with -1 batches$"),
        ({"validation_data": None}, "`validation_data`.*Received: NoneType "),
        ({"validation_data": task.test.take(0)}, "Dataset with 0 batches$"),
    ):
        given = {"model": dense(), "data": task.train, "validation_data": task.test}
        given |= {"folder": tmp_path, "epochs": 1} | arguments
        with pytest.raises(ValueError, match=message):
            train(**given)
    assert not any(tmp_path.iterdir())


def test_two_in_one_folder(tmp_path):
    def begin_another(epoch, logs):
        with pytest.raises(BlockingIOError, match="Another process is using"):
            run_dense(tmp_path)

    second = Lambda(on_epoch_begin=begin_another)
    _, history = run_dense(tmp_path, epochs=1, callbacks=[second])
    assert len(history) == 1


def test_the_best_may_be_the_highest_of_what_a_callback_adds(tmp_path):
    scores = [0.5, 0.9, 0.2, 0.7]
    given = {"mode": "max", "callbacks": [reporting(scores, "val_score")]}
    model, history = run_dense(tmp_path / "scores", monitor="val_score", **given)
    assert [row["val_score"] for row in history] == scores
    second, _ = run_dense(tmp_path / "alone", epochs=2, monitor="loss", mode="min")
    assert_same_weights(model, second)


@pytest.mark.slow
def test_goes_on_from_weights_that_were_changed_after_the_last_epoch(tmp_path):
    """By `EarlyStopping`, whose weights are those of an epoch before."""

    def stopped():
        early = keras.callbacks.EarlyStopping(patience=1, restore_best_weights=True)
        callbacks = [reporting([1.0, 2.0, 3.0, 3.0]), early]
        return run_dense(tmp_path / "stopped", save_seconds=1e9, callbacks=callbacks)

    _, history = stopped()
    assert len(history) == 2
    assert stopped()[1] == history  # It was over.
    _, history = run_dense(tmp_path / "stopped")
    _, expected = run_dense(tmp_path / "unbroken")
    assert [row["loss"] for row in history] == [row["loss"] for row in expected]


def test_a_run_that_another_callback_has_stopped_goes_on_with_the_next_batch(tmp_path):
    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 1

    last_is_best = reporting([2.0, 1.0])
    given = {"epochs": 2, "callbacks": [last_is_best, Stop()]}
    _, history = run_dense(tmp_path / "cut", **given)
    assert len(history) == 1
    model, _ = run_dense(tmp_path / "cut", epochs=2, callbacks=[last_is_best])
    whole, _ = run_dense(tmp_path / "whole", epochs=1, steps_per_epoch=2 + 5)
    assert_same_weights(model, whole)


@pytest.mark.slow_on_jax
def test_the_same_model_goes_on_with_its_loss_scale(tmp_path):
    """And what it saves is what a new process goes on from."""

    def scaled():
        # Grows after ten updates: two epochs, from which on it is another one.
        adam, growth = keras.optimizers.Adam(0.03), {"dynamic_growth_steps": 10}
        return dense(keras.optimizers.LossScaleOptimizer(adam, 8.0, **growth))

    unbroken, expected = run(tmp_path / "unbroken", epochs=4, make=scaled)
    model, _ = run(tmp_path / "broken", epochs=2, make=scaled)
    run(tmp_path / "broken", epochs=3, make=lambda: model)
    resumed, history = run(tmp_path / "broken", epochs=4, make=scaled)
    assert figures(history) == figures(expected)
    found = [float(model.optimizer.dynamic_scale) for model in (resumed, unbroken)]
    assert found[0] == found[1] != 8.0


@pytest.mark.slow_on_jax
def test_averages_are_validated_and_kept(tmp_path):
    def averaging():
        return dense(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5))

    keras.utils.set_random_seed(0)
    task, model, reference, averages = load(), averaging(), [], None
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
def test_figures_of_a_callback_and_of_a_vector(tmp_path, capsys):
    def add(epoch, logs):
        logs |= {"f1": np.array([0.25, 1.0])} | ({"extra": epoch} if epoch else {})

    callbacks = [Lambda(on_epoch_end=add)]
    with pytest.raises(ValueError, match=r"'f1_1', .*'val_loss'.*Received: monitor='f"):
        run_dense(tmp_path / "vector", callbacks=callbacks, monitor="f1")
    given = {"callbacks": callbacks, "monitor": "f1_0", "progress": True}
    _, history = run_dense(tmp_path, epochs=2, **given)
    names = ["epoch", "seconds", "loss", "val_loss", "f1_0", "f1_1"]
    assert [list(row) for row in history] == [names, [*names, "extra"]]
    assert history[1]["f1_0"] == 0.25
    with open(tmp_path / "history.csv", newline="") as file:
        assert [row["extra"] for row in csv.DictReader(file)] == ["", "1.0"]
    assert "2/2" in capsys.readouterr().out
