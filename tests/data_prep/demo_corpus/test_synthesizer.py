"""The synthesizer: pitch, formants, noise."""

import numpy as np
import pytest

from keras_ortho.data_prep.demo_corpus.articulation import source_amplitudes
from keras_ortho.data_prep.demo_corpus.filters import FRAME, NASAL_POLE, RATE
from keras_ortho.data_prep.demo_corpus.phones import (
    MANNERS,
    PHONES,
    target_formants,
)
from keras_ortho.data_prep.demo_corpus.synthesizer import (
    Controls,
    Voice,
    glottal_flow,
    radiate,
    synthesize,
)
from keras_ortho.data_prep.demo_corpus.transcription import Sound
from keras_ortho.data_prep.demo_corpus.vowels import WOMAN_TO_MAN

signal = pytest.importorskip("scipy.signal")
librosa = pytest.importorskip("librosa")

FRAMES = 200


def rng():
    return np.random.default_rng(0)


def sustained(label, *, f0=120.0, woman=False, **levels):
    """Control values of a sound that goes on for a second."""
    one = np.ones(FRAMES)
    voicing, murmur, aspiration, *noise = source_amplitudes(Sound(label, True))
    controls = Controls(
        f0=f0 * one,
        formants=np.tile(target_formants(label, woman=woman)[0], (FRAMES, 1)),
        bandwidths=np.tile(MANNERS[PHONES[label].manner].bandwidths, (FRAMES, 1)),
        nasal_zero=NASAL_POLE * one,
        voicing=voicing * one,
        murmur=murmur * one,
        aspiration=aspiration * one,
        frication=np.tile(noise, (FRAMES, 1)),
    )
    return controls._replace(**levels)


def measure_f0(samples):
    """Autocorrelation's first peak, refined by a parabola."""
    samples = samples - samples.mean()
    correlation = signal.correlate(samples, samples)[len(samples) - 1 :]
    low, high = RATE // 400, RATE // 60
    lag = low + correlation[low:high].argmax()
    left, mid, right = correlation[lag - 1 : lag + 2]
    return RATE / (lag + 0.5 * (left - right) / (left - 2 * mid + right))


def measure_formants(samples):
    """Frequencies of the narrow poles of a linear prediction, ascending."""
    windowed = samples * np.hanning(len(samples))
    emphasized = signal.lfilter([1, -0.97], [1], windowed)
    roots = np.roots(librosa.lpc(emphasized, order=18))
    roots = roots[roots.imag > 0]
    frequency = np.angle(roots) * RATE / (2 * np.pi)
    bandwidth = -np.log(np.abs(roots)) * RATE / np.pi
    return np.sort(frequency[(bandwidth < 500) & (frequency > 150)])


def energy_above(samples, frequency):
    """Part of the energy that lies above a frequency."""
    frequencies, power = signal.welch(samples, RATE, nperseg=512)
    return power[frequencies > frequency].sum() / power.sum()


@pytest.mark.parametrize("f0", [87.3, 121.7, 233.9])
def test_flow_has_the_f0_asked_for(f0):
    flow = glottal_flow(np.full(RATE, f0), Voice(), rng())
    # Whole-sample periods would be off by up to 0.7 % at the highest.
    assert measure_f0(flow) == pytest.approx(f0, rel=1e-3)


