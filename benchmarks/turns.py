"""Times of calls that take turns, so that what else runs slows all alike."""

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
    """Times calls, already compiled, one after the other, and again.

    Args:
        calls: By name functions that return when they are done.
        repeats: How often each is called.
        clock: What reads the time. Default: `time.perf_counter`.

    Returns:
        By name the seconds of each call.
    """
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
    """Times steps of several kinds in turns.

    Args:
        steps: By candidate and kind the calls, or `None`, where there is none.
        repeats: How often each is called.

    Returns:
        By candidate, of each kind the median in seconds, and as `"..._range"` the
        least and the most.
    """
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
