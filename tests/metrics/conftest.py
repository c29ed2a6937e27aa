"""Signals that the tests of the metrics share."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def speech() -> Callable[..., np.ndarray]:
    """Makes noise with the rhythm of speech: syllables, and pauses between."""

    def make(seconds: float, sample_rate: int = 8000, seed: int = 0) -> np.ndarray:
        times = np.arange(int(seconds * sample_rate)) / sample_rate
        syllables = np.clip(np.sin(2 * np.pi * 3 * times), 0, None)
        pauses = np.sin(2 * np.pi * times / 1.5) > -0.5
        noise = np.random.default_rng(seed).standard_normal(len(times))
        return 0.1 * noise * syllables * pauses

    return make


@pytest.fixture(scope="session")
def quality_dir(data_dir: Path) -> Path:
    return data_dir / "speech_quality"


@pytest.fixture(scope="session")
def scored_pairs(quality_dir: Path) -> list[dict]:
    """Real pairs with known scores; `estimate` and `reference` hold the samples."""
    soundfile = pytest.importorskip("soundfile")
    pairs = json.loads((quality_dir / "expected_scores.json").read_text())["pairs"]
    for pair in pairs:
        pair["reference"], rate = soundfile.read(quality_dir / pair["reference"])
        pair["estimate"], _ = soundfile.read(quality_dir / pair["degraded"])
        assert rate == pair["fs"]
    return pairs
