"""Reads damaged files one after the other, and measures the cost of each."""

import collections
import json
import mmap
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzzing.formats import Format, Seed, quiet
from fuzzing.mutations import LARGEST, mutate

MOST_FAILURES = 20  # of a format, before its other cases are skipped
SLACK = 64 * 2**20  # bytes a reader may use in addition to four times its file
LONGEST = 10  # seconds for a file

NOTE = "note"


def case(seeds: Sequence[Seed], key: str) -> bytes:
    """Makes a damaged file, the same for the same key.

    Args:
        seeds: Valid files.
        key: Seed of the changes.

    Returns:
        The bytes of the file.
    """
    others = [seed.content for seed in seeds]
    generator = random.Random(key)
    seed = generator.choice(seeds)
    if seed.wrap and generator.random() < 0.6:
        # Damages the contents; the file then gets correct checksums.
        return seed.wrap(mutate(generator, seed.content, others))
    return mutate(generator, seed.file, others)


def run(
    name: str,
    form: Format,
    cases: range,
    seed: int,
    folder: Path,
    *,
    limited: bool,
    note: Any = None,
) -> dict[str, Any]:
    """Reads damaged files of one format.

    Args:
        name: Name of the format.
        form: The format.
        cases: Numbers of the cases.
        seed: Seed of all changes.
        folder: An empty folder to write to.
        limited: Whether to limit the memory and time of this process.
        note: Buffer for the number of the current case, from which the parent learns
            the case if this process dies. Default: `None`, no buffer.

    Returns:
        Counts, failures, memory and time.
    """
    infinity = resource.RLIM_INFINITY
    if limited:
        resource.setrlimit(resource.RLIMIT_AS, (infinity, infinity))
    seeds = form.seeds()
    form.prepare(folder)
    path = folder / form.file
    for good in seeds:  # Keeps what the first read imports out of the measurement.
        path.write_bytes(good.file)
        form.read(path)
    counts: collections.Counter[str] = collections.Counter()
    failures = []
    slowest = 0.0
    highest = 0
    memory = _Memory()
    idle = memory.read("VmRSS")
    if limited and not form.tensorflow:
        # Counts memory that is reserved but never used, as systems without overcommit
        # do. TensorFlow's threads reserve too much for such a limit.
        most = memory.read("VmSize") + SLACK + 4 * LARGEST
        resource.setrlimit(resource.RLIMIT_AS, (most, infinity))
    started = time.perf_counter()
    for number in cases:
        if note is not None:
            note[:8] = number.to_bytes(8, "little")
        data = case(seeds, f"{seed} {name} {number}")
        path.write_bytes(data)
        if limited:
            memory.reset_peak()
            signal.setitimer(signal.ITIMER_REAL, LONGEST)
        before = time.perf_counter()
        outcome = _outcome(form, path)
        slowest = max(slowest, time.perf_counter() - before)
        if limited:
            signal.setitimer(signal.ITIMER_REAL, 0)
            taken = memory.read("VmHWM") - idle
            highest = max(highest, taken)
            if taken > SLACK + 4 * len(data):
                outcome = f"{taken} bytes of memory for a file of {len(data)}"
        counts[outcome if outcome in ("read", "refused") else "failed"] += 1
        if outcome not in ("read", "refused"):
            failures.append((number, outcome))
            if len(failures) == MOST_FAILURES:
                break
    memory.close()
    return {
        "counts": counts,
        "failures": failures,
        "seconds": time.perf_counter() - started,
        "slowest": slowest,
        "memory": highest,
    }


def _outcome(form: Format, path: Path) -> str:
    """Returns `"read"`, `"refused"` for a documented error, or what else happened."""
    try:
        with quiet():
            form.read(path)
    except (OSError, ValueError) as error:
        if path.stem in str(error):
            return "refused"
        return f"an error that does not name the file: {error!r:.300}"
    except BaseException as error:
        return f"{error!r:.300}"
    return "read"


class _Memory:
    """Memory usage of this process, as reported by Linux."""

    def __init__(self) -> None:
        self._reset = os.open("/proc/self/clear_refs", os.O_WRONLY)
        self._status = os.open("/proc/self/status", os.O_RDONLY)

    def reset_peak(self) -> None:
        """Resets the peak to the resident memory."""
        os.write(self._reset, b"5")

    def read(self, key: str) -> int:
        """Reads `VmSize`, `VmRSS` or the peak, `VmHWM`, in bytes."""
        text = os.pread(self._status, 4096, 0)
        return 1024 * int(text[text.index(f"{key}:".encode()) :].split()[1])

    def close(self) -> None:
        """Closes the files in `/proc`."""
        os.close(self._reset)
        os.close(self._status)


def serve(formats: dict[str, Format], folder: Path, seed: int) -> None:
    """Executes the cases that each line of standard input names, and prints results.

    Args:
        formats: The formats by name.
        folder: A folder with a file `note` of 8 bytes, for the number of the case.
        seed: Seed of all changes.
    """
    with (folder / NOTE).open("r+b") as file:
        note = mmap.mmap(file.fileno(), 8)
    for line in sys.stdin:
        name, start, stop = json.loads(line)
        place = folder / name.replace(" ", "-")
        place.mkdir(exist_ok=True)
        cases = range(start, stop)
        result = run(name, formats[name], cases, seed, place, limited=True, note=note)
        print(json.dumps(result), flush=True)
