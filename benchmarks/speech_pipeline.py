"""Measures the speech pipeline in seconds of audio per second, from files to records.

Makes a corpus of noise modulated like speech, in NIST SPHERE files of about three
seconds, and runs the pipeline of `keras-ortho-data` on it: discovery, hashing,
decoding, resampling, transform, records and manifest. The worker processes start and
warm up before the measurement, and the files are in the page cache. The time of the
whole command, including the start of its processes, is reported separately.

It sets the processors that it may use, as only Linux can.

Run it as `python benchmarks/speech_pipeline.py [--seconds 2000] [--workers 2]`.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import soundfile
from options import positive_float, positive_int

from keras_ortho.data_prep.pipeline import prepare
from keras_ortho.data_prep.storage import write_json

ROOT = Path(__file__).resolve().parents[1]

RATE = 16_000
UTTERANCE_SECONDS = 3.0
SENTENCES = 8  # utterances of a speaker
GOAL = 1_000  # seconds of audio per second
PACKAGES = ("librosa", "numpy", "scipy", "soundfile", "tensorflow")


def make_corpus(folder: Path, seconds: float, seed: int) -> float:
    """Writes noise modulated at the rate of syllables, in TIMIT's layout."""
    rng = np.random.default_rng(seed)
    count = max(8 * SENTENCES, round(seconds / UTTERANCE_SECONDS))
    total = 0
    for number in range(count):
        speaker, sentence = divmod(number, SENTENCES)
        samples = int(RATE * UTTERANCE_SECONDS * rng.uniform(0.5, 1.5))
        syllables = np.sin(2 * np.pi * 4 * np.arange(samples) / RATE) ** 2
        signal = 2_000 * syllables * rng.standard_normal(samples)
        name = f"{'fm'[speaker % 2]}{_letters(speaker // 2)}0"
        path = folder / f"dr{speaker % 8 + 1}-{name}" / f"sx{sentence}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, signal.astype(np.int16), RATE, format="NIST")
        total += samples
    return total / RATE


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + number // 26**place % 26) for place in range(3))


def measure(seconds: float, workers: int, repeats: int) -> dict[str, object]:
    """Times the pipeline."""
    cores = sorted(os.sched_getaffinity(0))[:workers]
    os.sched_setaffinity(0, cores)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        audio = make_corpus(folder / "corpus", seconds, seed=0)
        times = []
        # The first run starts the workers and warms them up.
        for repeat in range(-1, repeats):
            start = time.perf_counter()
            prepare(folder / "corpus", folder / f"records{repeat}", workers=workers)
            times.append(time.perf_counter() - start)
        del times[0]
        start = time.perf_counter()
        command = [
            sys.executable,
            "-m",
            "keras_ortho.data_prep",
            "--workers",
            str(workers),
        ]
        command += [str(folder / "corpus"), str(folder / "records")]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        whole = time.perf_counter() - start
    return {
        "audio_seconds": audio,
        "workers": workers,
        "cores": len(cores),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "seconds": times,
        "audio_seconds_per_second": audio / statistics.median(times),
        "audio_hours_per_core_hour": audio / statistics.median(times) / len(cores),
        "goal": GOAL,
        "command_seconds_with_start": whole,
    }


def main() -> None:
    """Runs the benchmark, prints the result and writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=positive_float, default=2_000)
    parser.add_argument("--workers", type=positive_int, default=2)
    parser.add_argument("--repeats", type=positive_int, default=3)
    parser.add_argument(
        "--out", type=Path, default=ROOT / "out" / "benchmarks" / "speech_pipeline.json"
    )
    options = parser.parse_args()
    result = measure(options.seconds, options.workers, options.repeats)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_json(options.out, result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
