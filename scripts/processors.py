"""Runs the numerical tests as other processors would compute them.

    python scripts/processors.py [--setting haswell-jax] [--logs FOLDER] [FOLDER ...]

Each setting runs pytest with other BLAS kernels, with another vector instruction set,
without oneDNN, or with one thread. For each setting, prints the tests that failed and
those that came closest to their tolerance, as the share of it that they used. The exit
status is 1 if a test fails.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["tests/parametrizations", "tests/recurrence", "tests/layers", "tests/cells"]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_KINDS = {
    # Empty, because `tests/conftest.py` makes XLA compile faster if it is unset, as in
    # the settings that are not about XLA.
    "default": {"XLA_FLAGS": ""},
    "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "skylakex": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "zen": {"OPENBLAS_CORETYPE": "Zen"},
    "sse4": {"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"},
    "avx2": {"XLA_FLAGS": "--xla_cpu_max_isa=AVX2"},
    "avx512": {"XLA_FLAGS": "--xla_cpu_max_isa=AVX512"},
    "no-onednn": {"TF_ENABLE_ONEDNN_OPTS": "0"},
    "one-thread": ONE_THREAD,
}
SETTINGS = {
    f"{kind}-{backend}": {"KERAS_BACKEND": backend, **variables}
    for kind, variables in _KINDS.items()
    for backend in ("jax", "tensorflow")
    # JAX has no oneDNN.
    if (kind, backend) != ("no-onednn", "jax")
}


def run(name: str, folders: list[str], extra: list[str], logs: Path) -> bool:
    """Runs the tests under one setting, and prints and returns whether they pass."""
    room, log = logs / f"{name}.json", logs / f"{name}.log"
    environment = os.environ | SETTINGS[name]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.room"]
    command += ["-o", "enable_assertion_pass_hook=true", f"--room={room}"]
    # Prints numbers in full.
    command += ["-o", "verbosity_assertions=2"]
    marker = "not slow and backends" if name.endswith("jax") else "not slow"
    command += ["-m", marker, *extra, *folders]
    if name.startswith("one-thread"):
        command = ["taskset", "-c", "0", *command]
    with log.open("w") as file:
        code = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=file, stderr=file, check=False
        ).returncode
    lines = log.read_text().splitlines()
    print(f"{name}: {lines[-1] if lines else 'no output'}", flush=True)
    for line in lines:
        if line.startswith(("FAILED", "ERROR")):
            print(f"    {line}")
    used = json.loads(room.read_text()) if room.exists() else {}
    for test in sorted(used, key=lambda test: used[test], reverse=True)[:5]:
        print(f"    {used[test]:6.1%}  {test}")
    return code == 0


def main() -> None:
    """Runs all settings, or those that the options name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--setting",
        action="append",
        choices=SETTINGS,
        metavar="NAME",
        help=f"one or more of {', '.join(SETTINGS)}; default: all",
    )
    parser.add_argument("-k", default="", help="only tests that match, as pytest's")
    parser.add_argument("--logs", type=Path, help="keep pytest's output in this folder")
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    options = parser.parse_args()
    extra = ["-k", options.k] if options.k else []
    with tempfile.TemporaryDirectory() as scratch:
        logs = options.logs or Path(scratch)
        logs.mkdir(parents=True, exist_ok=True)
        passed = [
            run(name, options.folders, extra, logs)
            for name in options.setting or SETTINGS
        ]
    sys.exit(not all(passed))


if __name__ == "__main__":
    main()
