import json

import numpy as np
import pytest
import soundfile


@pytest.fixture(scope="session")
def speech():
    """Makes noise with the rhythm of speech: syllables, and pauses between."""

    def make(seconds, sample_rate=8000, seed=0):
        times = np.arange(int(seconds * sample_rate)) / sample_rate
        syllables = np.clip(np.sin(2 * np.pi * 3 * times), 0, None)
        pauses = np.sin(2 * np.pi * times / 1.5) > -0.5
        noise = np.random.default_rng(seed).standard_normal(len(times))
        return 0.1 * noise * syllables * pauses

    return make


@pytest.fixture(scope="session")
def scored_pairs(data_dir):
    """Real pairs with known scores; `signals` are what the scores take."""
    folder = data_dir / "speech_quality"
    pairs = json.loads((folder / "expected_scores.json").read_text())["pairs"]
    for pair in pairs:
        reference, rate = soundfile.read(folder / pair["reference"])
        estimate, _ = soundfile.read(folder / pair["degraded"])
        assert rate == pair["fs"]
        pair["signals"] = estimate, reference, rate
    return pairs
