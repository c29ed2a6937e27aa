"""Compares all layers: equal parameters, equal updates, equally many rates tried.

Run it as `python benchmarks/comparison.py`, on JAX; it goes on where it was ended. Each
layer tries the same rates on each task, from seeds that are not reported. The rate with
the least median error on validation data trains from the other seeds. Then it writes
the table, and the picture of the medians.
"""

import argparse
import csv
import dataclasses
import itertools
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import learning
import matplotlib.pyplot as plt
import numpy as np
from measuring import OUT, report

# Tasks, and updates of each.
TASKS = {"copying-300": 400, "adding-200": 1000, "first-step-2000": 300}
TRIALS, SEEDS = [0], [10, 11, 12, 13, 14]
RATES = ["two:1e-3,1e-4", "two:3e-3,3e-4", "two:1e-2,1e-3"]
TABLE = Path("results/comparison.csv")
# Of 10 000 parameters with ten inputs, or somewhat fewer.
LAYERS = {
    "ScoRNN": "ScoRNN(128)",
    "ScuRNN": "ScuRNN(86)",
    "ENRNN": "ENRNN(104, 20)",
    "GORU": "GORU(58)",
    "GORU, paper": "GORU.from_paper(64)",
    "ORNN": "ORNN(128)",
    "SVDRNN": "SVDRNN(92)",
    "NNRNN": "NNRNN(92)",
    "AntisymmetricRNN": "AntisymmetricRNN(128)",
    "orthogonal LSTM": "parametrize(keras.layers.LSTM(61), 'recurrent_kernel', "
    "ScaledCayley())",
    "orthogonal GRU": "parametrize(keras.layers.GRU(70), 'recurrent_kernel', "
    "ScaledCayley())",
    "LSTM": "keras.layers.LSTM(46)",
    "GRU": "keras.layers.GRU(53)",
    "SimpleRNN": "keras.layers.SimpleRNN(94)",
    "IRNN": "irnn(94)",
    "LRU": "LRU(28)",
    "LEM": "LEM(46)",
}
COLUMNS = [*learning.COLUMNS, "curve"]
Rows = list[dict[str, Any]]


def rows_of(path: Path) -> Rows:
    """Reads the table, which may not exist."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def train(task: str, layer: str, runs: list[tuple[str, int]], path: Path) -> Rows:
    """Returns the rows of some rates and seeds; those that the table lacks are made."""

    def wanted(row: dict[str, Any]) -> bool:
        run = row["rate"], int(row["seed"])
        return (row["task"], row["layer"]) == (task, layer) and run in runs

    if len(rows := list(filter(wanted, rows_of(path)))) == len(runs):
        return rows
    what = dataclasses.replace(learning.task_of(task), updates=TASKS[task])
    found = learning.train(what, LAYERS[layer], runs)
    new = [[task, layer, *row, " ".join(f"{x:.4g}" for x in c)] for row, c in found]
    lines = [COLUMNS] * (not path.exists()) + new
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
    print(*new[0][:3], [row[6] for row in new], new[0][9], flush=True)
    return train(task, layer, runs, path)


def compare(task: str, layer: str, path: Path) -> Rows:
    """Chooses the rate of a layer for a task, and trains with it."""
    trials = train(task, layer, list(itertools.product(RATES, TRIALS)), path)

    def error(rate: str) -> float:
        found = [float(row["last"]) for row in trials if row["rate"] == rate]
        return float(np.median(np.nan_to_num(found, nan=np.inf)))

    rate = min(RATES, key=error)
    return train(task, layer, [(rate, seed) for seed in SEEDS], path)


def span(values: Iterable[float]) -> str:
    """Writes the median, and the range in brackets; infinity is a dash."""
    low, *_, high = ordered = sorted(values)
    texts = [f"{x:.2g}" for x in (statistics.median(ordered), low, high)]
    middle, low, high = (text.replace("inf", "-") for text in texts)
    return middle if low == high else f"{middle} ({low} to {high})"


def figures(rows: Rows, updates: int) -> list[str]:
    """Writes last errors, updates and seconds to half of that without memory."""
    seconds = [float(row["seconds"]) / updates for row in rows]
    halves = [float(row["to half"] or "inf") for row in rows]
    return [
        span(float(row["last"]) for row in rows),
        span(halves),
        span(half * second for half, second in zip(halves, seconds, strict=True)),
        f"{1000 * statistics.median(seconds):.0f}",
        rows[0]["rate"].partition(",")[0].removeprefix("two:"),
    ]


def draw(found: dict[str, Rows], task: str, axes: Sequence[Any]) -> None:
    """Draws the median error of each layer, against updates and against seconds."""
    for number, (layer, rows) in enumerate(found.items()):
        curves = [[float(x) for x in row["curve"].split()] for row in rows]
        curve = np.median(curves, axis=0)
        updates = np.linspace(0, TASKS[task], len(curve) + 1)[1:]
        seconds = statistics.median(float(row["seconds"]) for row in rows)
        style = {"ls": "-" if number < 10 else "--", "label": layer}
        axes[0].semilogy(updates, curve, **style)
        axes[1].semilogy(updates * seconds / TASKS[task], curve, **style)
    axes[0].set(title=task, xlabel="updates", ylabel="error on validation data")
    axes[1].set(title=task, xlabel="seconds of one core")


def main() -> None:
    """Trains what the table lacks; draws and prints what it has."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="(all)")
    add("--layers", nargs="+", choices=LAYERS, default=list(LAYERS), help="(all)")
    add("--table", type=Path, default=TABLE, help=f"({TABLE})")
    given = parser.parse_args()
    size = 12, 4.5 * len(given.tasks)
    picture, axes = plt.subplots(
        len(given.tasks), 2, figsize=size, squeeze=False, layout="constrained"
    )
    titles = ["layer", "error", "updates to half", "seconds to half"]
    for task, pair in zip(given.tasks, axes, strict=True):
        found = {layer: compare(task, layer, given.table) for layer in given.layers}
        lines = [[n, *figures(rows, TASKS[task])] for n, rows in found.items()]
        report(
            OUT / f"{task}.md", [*titles, "ms an update", "rate"], lines, f"{task}: "
        )
        draw(found, task, pair)
    picture.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right upper")
    picture.savefig(given.table.with_suffix(".png"), dpi=100, bbox_inches="tight")


if __name__ == "__main__":
    main()
