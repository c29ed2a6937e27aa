"""What the figures of a benchmark were measured on."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("jax", "keras", "keras-ortho", "numpy", "tensorflow", "torch")


def machine() -> dict[str, Any]:
    """Describes what the figures were measured on.

    Returns:
        Processor, cores, versions, commit and backend.
    """
    versions: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    processor = platform.processor()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    return {
        "processor": processor,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "backend": os.environ.get("KERAS_BACKEND", "tensorflow"),
        "commit": _commit(),
        "versions": versions,
    }


def versions(about: dict[str, Any]) -> str:
    """Names the packages that figures were measured with.

    Args:
        about: What `machine` gave.

    Returns:
        Their names and versions.
    """
    found = about["versions"].items()
    return ", ".join(f"{name} {number}" for name, number in found if number)


def _commit() -> str | None:
    describe = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(describe, capture_output=True, text=True, cwd=ROOT)
    except FileNotFoundError:  # There is no git.
        return None
    return done.stdout.strip() or None  # Or no checkout.
