"""Compares all layers: equal parameters, equal updates, equally many rates tried.

Run as `python benchmarks/comparison.py`, on JAX, it goes on where it was ended. Each
layer tries the same rates on each task, from a seed that is not reported; the best on
validation data trains from the others. Times need an idle machine and `taskset -c 0`.
"""

import argparse
import dataclasses
import statistics
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import learning
import matplotlib.pyplot as plt
import numpy as np
import recorded
from measuring import OUT, report

# Updates, and the column of `LAYERS` with the units.
TASKS = {"copying-300": (400, 1), "copying-1000": (200, 1), "adding-200": (1000, 1)}
TASKS |= {"adding-750": (500, 1), "first-step-2000": (200, 1), "pixels-10500": (300, 1)}
TASKS |= {"addition-2": (2800, 2), "ucr-CricketX": (600, 1), "ucr-FiftyWords": (600, 3)}
TASKS |= {"speech-75": (300, 4)}
TRIAL, SEEDS = 0, [10, 11, 12, 13, 14]
RATES = ["two:1e-3,1e-4", "two:3e-3,3e-4", "two:1e-2,1e-3"]
MAP = "'recurrent_kernel', ScaledCayley()"
# Units for 10 000 parameters with ten inputs, for 30 000 in addition's two layers, for
# 15 000 with FiftyWords' classes and for 40 000 with the frequencies of speech.
LAYERS = {
    "ScoRNN": ("ScoRNN({})", 128, 116, 119, 124),
    "ScuRNN": ("ScuRNN({})", 86, 67, 72, 68),
    "ENRNN": ("ENRNN({}, 20)", 104, 96, 98, 104),
    "GORU": ("GORU({})", 58, 58, 60, 60),
    "GORU, paper": ("GORU.from_paper({})", 64, 64, 64, 64),
    "ORNN": ("ORNN({})", 128, 116, 118, 124),
    "SVDRNN": ("SVDRNN({})", 92, 95, 93, 108),
    "NNRNN": ("NNRNN({})", 92, 95, 94, 108),
    "AntisymmetricRNN": ("AntisymmetricRNN({})", 128, 116, 119, 124),
    "orthogonal LSTM": (f"parametrize(keras.layers.LSTM({{}}), {MAP})", 61, 57, 62, 53),
    "orthogonal GRU": (f"parametrize(keras.layers.GRU({{}}), {MAP})", 70, 66, 71, 64),
    "LSTM": ("keras.layers.LSTM({})", 46, 47, 49, 48),
    "GRU": ("keras.layers.GRU({})", 53, 54, 56, 57),
    "SimpleRNN": ("keras.layers.SimpleRNN({})", 94, 96, 94, 108),
    "IRNN": ("irnn({})", 94, 96, 94, 108),
    "LRU": ("LRU({})", 28, 33, 32, 47),
    "LEM": ("keras.layers.RNN(LEMCell({}))", 46, 47, 49, 48),
}


def compare(name: str, layer: str, path: Path) -> tuple[learning.Rows, float]:
    """Chooses the rate of a layer, trains with it, and times an update of a network."""
    updates, column = TASKS[name]
    task = dataclasses.replace(learning.task_of(name), updates=updates)
    made = LAYERS[layer][0].format(LAYERS[layer][column])
    rates = [(rate, TRIAL) for rate in RATES]
    trials = learning.trained(path, name, task, made, rates, layer)
    best = min(trials, key=lambda row: np.nan_to_num(float(row["last"]), nan=np.inf))
    runs = [(best["rate"], seed) for seed in SEEDS]
    found = learning.trained(path, name, task, made, runs, layer)
    short = dataclasses.replace(task, updates=3 * learning.CHUNK, each=learning.CHUNK)
    alone = learning.trained(path, f"{name}, alone", short, made, runs[:1], layer)
    return found, float(alone[0]["seconds"]) / short.updates


def span(values: Iterable[float], digits: int) -> str:
    """Writes median and range, as 0.0012 (0.00021 to diverged), or of integers."""

    def write(x: float) -> str:  # Without an exponent, with zeros at the end.
        shown = f"{Decimal(f'{x:.{digits - 1}e}'):f}" if digits else f"{x:g}"
        return shown if x < 1e6 else "diverged"

    found = sorted(np.nan_to_num([*values], nan=np.inf, posinf=np.inf))
    middle, low, high = map(write, [statistics.median(found), found[0], found[-1]])
    return middle if low == high else f"{middle} ({low} to {high})"


def figures(rows: learning.Rows, digits: int) -> list[str]:
    """Writes last errors, the updates to half of that without memory, and the rate."""
    halves = sorted(int(row["to half"]) for row in rows if row["to half"])
    half = f"{len(halves)} of {len(rows)}, from {halves[0]}" if halves else "none"
    half = span(halves, 0) if len(halves) == len(rows) else half
    rate = rows[0]["rate"].partition(",")[0].removeprefix("two:")
    return [span((float(row["curve"].split()[-1]) for row in rows), digits), half, rate]


def draw(found: dict[str, Any], task: str, axes: Sequence[Any]) -> None:
    """Draws the median error of each layer, against updates and against seconds."""
    for number, (layer, (rows, seconds)) in enumerate(found.items()):
        curves = [[float(x) for x in row["curve"].split()] for row in rows]
        curve = np.median(curves, axis=0)
        updates = np.linspace(0, TASKS[task][0], len(curve) + 1)[1:]
        style = {"ls": "-" if number < 10 else "--", "label": layer}
        axes[0].semilogy(updates, curve, **style)
        axes[1].semilogy(updates * seconds, curve, **style)
    axes[0].set(title=task, xlabel="updates", ylabel="error on validation data")
    axes[1].set(title=task, xlabel="seconds of one core")


def main() -> None:
    """Trains what the table lacks; draws and prints what it has."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="(all)")
    add("--layers", nargs="+", choices=LAYERS, default=list(LAYERS), help="(all)")
    add("--table", type=Path, default=Path("results/comparison.csv"))
    given = parser.parse_args()
    for task in given.tasks:
        learning.task_of(task)  # Data that are missing come before hours of work.
    size = len(given.tasks), 2
    picture, axes = plt.subplots(*size, figsize=(12, 4.5 * size[0]), squeeze=False)
    picture.set_layout_engine("constrained")
    titles = ["layer", "error", "updates to half", "rate", "ms an update"]
    for task, pair in zip(given.tasks, axes, strict=True):
        found = {layer: compare(task, layer, given.table) for layer in given.layers}
        digits = 3 if task.startswith("speech") else 2
        text = {name: figures(rows, digits) for name, (rows, _) in found.items()}
        lines = [[n, *text[n], span([1000 * s], 2)] for n, (_, s) in found.items()]
        if (made := learning.task_of(task)).recorded:
            errors = span((recorded.simplest(made, seed) for seed in SEEDS), digits)
            lines.append([recorded.SIMPLEST, errors, *3 * [""]])
        report(OUT / f"{task}.md", titles, lines, f"{task}: ")
        draw(found, task, pair)
    picture.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right upper")
    picture.savefig(given.table.with_suffix(".png"), dpi=70, bbox_inches="tight")


if __name__ == "__main__":
    main()
