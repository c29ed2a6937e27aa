"""What tests of processes wait for."""

import time
from pathlib import Path


def until(holds, seconds=120):
    """Waits until a function gives something that holds, and returns that."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "It has taken too long"
        time.sleep(0.002)
    return found


def is_running(pid):
    """Whether a process has not ended; one that nobody has waited for has."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] != "Z"
