"""A whole recording."""

import numpy as np
import pytest

from keras_ortho.data_prep.demo_corpus.phones import PHONES
from keras_ortho.data_prep.demo_corpus.recording import record
from keras_ortho.data_prep.demo_corpus.sentences import SA, SX
from keras_ortho.data_prep.demo_corpus.speakers import draw_speaker
from keras_ortho.data_prep.demo_corpus.transcription import transcribe

signal = pytest.importorskip("scipy.signal")

RATE = 16000


@pytest.fixture(scope="module", params=[0, 1], ids=["woman", "man"])
def reading(request):
    speaker = draw_speaker(request.param, seed=0)
    texts = (*SA, *SX[:4])
    return speaker, [
        (text, record(text, speaker, np.random.default_rng(i)))
        for i, text in enumerate(texts)
    ]


def segments(reading, manner, *, margin=0.0):
    """Samples of all phones of a manner, on a scale of 1, without their margins."""
    for _, recording in reading[1]:
        for begin, end, label in recording.phones:
            if PHONES[label].manner == manner:
                cut = round(margin * (end - begin))
                yield recording.samples[begin + cut : end - cut] / 2**15


def level(parts):
    """Root mean square of parts, in dB."""
    return 10 * np.log10(np.mean(np.concatenate(list(parts)) ** 2))


def test_phones_tile_the_samples(reading):
    for text, recording in reading[1]:
        begins, ends, labels = zip(*recording.phones, strict=True)
        assert begins[0] == 0
        assert ends[-1] == len(recording.samples)
        assert ends[:-1] == begins[1:]
        assert all(begin < end for begin, end in zip(begins, ends, strict=True))
        assert list(labels) == [sound.phone for sound in transcribe(text)]


def test_level_and_length_are_those_of_speech(reading):
    for _, recording in reading[1]:
        assert recording.samples.dtype == np.int16
        assert 0.3 < np.abs(recording.samples.astype(int)).max() / 2**15 < 0.7
        assert 1.5 < len(recording.samples) / RATE < 4.5


def test_silence_holds_the_recordings_noise(reading):
    for part in segments(reading, "silence", margin=0.25):
        # 700 or more samples: the estimate varies by 0.25 dB.
        assert 20 * np.log10(part.std()) == pytest.approx(-60, abs=1.5)


def test_vowels_are_loud_closures_quiet(reading):
    vowels = level(segments(reading, "vowel"))
    assert vowels > -30
    assert level(segments(reading, "voiceless closure", margin=0.3)) < vowels - 30
    assert vowels - 40 < level(segments(reading, "voiced closure", margin=0.3))
    assert level(segments(reading, "voiced closure", margin=0.3)) < vowels - 15
    sibilants = level(segments(reading, "voiceless fricative", margin=0.2))
    assert vowels - 25 < sibilants < vowels - 5


def test_stressed_vowels_are_voiced_at_about_the_speakers_f0(reading):
    speaker = reading[0]
    measured = []
    for part in segments(reading, "vowel", margin=0.2):
        if len(part) > 0.06 * RATE:
            correlation = signal.correlate(part, part)[len(part) - 1 :]
            low, high = RATE // 400, RATE // 60
            lag = low + correlation[low:high].argmax()
            assert correlation[lag] > 0.25 * correlation[0]
            measured.append(RATE / lag)
    assert len(measured) > 20
    assert np.median(measured) == pytest.approx(speaker.f0, rel=0.2)


def test_vowels_have_no_clicks(reading):
    for part in segments(reading, "vowel", margin=0.1):
        # Pulses through formants stand out by 3 to 8 in natural vowels.
        assert np.abs(part).max() < 7 * part.std()


def test_long_term_spectrum_falls_as_speech_does(reading):
    samples = np.concatenate([recording.samples for _, recording in reading[1]])
    frequencies, power = signal.welch(samples / 2**15, RATE, nperseg=512)
    octaves = [
        10 * np.log10(power[(frequencies >= low) & (frequencies < 2 * low)].mean())
        for low in (500, 1000, 2000)
    ]
    assert -14 < np.polyfit(range(3), octaves, 1)[0] < -4


def test_same_generator_same_recording_other_generator_other_recording():
    speaker = draw_speaker(0, seed=0)
    first, again, other = (
        record(SA[0], speaker, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.samples, again.samples)
    assert first.phones == again.phones
    assert first.phones != other.phones