@pytest.mark.parametrize("f0", [110.0, 210.0])
def test_vowel_has_the_f0_asked_for_in_spite_of_jitter(f0):
    voice = Voice(jitter=0.008, shimmer=0.05, breath=0.05)
    samples = synthesize(sustained("ah", f0=f0), voice, rng())
    assert measure_f0(samples[RATE // 4 :]) == pytest.approx(f0, rel=0.01)


def test_flow_opens_closes_and_rests():
    f0 = 100.0
    flow = glottal_flow(np.full(RATE, f0), Voice(opening=0.4, closing=0.16), rng())
    # A pulse of 89.6 of 160 samples; its peak falls at most half a sample beside one.
    assert np.mean(flow > 0) == pytest.approx(0.56, abs=1 / 160)
    assert 0.999 < flow.max() <= 1
    assert flow.min() == 0
    assert np.mean(np.diff(flow) > 0) == pytest.approx(0.40, abs=1 / 160)
    assert np.mean(np.diff(flow) < 0) == pytest.approx(0.16, abs=2 / 160)


def test_jitter_and_shimmer_have_the_size_asked_for():
    f0 = 100.0
    voice = Voice(jitter=0.01, shimmer=0.05)
    flow = glottal_flow(np.full(30 * RATE, f0), voice, rng())
    pulses = flow[: 29 * RATE].reshape(-1, int(RATE / f0))
    heights = pulses.max(axis=1)
    # 2900 pulses: the estimates vary by 1.3 %.
    assert heights.std() == pytest.approx(0.05, rel=0.06)
    centers = (pulses * np.arange(pulses.shape[1])).sum(axis=1) / pulses.sum(axis=1)
    assert centers.std() * f0 / RATE == pytest.approx(0.01, rel=0.06)


def test_radiated_pulses_are_as_strong_at_any_f0_and_fall_6_db_per_octave():
    powers = []
    for f0 in (100.0, 200.0):
        track = np.full(2 * RATE, f0)
        pulses = radiate(glottal_flow(track, Voice(), rng()), track)
        powers.append(np.mean(pulses**2))
        frequencies, power = signal.welch(pulses, RATE, nperseg=1024)
        octaves = [
            10 * np.log10(power[(frequencies > low) & (frequencies < 2 * low)].mean())
            for low in (500, 1000, 2000)
        ]
        # The step of the slope at closure; a band may hold a zero of the pulse.
        assert -9 < np.polyfit(range(3), octaves, 1)[0] < -4
    assert powers[1] == pytest.approx(powers[0], rel=0.02)


@pytest.mark.parametrize("woman", [False, True])
@pytest.mark.parametrize("label", ["iy", "eh", "ae", "aa", "ao", "uw", "er"])
def test_sustained_vowel_has_its_formants(label, woman):
    f0 = 220.0 if woman else 120.0
    voice = Voice(tract=WOMAN_TO_MAN if woman else 1.0)
    controls = sustained(label, f0=f0, woman=woman)
    samples = synthesize(controls, voice, rng())[4000:12000]
    measured = measure_formants(samples)[:4]
    np.testing.assert_allclose(measured, controls.formants[0], rtol=0.1)


@pytest.mark.parametrize("label", ["s", "z", "sh"])
def test_sibilants_are_above_2500_hz(label):
    silent = np.zeros(FRAMES)
    controls = sustained(label, voicing=silent, murmur=silent)
    samples = synthesize(controls, Voice(), rng())
    assert energy_above(samples, 2500) > 0.85


def test_alveolar_sibilant_is_higher_than_palatal_and_vowels_are_low():
    centroids = {}
    for label in ("s", "sh", "f", "aa"):
        samples = synthesize(sustained(label), Voice(), rng())
        frequencies, power = signal.welch(samples, RATE, nperseg=512)
        centroids[label] = (frequencies * power).sum() / power.sum()
    assert centroids["s"] > centroids["sh"] + 500
    assert centroids["sh"] > centroids["aa"] + 1500
    assert centroids["f"] > 3000


def test_murmur_is_nearly_sinusoidal():
    samples = synthesize(sustained("bcl"), Voice(), rng())
    assert energy_above(samples, 500) < 0.01
    assert samples.std() > 0


def test_silence_is_silent():
    samples = synthesize(sustained("h#"), Voice(breath=0.1), rng())
    assert samples.shape == (FRAMES * FRAME,)
    assert not samples.any()


def test_same_generator_same_samples():
    first, second = (
        synthesize(sustained("z"), Voice(jitter=0.01), rng()) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
