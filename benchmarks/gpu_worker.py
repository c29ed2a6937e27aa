"""Runs a task of `gpu.py` in its own process.

Reads the task in JSON from standard input, and prints `RESULT` and a line of JSON.
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

# Phrases in the out-of-memory errors of JAX and PyTorch.
OUT_OF_MEMORY = ("RESOURCE_EXHAUSTED", "out of memory")


def describe() -> dict[str, Any]:
    """Describes the devices of JAX."""
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
    """Runs a function of a candidate that may fail, for lack of memory for example."""
    try:
        return function(), {}
    except (ImportError, NotMeasuredError) as error:
        return None, {"skipped": str(error)}
    except Exception as error:
        # A failure is stored in the candidate's row; the others are still measured.
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        if isinstance(error, MemoryError) or any(
            sign in str(error) for sign in OUT_OF_MEMORY
        ):
            reason = "out of memory"
        traceback.print_exc()
    gc.collect()  # Frees its memory for the other candidates.
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
    """Measures the steps of the candidates in alternation."""
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
    """Measures the peak memory of the device, or of the process on a CPU."""

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
    """Profiles a training step."""
    candidate, why = attempt(lambda: make(name, shape, precision))
    if candidate is None:
        return why
    program = candidate.programs["train"]
    costs = program.cost_analysis() or {}
    return {
        "folder": str(folder),
        "loops": loops(program.as_text()),
        # XLA counts only one iteration of a loop.
        "flops": costs.get("flops"),
        "bytes": costs.get("bytes accessed"),
        **trace(candidate.steps["train"], folder, program.as_text()),
    }


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Runs a task."""
    if task["kind"] == "about":
        return describe()
    # A cached program from an earlier run would distort the compile time.
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
    """Runs the task on standard input and prints the results."""
    print("RESULT " + json.dumps(run(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
