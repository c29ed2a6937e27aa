"""The number of processors."""

import os


def processor_count() -> int:
    """Returns the number of processors that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):  # Linux.
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
