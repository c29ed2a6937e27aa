"""The sounds of the pages: small, and as clean as the page says."""

import re
import wave
from pathlib import Path

import numpy as np
import pytest

from keras_ortho.metrics import si_sdr

DOCS = Path(__file__).resolve().parent.parent / "docs"
SCORES = {
    file: float(score)
    for score, file in re.findall(
        r"\[(-?[\d.]+)\]\((sounds/[\w-]+\.wav)\)", (DOCS / "denoising.md").read_text()
    )
}


def samples(path):
    with wave.open(str(path)) as sound:
        assert (sound.getnchannels(), sound.getframerate()) == (1, 8000)
        return np.frombuffer(sound.readframes(sound.getnframes()), "<i2")


def test_every_sound_is_small_and_on_the_page():
    sounds = {f"sounds/{path.name}" for path in (DOCS / "sounds").iterdir()}
    assert sounds == {*SCORES, "sounds/clean.wav"}
    assert len(SCORES) == 12
    assert all((DOCS / file).stat().st_size < 100_000 for file in sounds)


@pytest.mark.parametrize("file", SCORES)
def test_scores_are_those_of_the_sounds(file):
    score = si_sdr(samples(DOCS / file), samples(DOCS / "sounds/clean.wav"))
    # The page has one digit; 16 bits, of which the clean sound takes 14, change less.
    assert score == pytest.approx(SCORES[file], abs=0.06)
