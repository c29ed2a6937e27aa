"""Measurements in separate processes."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from machine import ROOT

# Time limit for processes that wait for one another, far more than they need.
SECONDS = 3_600


def run(
    script: str,
    task: dict[str, Any],
    environment: Mapping[str, str] | None = None,
    limit: float | None = None,
) -> dict[str, Any]:
    """Runs a measurement in a separate process."""
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


def run_together(
    script: str, tasks: Sequence[dict[str, Any]], environment: Mapping[str, str]
) -> list[str]:
    """Runs processes that work together, such as the replicas of a network.

    If one fails, the others are killed, because they would wait for it.
    """
    path = str(Path(__file__).parent / script)
    end = time.monotonic() + SECONDS
    with contextlib.ExitStack() as stack:
        processes, files = [], []
        for task in tasks:
            files.append(
                stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
            )
            process = subprocess.Popen(
                [sys.executable, path, json.dumps(task)],
                env=environment,
                stdout=files[-1],
                stderr=subprocess.STDOUT,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            processes.append(process)
        while None in (ended := [process.poll() for process in processes]):
            if any(ended) or time.monotonic() > end:
                break
            time.sleep(0.1)
        said = []
        for file in files:
            file.seek(0)
            said.append(file.read())
    for code, text in zip(ended, said, strict=True):
        if code:
            raise RuntimeError(
                f"A process has failed with exit status {code}. Received: "
                f"{text[-2000:]}"
            )
    if None in ended:
        raise RuntimeError(
            f"The processes have taken more than {SECONDS} s. Received: {tasks}"
        )
    return said
