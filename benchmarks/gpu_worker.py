"""Measures what `gpu.py` asks for, in a process of its own.

Reads a task in JSON from standard input; prints a line of JSON.
"""

import functools
import gc
import importlib.metadata
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from gpu_candidates import (
    MIB,
    Candidate,
    NotMeasuredError,
    kernel_candidate,
    make,
    set_precision,
)
from gpu_check import check
from gpu_names import TORCH
from gpu_profile import loops, trace
from measurement import peak_over_idle
from shapes import Shape
from turns import medians_in_turns

# What says that memory has run out: of JAX and of PyTorch.
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory")


def describe() -> dict[str, Any]:
    """Says what JAX runs on.

    Returns:
        Platform, name and number of the devices, and the versions of what computes.
    """
    device = jax.devices()[0]
    versions = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"] or ""
        if name.startswith(("jax", "nvidia-", "torch")):
            versions[name] = distribution.version
    return {
        "platform": device.platform,
        "device": device.device_kind,
        "devices": len(jax.devices()),
        "runtime": device.client.platform_version,
        "versions": dict(sorted(versions.items())),
    }


def attempt(function: Callable[[], Any]) -> tuple[Any, dict[str, str]]:
    """Runs a function for a candidate that may not fit here.

    Args:
        function: A function without arguments.

    Returns:
        What it returns, and nothing; or `None`, and as `"skipped"` or `"failed"` why.
    """
    try:
        return function(), {}
    except (ImportError, NotMeasuredError) as error:
        return None, {"skipped": str(error)}
    except Exception as error:
        # Whatever ends one candidate, the others are measured, and its row says why.
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        if isinstance(error, MemoryError) or any(
            sign in str(error) for sign in OUT_OF_MEMORY
        ):
            reason = "out of memory"
        traceback.print_exc()
    gc.collect()  # What it held would be missing to the others.
    return None, {"failed": reason}


def warmed(make_one: Callable[[], Candidate]) -> Candidate:
    """Makes a candidate and runs each of its steps twice."""
    candidate = make_one()
    for _ in range(2):
        for step in candidate.steps.values():
            if step is not None:
                step()
    return candidate


def measure_times(
    candidates: dict[str, Callable[[], Candidate]], repeats: int
) -> dict[str, Any]:
    """Measures candidates in turns.

    Args:
        candidates: By name what makes each.
        repeats: How often each step is measured.

    Returns:
        By candidate its medians in seconds and what is known of it, or why there are
        none.
    """
    results: dict[str, dict[str, Any]] = {}
    steps = {}

    for name, make_one in candidates.items():
        candidate, results[name] = attempt(functools.partial(warmed, make_one))
        if candidate is not None:
            steps[name] = candidate.steps
            results[name] |= candidate.about
    for name, medians in medians_in_turns(steps, repeats).items():
        results[name] |= medians
    return results


def measure_memory(name: str, shape: Shape, precision: str) -> dict[str, Any]:
    """Measures the peak of memory: of the device, or of the process on a CPU.

    Args:
        name: Which candidate; alone, as a process has one peak.
        shape: The shape.
        precision: The precision.

    Returns:
        The peak of training in MiB: on a GPU all that is held, on a CPU what comes
        upon the idle process. Or why there is none.
    """

    def measure() -> float:
        train = make(name, shape, precision).steps["train"]
        if train is None:
            raise NotMeasuredError("it has no training step")
        over_idle = peak_over_idle(train)
        if name in TORCH:
            import torch

            if torch.cuda.is_available():
                return torch.cuda.max_memory_allocated() / MIB
            return over_idle
        statistics = jax.devices()[0].memory_stats()
        return statistics["peak_bytes_in_use"] / MIB if statistics else over_idle

    peak, why = attempt(measure)
    return why or {"memory_mib": peak}


def measure_profile(
    name: str, shape: Shape, precision: str, folder: Path
) -> dict[str, Any]:
    """Says where the time of a training step goes.

    Args:
        name: Which candidate, one of JAX's.
        shape: The shape.
        precision: The precision.
        folder: Where the trace is written.

    Returns:
        The loops of the program, what its operations took, and the folder. Or why
        there is nothing.
    """
    candidate, why = attempt(lambda: make(name, shape, precision))
    if candidate is None:
        return why
    program = candidate.programs["train"]
    costs = program.cost_analysis() or {}
    return {
        "folder": str(folder),
        "loops": loops(program.as_text()),
        # XLA counts a loop as one turn of it.
        "flops": costs.get("flops"),
        "bytes": costs.get("bytes accessed"),
        **trace(candidate.steps["train"], folder, program.as_text()),
    }


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Does a task.

    Args:
        task: One of `gpu_names.tasks`, with what `gpu.py` adds; or of `"kind"`
            `"about"` or `"check"`.

    Returns:
        By candidate what was found.
    """
    if task["kind"] == "about":
        return describe()
    # A program from an earlier run would have no compile time.
    jax.config.update("jax_enable_compilation_cache", task["kind"] == "check")
    if task["kind"] == "check":
        shapes = {name: tuple(shape) for name, shape in task["shapes"].items()}
        return {name: check(name, shapes) for name in task["names"]}
    precision, names = task["precision"], task["names"]
    set_precision(precision)
    shape = Shape(task["units"], task["steps"], task["batch"], jit_compile=True)
    if task["kind"] == "memory":
        return {name: measure_memory(name, shape, precision) for name in names}
    if task["kind"] == "profile":
        folder = Path(task["folder"])
        return {name: measure_profile(name, shape, precision, folder) for name in names}
    candidates: dict[str, Callable[[], Candidate]] = {
        name: functools.partial(kernel_candidate, name, shape.units)
        if task["kind"] == "kernel"
        else functools.partial(make, name, shape, precision)
        for name in names
    }
    return measure_times(candidates, task["repeats"])


def main() -> None:
    """Reads a task, does it, prints the results."""
    print("RESULT " + json.dumps(run(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
