"""Plants faults one at a time, and reports which of them the tests find.

`tests/faults.toml` lists the faults: text in a file, its replacement, and the tests
that must then fail. Each fault is planted alone, in a copy of the working tree. Its
tests run if `make test` or `make test-jax` runs them, or the fault is one of slow
tests, without the data that a fresh clone lacks.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "faults.toml"
# Exit statuses of pytest: all tests passed, some failed.
PASSED, FAILED = 0, 1


@dataclass(frozen=True)
class Fault:
    """A fault, and the tests that must find it.

    Attributes:
        name: A short description of the fault.
        file: The file to change, relative to the project's root.
        old: The text to replace, which must occur in the file exactly once.
        new: The replacement.
        tests: Files or folders of tests.
        backend: The backend to run them on. Default: `"tensorflow"`.
        slow: Whether slow tests find it. Default: `False`.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    backend: str = "tensorflow"
    slow: bool = False

    def plant(self, root: Path) -> str:
        """Plants the fault in a tree."""
        path = root / self.file
        before = path.read_text("utf-8")
        if before.count(self.old) != 1:
            raise ValueError(
                f"`old` of the fault {self.name!r} must stand once in {self.file}. "
                f"Received: {before.count(self.old)} times {self.old!r}"
            )
        path.write_text(before.replace(self.old, self.new), "utf-8")
        return before


def read_faults(table: Path = TABLE) -> list[Fault]:
    """Reads the table of faults."""
    entries = tomllib.loads(table.read_text("utf-8"))["fault"]
    return [Fault(**entry | {"tests": tuple(entry["tests"])}) for entry in entries]


def run_tests(
    root: Path, tests: list[str], backend: str, limit: float, slow: bool = False
) -> int | None:
    """Runs tests of a tree up to the first failure."""
    environment = {k: v for k, v in os.environ.items() if k != "KERAS_ORTHO_DATA"}
    environment |= {"PYTHONPATH": str(root), "KERAS_BACKEND": backend}
    # Otherwise Python would use stale bytecode for a file that changes within a second
    # and keeps its length.
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"}
    marks = ["backends"] * (backend != "tensorflow") + ["not slow"] * (not slow)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, "-m", " and ".join(marks), *tests],
            cwd=root,
            env=environment,
            timeout=limit,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode not in (PASSED, FAILED):
        raise RuntimeError(f"pytest could not run:\n{done.stdout}\n{done.stderr}")
    return done.returncode


def copy_tree(destination: Path) -> None:
    """Copies the files that git tracks, or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(
            command, cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"Faults are planted in a git checkout: {error}") from error
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():  # A tracked file may have been deleted.
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, destination / name)
    # The installed package has it from the working tree, not from the copy.
    (destination / "keras_ortho" / "data_prep").symlink_to("../data_prep")


def check_unbroken(root: Path, faults: list[Fault], limit: float) -> None:
    """Checks that the tests pass without any fault."""
    for backend in sorted({fault.backend for fault in faults}):
        for slow in {f.slow for f in faults if f.backend == backend}:
            own = [f for f in faults if (f.backend, f.slow) == (backend, slow)]
            tests = sorted({test for fault in own for test in fault.tests})
            if run_tests(root, tests, backend, limit * len(tests), slow) != PASSED:
                raise RuntimeError(f"The unbroken tree fails: {backend}, {tests}")


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", help="words that a fault's name holds")
    parser.add_argument(
        "--limit", type=float, default=600, help="seconds for a file of tests: 600"
    )
    arguments = parser.parse_args()
    faults = [
        fault
        for fault in read_faults()
        if not arguments.only or any(word in fault.name for word in arguments.only)
    ]
    if not faults:
        parser.error(f"--only must name a fault. Received: {arguments.only}")
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_tree(root)
        check_unbroken(root, faults, arguments.limit)
        for number, fault in enumerate(faults, 1):
            started = time.monotonic()
            before = fault.plant(root)
            status = run_tests(
                root, list(fault.tests), fault.backend, arguments.limit, fault.slow
            )
            (root / fault.file).write_text(before, "utf-8")
            if status == PASSED:
                missed.append(fault)
            word = "NOT FOUND" if status == PASSED else "found"
            seconds = time.monotonic() - started
            print(f"{number:3} {word:9} {seconds:4.0f} s  {fault.name}", flush=True)
    print(f"{len(faults) - len(missed)} of {len(faults)} faults found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
