"""What tests of processes wait for."""

import time

import psutil


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
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
