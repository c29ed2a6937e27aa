"""How long runs will take, judged by the records of others."""

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

# Training examples of the tasks, less those that are set aside to validate; of the
# characters, those that a batch's rows go through in a window of 50.
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
# Steps of a sequence, where they are no option.
STEPS = {
    "mnist": 784,
    "permuted-mnist": 784,
    "pixel-cifar10": 1_024,
    "noise-padded-cifar10": 1_000,
    "char-ptb": 50,
    "addition": 12,  # Of questions of two or three digits and their answers.
    "ucr": 300,  # Of most; the records do not say of which.
    "speech": 300,  # Of long utterances.
}


@dataclasses.dataclass(frozen=True)
class Cost:
    """What an update of a run costs.

    Attributes:
        task: Name of the task.
        model: Name of the layer.
        units: Its units, of all kinds.
        steps: Steps of a sequence.
        batch_size: Sequences in a batch.
        updates: Updates of the run.
        seconds: Seconds of an update, validation with it; `None` if not known.
    """

    task: str
    model: str
    units: int
    steps: int
    batch_size: int
    updates: int
    seconds: float | None = None


def planned(run: Run) -> Cost | None:
    """Reads what a run is to do from its arguments, but for the seconds.

    Of an example that compares, whose runs are not counted in updates, that is `None`.
    """
    name = run.script.replace("_", "-")
    if name not in TASKS:
        return None
    # Folders that need not exist: nothing is read or written.
    out = Path(tempfile.gettempdir(), "keras_ortho_forecast")
    settings = read_task(name, "", run.options(out, Path("data")))
    return _cost(name, vars(settings), _updates(settings))


def recorded(record: Mapping[str, Any]) -> Cost | None:
    """Reads from its record what a run has cost; `None` of an example that compares."""
    settings = record["settings"]
    if "updates" not in record or "task" not in settings:
        return None
    updates = record["updates"][-1]
    cost = _cost(settings["task"], settings, updates)
    return dataclasses.replace(cost, seconds=record["seconds"] / updates)


def seconds(run: Cost, costs: Iterable[Cost]) -> float | None:
    """Estimates how long a run takes.

    The seconds of an update are those of the recorded run that is most alike, of the
    same model if there is one, in proportion to the length of the sequences and to the
    square root of units times batch: small products of matrices leave cores idle. Runs
    of UCR, of series of all lengths, are compared with each other only. `None` if
    nothing that is like it is recorded.
    """
    known = [cost for cost in costs if (cost.task == "ucr") == (run.task == "ucr")]
    if not known:
        return None
    near = min(known, key=lambda cost: _distance(run, cost))
    return run.updates * (near.seconds or 0.0) * _work(run) / _work(near)


def spread(costs: Sequence[Cost]) -> tuple[float, float] | None:
    """Says how far the estimates are off: each recorded run by those of other tasks.

    Returns:
        The factor between the estimate and the record, whichever is more, that half
        and nine tenths of the runs keep within; `None` for too few.
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
    """Writes a time in words, to two digits at most.

    Example:
    >>> duration(5_000), duration(400_000)
    ('1.4 hours', '4.6 days')
    """
    sizes = {"days": 86_400, "hours": 3_600, "minutes": 60}
    name = next((n for n, size in sizes.items() if seconds >= size), "minutes")
    number = seconds / sizes[name]
    return f"{number:.0f} {name}" if number >= 10 else f"{number:.1f} {name}"
