"""Measures how many seconds of audio `keras-ortho-data` processes per second.

The corpus is noise, modulated like speech, in NIST SPHERE files of three seconds. Run
it as `python benchmarks/speech_pipeline.py`; processes start before the measurement.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import soundfile
from measuring import OUT, in_turns, report

from keras_ortho.data_prep.pipeline import prepare

RATE, LENGTH, SENTENCES = 16_000, 3, 8


def make_corpus(folder: Path, seconds: float) -> int:
    """Writes utterances of at least eight speakers; returns their seconds."""
    random = np.random.default_rng(0)
    count = max(8 * SENTENCES, round(seconds / LENGTH))
    syllables = np.sin(2 * np.pi * 4 * np.arange(LENGTH * RATE) / RATE) ** 2
    for number in range(count):
        speaker, sentence = divmod(number, SENTENCES)
        letters = "".join(chr(ord("a") + int(digit)) for digit in f"{speaker // 2:03}")
        name = f"dr{speaker % 8 + 1}-{'fm'[speaker % 2]}{letters}0/sx{sentence}.wav"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        signal = 2_000 * syllables * random.standard_normal(len(syllables))
        soundfile.write(folder / name, signal.astype("int16"), RATE, format="NIST")
    return count * LENGTH


def main() -> None:
    """Runs the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    add = parser.add_argument
    add("--seconds", type=float, default=2_000, help="of audio (2000)")
    add("--workers", type=int, default=2, help="(2)")
    add("--repeats", type=int, default=3, help="(3)")
    add("--out", type=Path, default=OUT / "speech-pipeline.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        audio = make_corpus(folder / "corpus", options.seconds)
        runs = iter(range(options.repeats + 1))

        def run() -> None:
            records = folder / f"records{next(runs)}"
            prepare(folder / "corpus", records, workers=options.workers)

        run()  # Starts the workers.
        rate = audio / in_turns({"": run}, options.repeats)[""]
    titles = ["audio, s", "workers", "seconds of audio per second"]
    report(options.out, titles, [[str(audio), str(options.workers), f"{rate:.0f}"]])


if __name__ == "__main__":
    main()
