"""Kills training runs, damages their files, starts two at once, and counts outcomes.

    python scripts/break_runs.py --kills 200 --flips 200

Checks three properties. A run that is killed at any moment and called again ends with
the same bits and the same files as an uninterrupted run. A run with a damaged file ends
with the same bits, or with an error that names the file. Of two runs in one folder, one
is refused, with an error that names the process of the other. The exit status is 1 if
any of these fails. Linux only; `KERAS_BACKEND` selects the backend.

Each run is a process forked from this one, which has imported everything and executed
nothing: neither TensorFlow nor JAX can be forked once it has started.
"""

import argparse
import collections
import hashlib
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import NamedTuple

import keras
import tensorflow as tf

from keras_ortho.tasks import adding
from keras_ortho.training import train

EPOCHS = 8
DAMAGES = ("a bit", "64 bytes", "cut off", "emptied")


class Outcome(NamedTuple):
    """How a run ended.

    Attributes:
        end: `"done"`, `"error"` or `"killed"`.
        text: A digest of its results, or the text of its error.
    """

    end: str
    text: str


class Worker:
    """A run in its own process, which waits for `go` before it touches its folder.

    Args:
        folder: Folder of the run.
        epochs: Number of epochs.
    """

    def __init__(self, folder: Path, epochs: int = EPOCHS) -> None:
        ready, told = os.pipe()
        begin, self._begin = os.pipe()
        self._results, results = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._begin)  # So that it ends if the parent process does.
                outcome = _train(folder, epochs, told, begin)
                os.write(results, "\n".join(outcome).encode())
            finally:
                os._exit(0)
        for file in (told, begin, results):
            os.close(file)
        os.read(ready, 1)
        os.close(ready)

    def go(self) -> None:
        """Starts the run."""
        os.write(self._begin, b"g")

    def kill(self, after: float) -> None:
        """Kills the run, unless it ends first.

        Args:
            after: Seconds from now.
        """
        select.select([self._results], [], [], after)
        os.kill(self.pid, signal.SIGKILL)  # The process exists until `waitpid`.

    def outcome(self) -> Outcome:
        """Waits for the run to end, and returns how it ended."""
        with os.fdopen(self._results, "rb") as file:
            end, _, text = file.read().decode().partition("\n")
        os.waitpid(self.pid, 0)
        os.close(self._begin)
        return Outcome(end or "killed", text)


def _train(folder: Path, epochs: int, told: int, begin: int) -> Outcome:
    keras.utils.set_random_seed(0)
    inputs, targets = adding.generate(24, 10, seed=0)
    data = tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(8)
    model = keras.Sequential(
        [
            keras.Input((10, 2)),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.1, seed=1),  # Its state is not a weight.
            keras.layers.Dense(1),
        ]
    )
    # Compilation would take longer than everything else.
    model.compile(keras.optimizers.Adam(0.03), "mse", run_eagerly=True)
    os.write(told, b"r")
    if not os.read(begin, 1):
        return Outcome("error", "never begun")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            history = train(
                model,
                data,
                folder,
                epochs=epochs,
                steps_per_epoch=2,  # Of three: epochs start at different batches.
                validation_data=data,
                save_seconds=0,
                settings={"units": 6},
                progress=False,
            )
    except (OSError, ValueError) as error:
        return Outcome("error", f"{type(error).__name__}: {error}")
    except BaseException:
        return Outcome("error", traceback.format_exc())
    saved = keras.saving.load_model(folder / "best.keras")
    text = repr([{**row, "seconds": 0} for row in history]).encode()
    weights = [w.tobytes() for m in (model, saved) for w in m.get_weights()]
    bits = hashlib.sha256(b"".join([text, *weights])).hexdigest()
    fallen = any("resumes from the previous state" in str(w.message) for w in caught)
    return Outcome("done", bits + " after falling back" * fallen)


