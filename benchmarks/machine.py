"""Hardware and software of a benchmark."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from keras_ortho.processors import processor_count

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("jax", "keras", "keras-ortho", "numpy", "tensorflow", "torch")


def machine() -> dict[str, Any]:
    """Describes the machine and the software."""
    versions: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    processor = platform.processor()
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    return {
        "processor": processor,
        "cores": processor_count(),
        "python": platform.python_version(),
        "backend": os.environ.get("KERAS_BACKEND", "tensorflow"),
        "commit": _commit(),
        "versions": versions,
    }


def versions(about: dict[str, Any]) -> str:
    """Formats the versions of the installed packages."""
    found = about["versions"].items()
    return ", ".join(f"{name} {number}" for name, number in found if number)


def _commit() -> str | None:
    describe = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(describe, capture_output=True, text=True, cwd=ROOT)
    except FileNotFoundError:  # Git is not installed.
        return None
    return done.stdout.strip() or None  # `None` outside a checkout.
