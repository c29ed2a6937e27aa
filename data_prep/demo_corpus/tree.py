"""Writes the demo corpus as a tree of files like TIMIT's."""

import json
import os
import tempfile
from pathlib import Path

from keras_ortho.checks import is_integer
from keras_ortho.extras import require

from .filters import RATE
from .recording import Recording, record
from .sentences import MAX_SENTENCES, Sentence, reading_list
from .speakers import MAX_SPEAKERS, draw_speaker
from .streams import Stream, generator

VERSION = 1  # to be raised whenever the same arguments give other files
LABEL = "demo_corpus.json"  # the file that says what the folder holds


def write_corpus(
    out: str | os.PathLike[str],
    *,
    speakers: int = 12,
    sentences: int = 10,
    seed: int = 0,
    progress: bool = False,
) -> bool:
    """Synthesizes the corpus and writes it.

    Each sentence is `TRAIN/{region}/{speaker}/{sentence}.WAV`, 16-bit little-endian
    NIST SPHERE at 16 kHz, with its text in `.TXT` and its phones in `.PHN`, as in
    TIMIT. The same arguments give the same files; fewer speakers or sentences give
    some of the same. The folder appears complete or not at all.
    """
    _check("speakers", speakers, 1, MAX_SPEAKERS)
    _check("sentences", sentences, 1, MAX_SENTENCES)
    _check("seed", seed, 0, None)
    root = Path(out).resolve()
    corpus = "synthetic speech for demonstration, laid out like TIMIT"
    numbers = {"speakers": speakers, "sentences": sentences, "seed": seed}
    contents = {"corpus": corpus, "version": VERSION, **numbers}
    label = json.dumps(contents, indent=2) + "\n"
    if _is_written(root, label):
        return False
    tqdm, total = require("tqdm", extra="speech").tqdm, speakers * sentences
    root.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix=f".{root.name}.", dir=root.parent) as aside,
        tqdm(total=total, unit=" sentences", disable=not progress) as bar,
    ):
        tree = Path(aside, root.name)
        for number in range(speakers):
            speaker = draw_speaker(number, seed=seed)
            folder = tree / "TRAIN" / speaker.region / speaker.name
            folder.mkdir(parents=True)
            for i, sentence in enumerate(reading_list(number, sentences, seed=seed)):
                rng = generator(seed, Stream.UTTERANCE, number, i)
                write_recording(folder, sentence, record(sentence.text, speaker, rng))
                bar.update()
        (tree / LABEL).write_text(label, encoding="utf-8")
        if root.exists():  # An empty folder, which Windows does not replace.
            root.rmdir()
        os.replace(tree, root)
    return True


def write_recording(folder: Path, sentence: Sentence, recording: Recording) -> None:
    """Writes samples, text and phones to a folder, under the sentence's name."""
    soundfile = require("soundfile", extra="speech")
    path = folder / sentence.name
    form = {"format": "NIST", "subtype": "PCM_16", "endian": "LITTLE"}
    soundfile.write(path.with_suffix(".WAV"), recording.samples, RATE, **form)
    text = f"0 {len(recording.samples)} {sentence.text}\n"
    path.with_suffix(".TXT").write_text(text, encoding="ascii")
    lines = [f"{begin} {end} {label}\n" for begin, end, label in recording.phones]
    path.with_suffix(".PHN").write_text("".join(lines), encoding="ascii")


def _is_written(root: Path, label: str) -> bool:
    """Whether `root` holds the corpus of `label`; raises if it holds another thing."""
    if not root.exists():
        return False
    if not root.is_dir():
        raise FileExistsError(f"`out` must be a folder. Received the file: {root}")
    if not any(root.iterdir()):
        return False
    path = root / LABEL
    if not path.is_file():
        raise FileExistsError(
            "`out` must be a new or empty folder, or hold this corpus. "
            f"Received: {root}"
        )
    found = path.read_text(encoding="utf-8")
    if found != label:
        raise FileExistsError(
            "`out` holds a demo corpus made by another version or with other "
            f"arguments: {' '.join(found.split())}. Received: {root}"
        )
    return True


def _check(name: str, value: int, low: int, high: int | None) -> None:
    """Raises unless an integer lies from `low` to `high`."""
    if not is_integer(value) or value < low or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"`{name}` must be {limits}. Received: {value!r}")
