"""Estimates how long runs will take, from the records of others."""

import dataclasses
import math
import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.options import TASKS, read_task
from experiments.sections import Run
from experiments.settings import Settings

# Training examples of the tasks, without those set aside for validation; for the
# characters, windows of 50.
EXAMPLES = {
    "copying": 20_000,
    "adding": 100_000,
    "mnist": 55_000,
    "permuted-mnist": 55_000,
    "sequence-mnist": 55_000,
    "pixel-cifar10": 45_000,
    "noise-padded-cifar10": 45_000,
    "char-ptb": 100_226,
    "addition": 45_000,
}
# Steps of a sequence, for tasks where this is not an option.
STEPS = {
    "mnist": 784,
    "permuted-mnist": 784,
    "pixel-cifar10": 1_024,
    "noise-padded-cifar10": 1_000,
    "char-ptb": 50,
    "addition": 12,  # Questions of two or three digits and their answers.
    "ucr": 300,  # Most series; the records do not give their length.
    "speech": 300,  # Long utterances.
}


@dataclasses.dataclass(frozen=True)
class Cost:
    """The cost of a run.

    Attributes:
        task: Name of the task.
        model: Name of the layer.
        units: Its units, of all kinds together.
        steps: Steps of a sequence.
        batch_size: Sequences in a batch.
        updates: Updates of the run.
        seconds: Seconds per update, including validation; `None` if unknown.
    """

    task: str
    model: str
    units: int
    steps: int
    batch_size: int
    updates: int
    seconds: float | None = None


def planned(run: Run) -> Cost | None:
    """Reads the cost of a planned run, without the seconds, from its arguments.

    It is `None` for a comparison, whose runs are not counted in updates.
    """
    name = run.script.replace("_", "-")
    if name not in TASKS:
        return None
    # Folders that need not exist: nothing is read or written.
    out = Path(tempfile.gettempdir(), "keras_ortho_forecast")
    settings = read_task(name, "", run.options(out, Path("data")))
    return _cost(name, vars(settings), _updates(settings))


def recorded(record: Mapping[str, Any]) -> Cost | None:
    """Reads the cost of a run from its record; `None` for a comparison."""
    settings = record["settings"]
    if "updates" not in record or "task" not in settings:
        return None
    updates = record["updates"][-1]
    cost = _cost(settings["task"], settings, updates)
    return dataclasses.replace(cost, seconds=record["seconds"] / updates)


def seconds(run: Cost, costs: Iterable[Cost]) -> float | None:
    """Estimates how many seconds a run takes.

    The seconds per update are those of the most similar recorded run, of the same model
    if there is one, scaled by the length of the sequences and by the square root of
    units times batch size, as small matrix products leave cores idle. Runs on UCR,
    whose series have many lengths, are compared only with each other. The result is
    `None` if no similar run is recorded.
    """
    known = [cost for cost in costs if (cost.task == "ucr") == (run.task == "ucr")]
    if not known:
        return None
    near = min(known, key=lambda cost: _distance(run, cost))
    return run.updates * (near.seconds or 0.0) * _work(run) / _work(near)


def spread(costs: Sequence[Cost]) -> tuple[float, float] | None:
    """Measures how far off estimates are, from runs of other tasks or lengths.

    Returns:
        The factors between estimate and record, in either direction, that half and
        nine tenths of the runs do not exceed; `None` for fewer than two runs.
    """
    factors = []
    for cost in costs:
        others = [c for c in costs if c.task != cost.task or c.steps != cost.steps]
        estimate = seconds(cost, others)
        if estimate and cost.seconds:
            factors.append(
                math.exp(abs(math.log(estimate / cost.updates / cost.seconds)))
            )
    if len(factors) < 2:
        return None
    deciles = statistics.quantiles(factors, n=10, method="inclusive")
    return deciles[4], deciles[8]


def _cost(task: str, settings: Mapping[str, Any], updates: int) -> Cost:
    units = settings["units"]
    return Cost(
        task,
        settings["model"],
        sum(units) if isinstance(units, list | tuple) else units,
        (settings.get("length") or STEPS[task]) + 20 * (task == "copying"),
        settings["batch_size"],
        updates,
    )


def _updates(settings: Settings) -> int:
    if settings.steps:
        return settings.steps
    examples = settings.data.get("train_size") or EXAMPLES[settings.task]
    return settings.epochs * (examples // settings.batch_size)


def _work(cost: Cost) -> float:
    return cost.steps * math.sqrt(cost.units * cost.batch_size)


def _distance(run: Cost, other: Cost) -> tuple[bool, bool, float]:
    ratio = abs(math.log(_work(run) / _work(other)))
    return run.model != other.model, run.task != other.task, ratio


def duration(seconds: float) -> str:
    """Formats seconds as days, hours or minutes, to about two digits.

    Example:
    >>> duration(5_000), duration(400_000)
    ('1.4 hours', '4.6 days')
    """
    sizes = {"days": 86_400, "hours": 3_600, "minutes": 60}
    name = next((n for n, size in sizes.items() if seconds >= size), "minutes")
    number = seconds / sizes[name]
    return f"{number:.0f} {name}" if number >= 10 else f"{number:.1f} {name}"
