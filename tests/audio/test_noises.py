import numpy as np
import pytest
from scipy.signal import find_peaks, periodogram, welch

from keras_ortho.audio import NOISES, SAMPLE_RATE, babble, excerpt, mix
from keras_ortho.audio.noises import at_level, late_reverberation

SEEDS = pytest.mark.parametrize("seed", range(4))


def generator(seed=0):
    return np.random.default_rng(seed)


def noise_of(name, seed=0):
    return NOISES[name](20 * SAMPLE_RATE, generator(seed))


def density(noise):
    """Power density in dB, at frequencies 16 Hz apart."""
    frequencies, power = welch(noise, SAMPLE_RATE, nperseg=512)
    return frequencies, 10 * np.log10(power + 1e-20)


@pytest.mark.parametrize("name", NOISES)
def test_a_seed_says_all(name):
    for samples in (1, 300, 16001):
        noise = NOISES[name](samples, generator())
        assert noise.shape == (samples,)
        assert np.isfinite(noise).all()
        np.testing.assert_array_equal(NOISES[name](samples, generator()), noise)
    assert (NOISES[name](samples, generator(1)) != noise).any()


@pytest.mark.parametrize(("name", "slope"), [("white", 0.0), ("pink", -3.0103)])
def test_decibels_an_octave(name, slope):
    frequencies, power = density(noise_of(name))
    octaves = np.log2(frequencies[8:224])  # 125 Hz to 3.5 kHz
    # Welch's estimate has 625 windows a bin: a standard error of 0.17 dB each, and of
    # 0.01 dB an octave over the 216 bins.
    assert np.polyfit(octaves, power[8:224], 1)[0] == pytest.approx(slope, abs=0.1)


@SEEDS
def test_hum_is_of_the_mains(seed):
    power = periodogram(noise_of("hum", seed), SAMPLE_RATE)[1]
    peaks = find_peaks(power, height=power.max() * 1e-3)[0] / 20
    pitch = peaks[0]
    assert 49.4 < pitch < 50.6 or 59.4 < pitch < 60.6
    # At multiples of it alone; a bin of the periodogram is 0.05 Hz wide.
    ratios = peaks / pitch
    np.testing.assert_allclose(ratios, np.round(ratios), atol=0.1)
    assert len(peaks) >= 5


def test_wind_is_low_and_in_gusts():
    noise = noise_of("wind")
    frequencies, power = density(noise)  # The first bin has lost its mean.
    assert power[1:7].min() > power[frequencies > 2000].max() + 30
    loudness = np.square(noise).reshape(-1, SAMPLE_RATE // 4).mean(axis=1)
    assert loudness.max() > 20 * loudness.min()


@SEEDS
def test_siren_goes_up_and_down(seed):
    frames = noise_of("siren", seed).reshape(-1, 400) * np.hanning(400)
    pitches = np.abs(np.fft.rfft(frames, 8000)).argmax(axis=1)  # Hz
    # By 20 to 40 % around a middle of 700 to 1 100 Hz, less what a frame averages.
    assert 400 < pitches.min() < pitches.max() < 1560
    assert 1.4 < pitches.max() / pitches.min() < 2.4
    assert np.abs(np.diff(pitches)).max() < 450  # It does not jump.


def test_babble_is_of_its_voices():
    low = np.sin(2 * np.pi * 200 * np.arange(8000) / SAMPLE_RATE)
    high = np.sin(2 * np.pi * 300 * np.arange(4000) / SAMPLE_RATE)
    noise = babble(16000, generator(), [low, (1000 * high).astype("int16")])
    power = periodogram(noise, SAMPLE_RATE)[1]
    assert set(np.argsort(power)[-2:]) == {400, 600}
    # Three to eight of power 1, so amplitudes that are whole numbers but for phases.
    assert power.sum() / 2 <= 64


def test_excerpt():
    sound = np.arange(1.0, 101.0)
    starts = set()
    for seed in range(20):
        piece = excerpt(sound, 99, generator(seed)) * np.sqrt(np.mean(sound**2))
        start = round(piece[0]) - 1
        np.testing.assert_allclose(piece, sound[start : start + 99], rtol=1e-12)
        starts.add(start)
    assert starts == {0, 1}  # The last piece can be had, too.
    rare = np.pad([1.0], (500, 0))
    assert all(excerpt(rare, 5, generator(seed)).any() for seed in range(5))
    repeated = excerpt(np.array([3, -3], "int16"), 5, generator())
    np.testing.assert_allclose(repeated, [1, -1, 1, -1, 1], rtol=1e-12)


@pytest.mark.parametrize(("snr", "scale"), [(-5.0, 1e-6), (12.5, 1e6), (100.0, 1.0)])
def test_ratio_and_level_are_as_asked_for(snr, scale):
    speech, noise = generator().normal(size=(2, 500))
    added = mix(speech, scale * noise, snr) - speech
    ratio = 10 * np.log10(np.sum(speech**2) / np.sum(added**2))
    # At 100 dB the difference has 1e-5 of the speech, to its rounding.
    assert ratio == pytest.approx(snr, abs=1e-8)
    # It is that noise, and no other.
    assert np.corrcoef(added, noise)[0, 1] == pytest.approx(1.0, abs=1e-8)
    found = at_level(scale * speech, snr)
    assert 10 * np.log10(np.mean(found**2)) == pytest.approx(snr, abs=1e-12)
    np.testing.assert_allclose(found / found[0], speech / speech[0], rtol=1e-14)


@SEEDS
def test_reverberation_comes_late_and_fades(seed):
    click = np.zeros(2 * SAMPLE_RATE)
    click[100] = 1
    tail = late_reverberation(click, generator(seed))
    begin = 100 + round(0.05 * SAMPLE_RATE)
    np.testing.assert_allclose(tail[:begin], 0, atol=1e-12)
    energy = np.square(tail[begin:])
    # Schroeder's integral backwards, a straight line in dB: 60 dB in 0.3 to 1 s.
    level = 10 * np.log10(np.cumsum(energy[::-1])[::-1] / energy.sum() + 1e-12)
    time = np.arange(len(level)) / SAMPLE_RATE
    part = (level < -3) & (level > -25)
    slope, offset = np.polyfit(time[part], level[part], 1)
    assert 0.25 < -60 / slope < 1.2
    assert np.abs(level[part] - slope * time[part] - offset).max() < 3
