"""Tests of the active speech level."""

import numpy as np
import pytest

from keras_ortho.metrics.active_level import _band_pass, active_level
from tests.metrics import p56


def tone(frequency: float, seconds: float, sample_rate: int) -> np.ndarray:
    times = np.arange(int(seconds * sample_rate)) / sample_rate
    return np.sin(2 * np.pi * frequency * times)


@pytest.mark.parametrize(
    ("frequency", "sample_rate", "loss"),
    [
        (200, 8000, 0.25),
        (200, 16000, 0.25),
        (1000, 8000, 0.0),
        (1000, 16000, 0.0),
        (5500, 16000, 0.25),
    ],
)
def test_pass_band(frequency, sample_rate, loss):
    settled = _band_pass(tone(frequency, 2, sample_rate), sample_rate)[sample_rate:]
    # A whole number of periods, so that the power of the sine is exactly 1/2.
    gain = 10 * np.log10(2 * np.mean(settled**2))
    assert gain == pytest.approx(-loss, abs=1e-3)


@pytest.mark.parametrize("rate", [8000, 11500, 16000])
@pytest.mark.parametrize("voicebox", ["2019", "2022"])
def test_definition(rate, voicebox, speech):
    signal = speech(2, rate)
    found = active_level(signal, rate, voicebox=voicebox)
    level, active = p56.active(signal, rate, voicebox)
    # Recurrences of 30 000 steps, in another order of operations.
    assert found.level == pytest.approx(level, abs=1e-9)
    np.testing.assert_array_equal(found.active, active)


def test_versions(speech):
    """Today's level goes with the signal; the older one has bins that stay."""
    signal = speech(3)
    gains = np.arange(0, 3, 0.5)
    levels = {
        voicebox: [
            active_level(signal * 10 ** (gain / 20), 8000, voicebox=voicebox).level
            - gain
            for gain in gains
        ]
        for voicebox in ("2019", "2022")
    }
    assert np.ptp(levels["2022"]) < 1e-9
    assert 1e-4 < np.ptp(levels["2019"]) < 0.1
    assert active_level(signal, 8000).level == levels["2019"][0]
    np.testing.assert_allclose(levels["2022"], levels["2019"], atol=0.1)


def test_no_more_than_all_is_active():
    """The envelope goes on after the end."""
    assert active_level(tone(1000, 0.1, 8000), 8000).activity == 1.0


@pytest.mark.parametrize("samples", [0, 10, 8000])
def test_silence(samples):
    level, activity, active = active_level(np.zeros(samples), 8000)
    assert level == -np.inf
    assert activity == 0
    assert active.shape == (samples,)
    assert not active.any()
