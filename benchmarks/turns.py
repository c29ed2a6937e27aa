"""Times calls in alternation, so that other load slows all of them equally."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tqdm import tqdm

Name = TypeVar("Name")


def in_turns(
    calls: Mapping[Name, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Name, list[float]]:
    """Times calls in alternation: each one once, then each one again, and so on."""
    seconds: dict[Name, list[float]] = {name: [] for name in calls}
    for _ in tqdm(range(repeats), unit="turn", disable=None):
        for name, call in calls.items():
            start = clock()
            call()
            seconds[name].append(clock() - start)
    return seconds


def medians_in_turns(
    steps: Mapping[str, Mapping[str, Callable[[], Any] | None]], repeats: int
) -> dict[str, dict[str, Any]]:
    """Times steps of several candidates and kinds in alternation."""
    calls = {
        (name, kind): call
        for name, kinds in steps.items()
        for kind, call in kinds.items()
        if call is not None
    }
    results: dict[str, dict[str, Any]] = {name: {} for name in steps}
    for (name, kind), seconds in in_turns(calls, repeats).items():
        results[name][kind] = statistics.median(seconds)
        results[name][f"{kind}_range"] = [min(seconds), max(seconds)]
    return results
