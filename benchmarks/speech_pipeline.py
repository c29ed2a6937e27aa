"""Measures how many seconds of audio `keras-ortho-data` processes per second.

The corpus is noise, modulated like speech, in NIST SPHERE files of three seconds. Run
it as `python benchmarks/speech_pipeline.py`; processes start before the measurement.
"""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import soundfile
from measuring import in_turns, parse, report

from keras_ortho.data_prep.pipeline import prepare

RATE, LENGTH, SENTENCES = 16_000, 3, 8


def make_corpus(folder: Path, seconds: int) -> int:
    """Writes utterances of at least eight speakers; returns their seconds."""
    random = np.random.default_rng(0)
    count = max(8 * SENTENCES, seconds // LENGTH)
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
    options = parse(__doc__, "speech-pipeline.md", seconds=2_000, workers=2, repeats=3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        audio = make_corpus(folder / "corpus", options.seconds)
        records = (folder / f"records{run}" for run in itertools.count())

        def run() -> None:
            prepare(folder / "corpus", next(records), workers=options.workers)

        run()  # Starts the workers.
        rate = audio / in_turns({"": run}, options.repeats)[""]
    titles = ["audio, s", "workers", "seconds of audio per second"]
    report(options.out, titles, [[str(audio), str(options.workers), f"{rate:.0f}"]])


if __name__ == "__main__":
    main()
