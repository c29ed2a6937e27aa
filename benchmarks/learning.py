"""Trains layers side by side, and counts the updates that each takes to learn a task.

Run it as `python benchmarks/learning.py copying-200 --layers "GORU(64)"`, on JAX; for
UCR, MNIST and TIMIT `KERAS_ORTHO_DATA` names a folder, see `recorded.py`. All
seeds of a layer train in one compiled program, and each adds a row to the table; rows
that it has are not made again. The rate `two` is `two_rate_adam()`, and `two:3e-3,1e-4`
has these rates, of which Keras's own layers, with no orthogonal matrix, take the first;
`adam` is `compile("adam")`, and `adam:3e-3` has that rate.
"""

import argparse
import csv
import functools
import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras
import numpy as np
import recorded
from measuring import make_layer
from peers import LRU, LEMCell

from keras_ortho.baselines import irnn
from keras_ortho.optimizers import two_rate_adam
from keras_ortho.tasks import adding, addition, copying

COLUMNS = ["task", "layer", "rate", "seed", "to half", "to a tenth", "last", "least"]
COLUMNS += ["parameters", "seconds", "curve"]  # Of errors, at equal distances.
CHUNK = 25  # updates in a call of the compiled program
Data = tuple[np.ndarray, np.ndarray]
Run = tuple[str, int]  # its rate and seed
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Task:
    """What to learn."""

    generate: Callable[[int, Any, np.random.SeedSequence], Data]
    size: Any  # after the number of sequences, before the seed
    without: float  # error of an answer that does not depend on the sequence
    outputs: int  # of the network: classes or, if targets are floating point, numbers
    updates: int
    each: int  # updates between validations
    batch_size: int = 32
    wanted: str = "last"  # the answer: at "each" step, or "written" by a second layer
    fixed: int = 0  # training sequences, if they are the same in all epochs
    recorded: bool = False


