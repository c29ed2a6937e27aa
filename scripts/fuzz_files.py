"""Damages files of every format that the project reads, and reads them.

    python scripts/fuzz_files.py --mutations 100000 --seed 0

Flips bits, cuts, inserts and repeats bytes, replaces sizes and numbers, and splices
files. More than half of the changes to compressed or checksummed files are made to the
contents, before compression and checksums. A reader may refuse a file with an OSError
or a ValueError that names it. Anything else is a failure: another error, a dead
process, more than 10 seconds, or memory beyond that of the idle process by more than
64 MiB plus four times the size of the file. The readers run in a separate process; the
reader of the shards, which uses TensorFlow, runs in another.

Each case depends only on the seed, the format and its number: `--format flac --first
1234 --mutations 1` repeats one. The files that fail are kept in the folder `--keep`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# In memory if possible, because writing a file takes longer than reading it.
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main() -> int:
    """Runs the command.

    Returns:
        The exit status: 1 after failures.
    """
    options = _parser().parse_args()
    _import_readers_alone()
    from fuzzing.formats import FORMATS
    from fuzzing.worker import serve

    if options.worker:
        serve(FORMATS, options.worker, options.seed)
        return 0
    names = options.format or list(FORMATS)
    shares = _shares(options.mutations, {n: FORMATS[n].weight for n in names})
    print(
        f"{'format':15} {'cases':>7} {'read':>7} {'refused':>7} {'failed':>6}", end=""
    )
    print(f" {'ms':>6} {'slowest':>7} {'MiB':>5}")
    total, failed = 0, 0
    for tensorflow in (False, True):
        group = [name for name in names if FORMATS[name].tensorflow == tensorflow]
        if group:
            with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
                worker = Worker(Path(folder), options.seed)
                for name in group:
                    result = worker.run(name, options.first, shares[name])
                    _keep(name, result, FORMATS[name], options)
                    _print_row(name, result)
                    total += sum(result["counts"].values())
                    failed += len(result["failures"])
                worker.close()
    print(f"{total} changed files, {failed} failures (seed {options.seed})")
    return 1 if failed else 0


def _shares(whole: int, weights: dict[str, float]) -> dict[str, int]:
    """Divides a number into parts proportional to the weights, which sum to it."""
    total, so_far, given = sum(weights.values()), 0.0, 0
    shares = {}
    for name, weight in weights.items():
        so_far += weight
        shares[name] = round(whole * so_far / total) - given
        given += shares[name]
    return shares


class Worker:
    """A process that reads the files, and is restarted when it dies.

    Args:
        folder: An empty folder for its files.
        seed: Seed of all changes.
        program: The script that Python runs. Default: this file.
    """

    def __init__(
        self, folder: Path, seed: int, program: Sequence[str] = (__file__,)
    ) -> None:
        self.folder = folder
        self.command = [sys.executable, *program]
        self.command += ["--worker", str(folder), "--seed", str(seed)]
        (folder / "note").write_bytes(bytes(8))
        self.process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        environment = os.environ | {
            # One thread and one memory arena, so that the cost of a file shows.
            "MALLOC_ARENA_MAX": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        return subprocess.Popen(
            self.command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Decoders report every damaged file there.
            stderr=(self.folder / "errors").open("wb"),
            text=True,
        )

    def run(self, name: str, first: int, cases: int) -> dict[str, Any]:
        """Reads damaged files of a format.

        Args:
            name: The format.
            first: Number of the first case.
            cases: Number of cases.

        Returns:
            The results of `fuzzing.worker.run`, combined over restarts of the process.
        """
        start, stop = first, first + cases
        whole: dict[str, Any] = {"counts": {}, "failures": []}
        whole |= {"seconds": 0.0, "slowest": 0.0, "memory": 0}
        while start < stop and len(whole["failures"]) < 20:
            assert self.process.stdin
            assert self.process.stdout
            note = (start - 1) % 2**64
            (self.folder / "note").write_bytes(note.to_bytes(8, "little"))
            print(json.dumps([name, start, stop]), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
            if line:
                result, start = json.loads(line), stop
            else:
                status = self.process.wait()
                number = int.from_bytes((self.folder / "note").read_bytes(), "little")
                if number == note:
                    errors = (self.folder / "errors").read_text(errors="replace")
                    raise RuntimeError(f"The worker for {name} ended: {errors[-2000:]}")
                reason = f"the process ended with status {status}"
                result = {"counts": {"failed": 1}, "failures": [(number, reason)]}
                start = number + 1
                self.process = self._start()
            for key, count in result["counts"].items():
                whole["counts"][key] = whole["counts"].get(key, 0) + count
            whole["failures"] += result["failures"]
            whole["seconds"] += result.get("seconds", 0.0)
            for key in ("slowest", "memory"):
                whole[key] = max(whole[key], result.get(key, 0))
        return whole

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def _print_row(name: str, result: dict[str, Any]) -> None:
    counts = result["counts"]
    cases = sum(counts.values())
    print(f"{name:15} {cases:7}", end="")
    for key, width in (("read", 7), ("refused", 7), ("failed", 6)):
        print(f" {counts.get(key, 0):{width}}", end="")
    print(f" {1000 * result['seconds'] / max(cases, 1):6.2f}", end="")
    print(
        f" {1000 * result['slowest']:7.0f} {result['memory'] / 2**20:5.1f}", flush=True
    )
    for number, reason in result["failures"]:
        print(f"    case {number}: {reason}")


def _keep(name: str, result: dict[str, Any], form: Any, options: Any) -> None:
    from fuzzing.worker import case

    for number, _ in result["failures"]:
        options.keep.mkdir(parents=True, exist_ok=True)
        data = case(form.seeds(), f"{options.seed} {name} {number}")
        path = options.keep / f"{name.replace(' ', '-')}-{number}-{form.file}"
        path.write_bytes(data)


def _import_readers_alone() -> None:
    """Keeps Keras and TensorFlow out of the measured memory.

    The readers need neither, but importing their package imports both, unless
    `sys.modules` already holds it.
    """
    sys.path.insert(0, str(ROOT))
    package = types.ModuleType("keras_ortho")
    package.__path__ = [str(ROOT / "keras_ortho")]
    sys.modules["keras_ortho"] = package


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--mutations", type=int, default=100_000, help="files to change (100000)")
    add("--seed", type=int, default=0, help="chooses the changes (0)")
    add("--format", action="append", metavar="NAME", help="only this format")
    add("--first", type=int, default=0, help="number of the first change (0)")
    add("--keep", type=Path, default=Path("out/fuzz"), help="(out/fuzz)")
    add("--worker", type=Path, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
