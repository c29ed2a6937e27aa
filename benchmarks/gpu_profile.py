"""Where the time of a compiled program goes: from its text, and from a trace of it."""

import glob
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

# What is no work of its own on a device.
_FREE = frozenset(
    ["parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"]
)
# What only holds other operations, which the trace has, too.
_HOLDING = ("while", "call", "conditional")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) .*\{$")
_OPERATION = re.compile(r"^\s+(?:ROOT )?%?([\w.-]+) = .*?[\s)]([a-z][a-z-]*)\(")
_CALLED = re.compile(r"to_apply=%?([\w.-]+)")
_BODY = re.compile(r"body=%?([\w.-]+)")
_TURNS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_SOURCE = re.compile(r'op_name="([^"]*)"')
# Of a list of operations so many, those that take longest.
_LONGEST = 10


def loops(text: str) -> list[dict[str, Any]]:
    """Counts what a turn of each loop of a program consists of.

    On a GPU an operation is a kernel to launch, or the call of a library.

    Args:
        text: A compiled program, as XLA writes it.

    Returns:
        Of each loop as `"source"` what it comes from, as `"turns"` how often it goes
        round, or `None`, and as `"operations"` how many there are of each kind. A loop
        within another one is an operation of it.
    """
    bodies = _operations(text)

    def count(name: str) -> Counter[str]:
        total: Counter[str] = Counter()
        for _, kind, line in bodies.get(name, []):
            called = _CALLED.search(line)
            if kind == "call" and called:
                total += count(called[1])
            elif kind not in _FREE:
                total[kind] += 1
        return total

    found = []
    for name in bodies:
        for _, kind, line in bodies[name]:
            body = _BODY.search(line)
            if kind == "while" and body:
                turns, source = _TURNS.search(line), _SOURCE.search(line)
                found.append(
                    {
                        "source": source[1] if source else "",
                        "turns": int(turns[1]) if turns else None,
                        "operations": dict(count(body[1]).most_common()),
                    }
                )
    return found


def _operations(text: str) -> dict[str, list[tuple[str, str, str]]]:
    """By computation name, kind and line of its operations."""
    bodies: dict[str, list[tuple[str, str, str]]] = {}
    current: list[tuple[str, str, str]] = []
    for line in text.splitlines():
        operation = _OPERATION.match(line)
        computation = _COMPUTATION.match(line)
        if operation:
            current.append((operation[1], operation[2], line))
        elif computation:
            current = bodies.setdefault(computation[1], [])
    return bodies


def trace(step: Callable[[], Any], folder: Path, text: str) -> dict[str, Any]:
    """Traces a step, and adds up what its operations have taken.

    Args:
        step: A compiled step, done when it returns.
        folder: Where the trace goes, which TensorBoard and Perfetto show.
        text: The program of the step, as XLA writes it.

    Returns:
        In seconds, `"busy"`, the sum over all operations; `"groups"`, what of it is
        within loops and not, forward and backward; and `"longest"`, the operations
        that have taken most, with what they come from. On a CPU operations run side by
        side: the sum may be more than the step takes.
    """
    step()
    with jax.profiler.trace(str(folder)):
        step()
    sources = {
        name: source[1]
        for body in _operations(text).values()
        for name, _, line in body
        if (source := _SOURCE.search(line))
    }
    seconds: Counter[str] = Counter()
    (*_, file) = sorted(
        glob.glob(f"{folder}/plugins/profile/*/*.trace.json.gz"),
        key=lambda path: Path(path).stat().st_mtime,
    )
    with gzip.open(file) as stream:
        events = json.load(stream)["traceEvents"]
    for event in _of_device(events):
        name = event["args"]["hlo_op"]
        if not name.startswith(_HOLDING):
            seconds[name] += 1e-6 * event["dur"]
    groups: Counter[str] = Counter()
    for name, time in seconds.items():
        groups[_group(sources.get(name, ""))] += time
    return {
        "busy": seconds.total(),
        "groups": dict(groups.most_common()),
        "longest": [
            {"operation": name, "seconds": time, "source": sources.get(name, "")}
            for name, time in seconds.most_common(_LONGEST)
        ],
    }


def _of_device(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The operations among the events of a trace, on a GPU without their launch."""
    named = [e for e in events if e.get("ph") == "M" and "name" in e.get("args", {})]
    devices = {
        event["pid"]
        for event in named
        if event["name"] == "process_name"
        and event["args"]["name"].startswith("/device:")
    }
    # What XLA adds up for TensorBoard is in the trace a second time.
    sums = {
        (event["pid"], event["tid"])
        for event in named
        if event["name"] == "thread_name"
        and event["args"]["name"].startswith(("XLA ", "Steps", "Framework", "Source"))
    }
    return [
        event
        for event in events
        if event.get("args", {}).get("hlo_op")
        and "dur" in event
        and (event["pid"], event["tid"]) not in sums
        and (not devices or event["pid"] in devices)
    ]


def _group(source: str) -> str:
    if not source:
        return "unknown"
    # JAX calls the way back through a function its transpose.
    way = "backward" if "transpose(" in source else "forward"
    return f"{'in' if '/while/' in source else 'outside'} loops, {way}"