def task_of(name: str) -> Task:
    """Finds a task: copying-T, adding-T, first-step-T, addition-DIGITS, ucr-NAME ..."""
    kind, _, end = name.rpartition("-")
    recordings = {"ucr": recorded.series, "pixels": recorded.pixels}
    recordings["speech"] = recorded.speech
    if kind in recordings:
        return recorded_task(recordings[kind], int(end) if end.isdigit() else end)
    if kind not in ("copying", "adding", "first-step", "addition") or not end.isdigit():
        raise ValueError(
            "A task must be copying-T, adding-T, first-step-T, addition-DIGITS, "
            f"ucr-NAME, pixels-IMAGES or speech-T. Received: {name!r}"
        )
    size = int(end)
    if kind == "copying":
        without = copying.baseline(size)
        return Task(copying.generate, size, without, 9, 600, 20, wanted="each")
    if kind == "adding":
        return Task(adding.generate, size, adding.BASELINE, 1, 1500, 50, 50)
    if kind == "first-step":
        return Task(first_step, size, np.log(8), 8, 400, 20)
    # Errors are shares of wrong characters; always the most frequent ones have 0.63.
    fixed = min(50_000, addition.num_questions(size) * 99 // 100) * 9 // 10
    sizes = 20 * (fixed // 32), fixed // 32, 32
    return Task(addition.generate, size, 0.63, 12, *sizes, "written", fixed)


def recorded_task(read: Callable[[Any], Data], size: Any) -> Task:
    """Makes a task of a data set: a fifth, at most 500, is for validation."""
    x, y = read(size)
    together = recorded.PER_SPEAKER if read is recorded.speech else 1
    fixed = len(x) - min(len(x) // together // 5 * together, 500)
    draw = functools.partial(recorded.draw, read, together)
    if y.ndim == 1:
        counts = np.bincount(y)
        without = 1 - counts.max() / len(y)
        task = Task(draw, size, without, len(counts), 600, 20)
    else:
        without = y.var(axis=(0, 1)).mean()
        task = Task(draw, size, without, y.shape[2], 300, 10, wanted="each")
    return replace(task, fixed=fixed, recorded=True)


def first_step(number: int, length: int, seed: np.random.SeedSequence) -> Data:
    """Draws noise whose first step also shows one of eight classes."""
    random = np.random.default_rng(seed)
    classes = random.integers(0, 8, number)
    inputs = np.zeros((number, length, 9), "float32")
    inputs[:, :, 0] = random.normal(size=(number, length))
    inputs[np.arange(number), 0, 1 + classes] = 1.0
    return inputs, classes.astype("uint8")


def draws(task: Task, seed: int) -> Iterator[Data]:
    """Yields the validation data, then the sequences of each `CHUNK` updates."""
    of_valid, rest = np.random.SeedSequence(seed).spawn(2)
    chunk = CHUNK * task.batch_size
    if not task.fixed:
        yield task.generate(500, task.size, of_valid)
        while True:
            yield task.generate(chunk, task.size, rest.spawn(1)[0])
    x, y = task.generate(task.fixed * 10 // 9, task.size, of_valid)  # Or all there are.
    yield x[task.fixed :], y[task.fixed :]
    random, order = np.random.default_rng(rest), np.empty(0, int)
    while True:
        while len(order) < chunk:
            order = np.concatenate([order, random.permutation(task.fixed)])
        now, order = np.split(order, [chunk])
        yield x[now], y[now]


def network(task: Task, expression: str, data: Data) -> keras.Model:
    """Builds the network of a task around a layer, an expression like `GORU(64)`."""

    def recurrent(return_sequences: bool) -> keras.layers.Layer:
        layer = make_layer(expression, irnn=irnn, LEMCell=LEMCell, LRU=LRU)
        # A parametrized layer holds the recurrent one.
        getattr(layer, "layer", layer).return_sequences = return_sequences
        return layer

    x, y = data
    features = x.shape[2] if x.ndim == 3 else int(x.max()) + 1
    layers = [keras.Input((x.shape[1], features)), recurrent(task.wanted == "each")]
    if task.wanted == "written":
        layers += [keras.layers.RepeatVector(y.shape[1]), recurrent(True)]
    return keras.Sequential([*layers, keras.layers.Dense(task.outputs)])


def optimizer_of(rate: str) -> Any:
    """Makes an optimizer from its name and, after a colon, its rates."""
    name, _, rates = rate.partition(":")
    makers = {"two": two_rate_adam, "adam": keras.optimizers.Adam}
    if name not in makers:
        raise ValueError(f"A rate must begin with two or adam. Received: {rate!r}")
    return makers[name](*(float(rate) for rate in rates.split(",") if rate))


def train(task: Task, layer: str, runs: Sequence[Run]) -> Iterator[list[Any]]:
    """Trains at once from some rates and seeds; yields the columns of each."""
    streams = [draws(task, seed) for _, seed in runs]
    valid = [next(stream) for stream in streams]
    begun = []
    for rate, seed in runs:
        keras.utils.set_random_seed(seed)
        model, optimizer = network(task, layer, valid[0]), optimizer_of(rate)
        optimizer.build(model.trainable_variables)
        parts = [model.trainable_variables, optimizer.variables]
        parts.append(model.non_trainable_variables)
        begun.append([[variable.value for variable in part] for part in parts])
    state = jax.tree.map(lambda *values: jnp.stack(values), *begun)

    def loss_of(trained: Any, others: Any, x: Any, y: Any, training: bool) -> Any:
        """Returns the loss, and the other variables with the error."""
        x = x if x.ndim == 3 else jax.nn.one_hot(x, model.input_shape[-1])
        found, others = model.stateless_call(trained, others, x, training=training)
        if jnp.issubdtype(y.dtype, jnp.floating):
            loss = jnp.mean((found - y) ** 2)
            return loss, (others, loss)
        y = y.astype("int32")
        chances = jnp.take_along_axis(jax.nn.log_softmax(found), y[..., None], -1)
        loss = -jnp.mean(chances)
        wrong = jnp.mean(found.argmax(-1) != y)
        return loss, (others, wrong if task.fixed else loss)

    @jax.vmap
    def updated(trained: Any, slots: Any, others: Any, x: Any, y: Any) -> Any:
        make = jax.grad(loss_of, has_aux=True)
        gradients, (others, _) = make(trained, others, x, y, True)
        return [*optimizer.stateless_apply(slots, gradients, trained), others]

    @jax.jit
    def update(state: Any, data: Any) -> Any:
        step = lambda state, batch: (updated(*state, *batch), None)  # noqa: E731
        return jax.lax.scan(step, state, data)[0]

    @jax.jit
    @jax.vmap
    def errors(trained: Any, _: Any, others: Any, x: Any, y: Any) -> Any:
        return loss_of(trained, others, x, y, False)[1][1]

    valid_x, valid_y = map(np.stack, zip(*valid, strict=True))
    curves, times = [], [time.perf_counter()]
    for _ in range(task.updates // task.each):
        for done in range(0, task.each, CHUNK):
            now = min(CHUNK, task.each - done)
            drawn = map(np.stack, zip(*map(next, streams), strict=True))
            # (seeds, sequences, ...) to (updates, seeds, batch, ...).
            used = (part[:, : now * task.batch_size] for part in drawn)
            cut = (p.reshape(len(p), now, -1, *p.shape[2:]) for p in used)
            state = update(state, [np.swapaxes(p, 0, 1) for p in cut])
        curves.append(np.asarray(errors(*state, valid_x, valid_y)))
        times.append(time.perf_counter())
    seconds = np.median(np.diff(times)) * len(curves)  # The first compiles.
    for run, curve in zip(runs, np.transpose(curves), strict=True):
        reached = [first_below(curve, task.without / part) for part in (2, 10)]
        figures: list[Any] = [place and place * task.each for place in reached]
        figures += [f"{value:.5f}" for value in (curve[-1], np.nanmin(curve))]
        figures += [model.count_params(), round(float(seconds) / len(runs), 3)]
        yield [*run, *figures, " ".join(f"{error:.4g}" for error in curve)]


def first_below(curve: np.ndarray, level: float) -> int | str:
    """Returns the number of the first value of a curve that is at most a level."""
    places = np.flatnonzero(curve <= level)
    return int(places[0]) + 1 if len(places) else ""


def rows_of(path: Path, name: str, layer: str, runs: Sequence[Run]) -> Rows:
    """Reads the rows of some rates and seeds that a table has."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["task"] == name]
    own = [row for row in rows if row["layer"] == layer]
    return [row for row in own if (row["rate"], int(row["seed"])) in runs]


def trained(
    path: Path, name: str, task: Task, layer: str, runs: Sequence[Run], title: str = ""
) -> Rows:
    """Returns the rows of a layer, perhaps by a title; those that lack are made."""
    title = title or layer
    done = [(row["rate"], int(row["seed"])) for row in rows_of(path, name, title, runs)]
    if left := [run for run in runs if run not in done]:
        new = [[name, title, *row] for row in train(task, layer, left)]
        lines = [COLUMNS] * (not path.exists()) + new
        with path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)
        print(*(row[:-1] for row in new), sep="\n", flush=True)
    return rows_of(path, name, title, runs)


def main() -> None:
    """Trains what the table lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("tasks", nargs="+", help="copying-200, adding-200, first-step-2000, addition-2")
    add("--layers", nargs="+", required=True, help="expressions such as GORU(64)")
    add("--rates", nargs="+", default=["two"], help="two, adam:1e-3 (two)")
    add("--seeds", nargs="+", type=int, default=[0, 1, 2], help="(0 1 2)")
    add("--table", type=Path, default=Path("results/learning.csv"))
    given = parser.parse_args()
    for task, rate in itertools.product(given.tasks, given.rates):
        task_of(task), optimizer_of(rate)  # Typing errors come before hours of work.
    for name, layer, rate in itertools.product(given.tasks, given.layers, given.rates):
        runs = [(rate, seed) for seed in given.seeds]
        trained(given.table, name, task_of(name), layer, runs)


if __name__ == "__main__":
    main()
