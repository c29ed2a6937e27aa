"""Measurements in processes of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from machine import ROOT


def run(
    script: str,
    task: dict[str, Any],
    environment: Mapping[str, str] | None = None,
    limit: float | None = None,
) -> dict[str, Any]:
    """Runs a measurement in a process of its own.

    Args:
        script: Name of a file beside this one. It reads the task in JSON from its
            standard input and prints the results after the word `RESULT`, a line.
        task: What it reads.
        environment: Variables to set for it. Default: `None`, none.
        limit: Seconds that it may take. Default: `None`, as many as it needs.

    Returns:
        By candidate what was measured.

    Raises:
        RuntimeError: If the process fails, or takes longer.
    """
    try:
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name(script))],
            input=json.dumps(task),
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(
            f"A measurement has taken more than {limit:g} s. Received: {task}"
        ) from None
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line.removeprefix("RESULT "))
    raise RuntimeError(
        f"A measurement has failed with exit status {done.returncode}. Received: "
        f"{task}\n{done.stderr[-2000:]}"
    )