def names(folder: Path) -> list[str]:
    """Lists the files in a folder and its subfolders."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in paths)


def run(folder: Path, epochs: int = EPOCHS) -> Outcome:
    """Executes a run to its end."""
    worker = Worker(folder, epochs)
    worker.go()
    return worker.outcome()


def damage(path: Path, how: str, chance: random.Random) -> None:
    """Damages a file.

    Args:
        path: The file.
        how: One of `DAMAGES`.
        chance: Random generator that chooses the position.
    """
    content = bytearray(path.read_bytes())
    place = chance.randrange(len(content))
    if how == "a bit":
        content[place] ^= 1 << chance.randrange(8)
    elif how == "64 bytes":
        for i in range(place, min(place + 64, len(content))):
            content[i] ^= 0xFF
    path.write_bytes(
        content[:place] if how == "cut off" else b"" if how == "emptied" else content
    )


class Trial:
    """Interrupts and damages runs, and counts the outcomes.

    Args:
        folder: An empty folder for the runs.
        seed: Seed of the random times and positions.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.counts: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []
        run(folder / "first")  # Loads the libraries' files once.
        worker = Worker(folder / "unbroken")
        started = time.monotonic()
        worker.go()
        self.expected = worker.outcome()
        self.seconds = time.monotonic() - started
        self.names = names(folder / "unbroken")
        if self.expected.end != "done":
            raise RuntimeError(f"The unbroken run: {self.expected}")

    def note(self, kind: str, right: bool, detail: object) -> None:
        """Counts an outcome, and prints it if it is wrong."""
        self.counts[kind if right else f"WRONG, {kind}"] += 1
        if not right:
            self.failures.append(f"{kind}: {detail}")
            print(self.failures[-1], flush=True)

    def kills(self, number: int) -> None:
        """Kills runs at random times, and restarts each until it is done."""
        done = 0
        while done < number:
            folder = self.folder / "killed"
            outcome, times = Outcome("killed", ""), 0
            while outcome.end == "killed":
                worker = Worker(folder)
                worker.go()
                if done < number:
                    worker.kill(self.chance.uniform(0, self.seconds))
                outcome = worker.outcome()
                done += outcome.end == "killed"
                times += outcome.end == "killed"
            right = outcome == self.expected and names(folder) == self.names
            self.note(
                "killed until done: the unbroken run's bits and files",
                right,
                (times, outcome, names(folder)),
            )
            shutil.rmtree(folder)
        self.counts["kills"] = done

    def flips(self, number: int) -> None:
        """Damages files of runs that have just begun, are half done, or are done."""
        states = {"begun": 1, "half": EPOCHS // 2, "done": EPOCHS}
        for name, epochs in states.items():
            run(self.folder / name, epochs)
        places = [
            (state, name) for state in states for name in names(self.folder / state)
        ]
        for i in range(number):
            state, name = places[i % len(places)]
            how = DAMAGES[(i + i // len(places)) % len(DAMAGES)]
            folder = self.folder / "damaged"
            shutil.copytree(self.folder / state, folder)
            damage(folder / name, how, self.chance)
            outcome = run(folder)
            bits, fallen, _ = outcome.text.partition(" after falling back")
            if outcome.end == "done":
                kind = f"damaged: the unbroken run's bits{fallen}"
                right = bits == self.expected.text
                # If the newest state is damaged, the run must notice it and fall back.
                newest = f"epoch-{states[state]:06d}/"
                right = right and (bool(fallen) or not name.startswith(newest))
            else:
                kind = "damaged: an error that names the file"
                right = str(folder / name) in outcome.text
                right = right and "Traceback" not in outcome.text
            self.note(kind, right, (state, name, how, outcome))
            shutil.rmtree(folder)

    def writers(self, number: int) -> None:
        """Starts two runs at once in one folder."""
        for _ in range(number):
            folder = self.folder / "shared"
            workers = [Worker(folder) for _ in range(2)]
            for worker in workers:
                worker.go()
            outcomes = [worker.outcome() for worker in workers]
            holder = 0 if outcomes[0].end == "done" else 1
            refused = outcomes[1 - holder]
            right = (
                outcomes[holder] == self.expected
                and refused.end == "error"
                and f"process {workers[holder].pid} on " in refused.text
                and str(folder) in refused.text
                and names(folder) == self.names
            )
            self.note("two at once: one is refused, and told by whom", right, outcomes)
            shutil.rmtree(folder)


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, number in (("kills", 200), ("flips", 200), ("writers", 20)):
        parser.add_argument(f"--{name}", type=int, default=number, help=f"({number})")
    parser.add_argument("--seed", type=int, default=0, help="of the chances (0)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), options.seed)
        for name in ("writers", "flips", "kills"):
            getattr(trial, name)(getattr(options, name))
            print(f"{name}: {dict(trial.counts)}", flush=True)
    print(f"{keras.backend.backend()}, a run takes {trial.seconds:.1f} s")
    for kind, count in sorted(trial.counts.items()):
        print(f"{count:6d}  {kind}")
    if trial.failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
