"""The number of processors."""

import os


def processor_count() -> int:
    """Returns the number of processors that this process may use, at least 1."""
    if hasattr(os, "process_cpu_count"):  # Since Python 3.13.
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # Linux.
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
