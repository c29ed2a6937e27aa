"""Mixtures of a given ratio, and what a room leaves behind."""

import numpy as np
import pytest

from keras_ortho.audio import SAMPLE_RATE, at_level, late_reverberation, mix

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("snr", [-5.0, 0.0, 12.5, 100.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_ratio_is_as_asked_for(snr, scale):
    speech, noise = RANDOM.normal(size=(2, 500))
    added = mix(speech, scale * noise, snr) - speech
    ratio = 10 * np.log10(np.sum(speech**2) / np.sum(added**2))
    # At 100 dB the difference has 1e-5 of the speech, to its rounding.
    assert ratio == pytest.approx(snr, abs=1e-8)
    # It is that noise, and no other.
    assert np.corrcoef(added, noise)[0, 1] == pytest.approx(1.0, abs=1e-8)


def test_integers_are_of_full_scale():
    speech = np.array([16384, -16384], "int16")
    np.testing.assert_allclose(
        mix(speech, np.array([1, 1], "int16"), 0.0), [1.0, 0.0], atol=1e-15
    )


@pytest.mark.parametrize("level", [-26.0, 0.0, 6.0])
def test_level_is_as_asked_for(level):
    speech = 3.0 * RANDOM.normal(size=500)
    found = at_level(speech, level)
    assert 10 * np.log10(np.mean(found**2)) == pytest.approx(level, abs=1e-12)
    np.testing.assert_allclose(found / found[0], speech / speech[0], rtol=1e-14)
    whole = (1000 * speech).astype("int16")
    np.testing.assert_allclose(at_level(whole, level), at_level(whole / 1.0, level))
    for silence in (0 * speech, speech[:0]):
        message = f"`speech` must not be silent. Received: {len(silence)} samples"
        with pytest.raises(ValueError, match=message):
            at_level(silence, level)


def test_the_level_of_what_is_very_faint():
    found = at_level(np.array([1e-200, -1e-200]), -20.0)
    np.testing.assert_allclose(found, [0.1, -0.1], rtol=1e-12)
    with pytest.raises(ValueError, match="`level` must be .* Received: level=nan"):
        at_level(np.ones(3), float("nan"))


def test_errors():
    ones = np.ones(3)
    for speech, noise, snr, message in [
        (ones, np.ones(4), 0.0, "`noise` must have as many samples.* Received: 4"),
        (ones, 0 * ones, 0.0, "`noise` must not be silent"),
        (0 * ones, ones, 0.0, "`speech` must not be silent"),
        (ones, ones, np.inf, "`snr` must be from -200 .* Received: snr=inf"),
        (ones, ones, 1e5, "`snr` must be from -200 .* Received: snr=100000.0"),
        (ones, ones, "3", "`snr` must be .* Received: snr='3'"),
        (ones * np.nan, ones, 0.0, "`speech` must be finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            mix(speech, noise, snr)


@pytest.mark.parametrize("seed", range(4))
def test_reverberation_comes_late_and_fades(seed):
    click = np.zeros(2 * SAMPLE_RATE)
    click[100] = 1
    tail = late_reverberation(click, np.random.default_rng(seed))
    begin = 100 + round(0.05 * SAMPLE_RATE)
    np.testing.assert_array_equal(tail[:begin], 0)
    energy = np.square(tail[begin:])
    # Schroeder's integral backwards, a straight line in dB: 60 dB in 0.3 to 1 s.
    level = 10 * np.log10(np.cumsum(energy[::-1])[::-1] / energy.sum() + 1e-12)
    time = np.arange(len(level)) / SAMPLE_RATE
    part = (level < -3) & (level > -25)
    slope, offset = np.polyfit(time[part], level[part], 1)
    assert 0.25 < -60 / slope < 1.2
    assert np.abs(level[part] - slope * time[part] - offset).max() < 3
