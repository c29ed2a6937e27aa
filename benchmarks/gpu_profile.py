"""Profiles a compiled program, from its text and from a trace."""

import glob
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

# Operations that take no time on a device.
_FREE = frozenset(
    ["parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"]
)
# Operations that only contain others, which the trace lists as well.
_HOLDING = ("while", "call", "conditional")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) .*\{$")
_OPERATION = re.compile(r"^\s+(?:ROOT )?%?([\w.-]+) = .*?[\s)]([a-z][a-z-]*)\(")
_CALLED = re.compile(r"to_apply=%?([\w.-]+)")
_BODY = re.compile(r"body=%?([\w.-]+)")
_TURNS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_SOURCE = re.compile(r'op_name="([^"]*)"')
# Number of the longest operations to list.
_LONGEST = 10


def loops(text: str) -> list[dict[str, Any]]:
    """Counts the operations in one iteration of each loop of a program.

    On a GPU, an operation is a kernel launch or a library call.
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
    """Lists name, kind and line of the operations, by computation."""
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
    """Traces a step, and sums the times of its operations."""
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
    """Selects the operations of a trace, on a GPU without their launches."""
    named = [e for e in events if e.get("ph") == "M" and "name" in e.get("args", {})]
    devices = {
        event["pid"]
        for event in named
        if event["name"] == "process_name"
        and event["args"]["name"].startswith("/device:")
    }
    # Summary lines for TensorBoard repeat the operations.
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
    # JAX names the backward pass of a function its transpose.
    way = "backward" if "transpose(" in source else "forward"
    return f"{'in' if '/while/' in source else 'outside'} loops, {way}"
