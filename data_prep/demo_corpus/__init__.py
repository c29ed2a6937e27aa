"""A small corpus of synthetic speech, laid out like TIMIT: no license, no download.

`python -m keras_ortho.data_prep.demo_corpus OUT` writes it. `text` chooses what each
speaker reads and transcribes it by the tables of `english.toml`, `prosody` draws the
speaker and the timing and melody, `synthesizer` makes the sound.
"""

import json
import os
import tempfile
from pathlib import Path

from keras_ortho.checks import check, check_count, is_integer
from keras_ortho.extras import require

from .prosody import MAX_SPEAKERS, draw_speaker
from .synthesizer import RATE, record
from .text import MAX_SENTENCES, generator, reading_list

VERSION = 1  # to be raised whenever the same arguments give other files
LABEL = "demo_corpus.json"  # the file that says what the folder holds
FORM = {"format": "NIST", "subtype": "PCM_16", "endian": "LITTLE"}


def write_corpus(
    out: str | os.PathLike[str],
    *,
    speakers: int = 12,
    sentences: int = 10,
    seed: int = 0,
    progress: bool = False,
) -> bool:
    """Synthesizes the corpus and writes it; returns whether it was not there already.

    Each sentence is `TRAIN/{region}/{speaker}/{sentence}.WAV`, 16-bit NIST SPHERE at 16
    kHz, with its text in `.TXT` and its phones in `.PHN`. The same arguments give the
    same files. The folder appears complete or not at all.
    """
    holds = is_integer(seed) and seed >= 0
    check(holds, "seed", "be an integer of at least 0", f"seed={seed!r}")
    for name, value, most in (
        ("speakers", speakers, MAX_SPEAKERS),
        ("sentences", sentences, MAX_SENTENCES),
    ):
        if check_count(name, value) > most:
            raise ValueError(f"`{name}` must be at most {most}. Received: {value}")
    root = Path(out).resolve()
    corpus = "synthetic speech for demonstration, laid out like TIMIT"
    numbers = {"speakers": speakers, "sentences": sentences, "seed": seed}
    label = {"corpus": corpus, "version": VERSION, **numbers}
    contents = json.dumps(label, indent=2) + "\n"
    if root.exists() and not (root.is_dir() and not any(root.iterdir())):
        path = root / LABEL
        found = path.read_text("utf-8") if path.is_file() else "no such corpus"
        if found == contents:
            return False
        raise FileExistsError(
            "`out` must be a new or empty folder, or hold this demo corpus. "
            f"Received: {root}, with {' '.join(found.split())}"
        )
    soundfile = require("soundfile", extra="speech")
    tqdm, total = require("tqdm", extra="speech").tqdm, speakers * sentences
    root.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix=f".{root.name}.", dir=root.parent) as aside,
        tqdm(total=total, unit=" sentences", disable=not progress) as bar,
    ):
        tree = Path(aside, root.name)
        for number in range(speakers):
            speaker = draw_speaker(number, seed)
            folder = tree / "TRAIN" / speaker.region / speaker.name
            folder.mkdir(parents=True)
            for i, (name, text) in enumerate(reading_list(number, sentences, seed)):
                samples, phones = record(text, speaker, generator(seed, 2, number, i))
                lines = [f"{begin} {end} {label}\n" for begin, end, label in phones]
                soundfile.write(folder / f"{name}.WAV", samples, RATE, **FORM)
                (folder / f"{name}.TXT").write_text(f"0 {len(samples)} {text}\n")
                (folder / f"{name}.PHN").write_text("".join(lines))
                bar.update()
        (tree / LABEL).write_text(contents, "utf-8")
        if root.exists():  # An empty folder, which Windows does not replace.
            root.rmdir()
        os.replace(tree, root)
    return True
