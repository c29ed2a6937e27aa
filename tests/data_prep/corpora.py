"""Small copies of a corpus in TIMIT's layouts, made of noise."""

from pathlib import Path

import numpy as np
import soundfile

from keras_ortho.files import LOCK

WOMEN = ("faaa0", "fbbb0", "fccc0")
MEN = ("maaa0", "mbbb0", "mccc0")
SENTENCES = ("sa1", "si7", "sx1", "sx2")


def noise(seed: int, samples: int = 1600) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(-3000, 3000, samples).astype(np.int16)


def write_sphere(path: Path, samples: np.ndarray, rate: int = 16000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, rate, format="NIST", subtype="PCM_16")


def write_corpus(
    folder: Path,
    speakers: tuple[str, ...] = WOMEN + MEN,
    sentences: tuple[str, ...] = SENTENCES,
) -> list[Path]:
    """Writes `drN-speaker/sentence.wav`, each of another length."""
    paths = []
    for i, speaker in enumerate(speakers):
        for j, sentence in enumerate(sentences):
            path = folder / f"dr{i % 8 + 1}-{speaker}" / f"{sentence}.wav"
            write_sphere(path, noise(100 * i + j, 1000 + 200 * i + 128 * j))
            paths.append(path)
    return paths


def contents(folder: Path) -> dict[str, bytes]:
    """Everything in a folder but its lock, by name."""
    files = (path for path in sorted(folder.iterdir()) if path.name != LOCK)
    return {path.name: path.read_bytes() for path in files}
