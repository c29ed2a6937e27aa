"""The sounds of the speech page: small, and as clean as the page says."""

import re
from pathlib import Path

import pytest

from keras_ortho.audio import read_audio
from keras_ortho.metrics import si_sdr

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "speech.md").read_text()
SCORES = re.findall(r"\[(-?[\d.]+)\]\((sounds/[\w-]+\.wav)\)", PAGE)


def test_sounds_and_their_scores():
    sounds = {f"sounds/{path.name}" for path in (DOCS / "sounds").iterdir()}
    assert sounds == {*(file for _, file in SCORES), "sounds/clean.wav"}
    clean, _ = read_audio(DOCS / "sounds/clean.wav")
    for score, file in SCORES:
        assert (DOCS / file).stat().st_size < 100_000
        found = si_sdr(read_audio(DOCS / file)[0], clean)
        # The page has one digit; 16 bits, of which the clean sound takes 14, change
        # less.
        assert found == pytest.approx(float(score), abs=0.06), file
