"""Timing and melody."""

import numpy as np
import pytest

from keras_ortho.data_prep.demo_corpus.prosody import (
    durations,
    final_syllables,
    loudness,
    melody,
)
from keras_ortho.data_prep.demo_corpus.speakers import draw_speaker
from keras_ortho.data_prep.demo_corpus.transcription import Sound, transcribe

SPEAKER = draw_speaker(1, seed=0)


def mean_durations(sounds):
    drawn = [durations(sounds, SPEAKER, np.random.default_rng(i)) for i in range(200)]
    return np.mean(drawn, axis=0)


def timed(text):
    sounds = transcribe(text)
    spans = durations(sounds, SPEAKER, np.random.default_rng(0))
    bounds = np.concatenate([[0.0], np.cumsum(spans)])
    return sounds, bounds, np.arange(0, bounds[-1], 0.005)


def test_final_syllables_end_at_a_silence():
    sounds = transcribe("Bread, cheese.")
    marked = [
        s.phone for s, m in zip(sounds, final_syllables(sounds), strict=True) if m
    ]
    assert marked == ["eh", "dcl", "d", "iy", "z"]


def test_final_syllables_are_longer_and_unstressed_vowels_shorter():
    sounds = [Sound("h#")]
    sounds += [Sound("ae", True), Sound("ae", False), Sound("ae", True), Sound("h#")]
    _, stressed, unstressed, final, _ = mean_durations(sounds)
    assert unstressed < 0.9 * stressed
    assert final > 1.3 * stressed


def test_stops_after_s_are_hardly_aspirated():
    sounds = transcribe("Stars.")
    labels = [sound.phone for sound in sounds]
    after_s = mean_durations(sounds)[labels.index("t")]
    sounds = transcribe("Good tools.")
    labels = [sound.phone for sound in sounds]
    assert after_s < 0.7 * mean_durations(sounds)[labels.index("t")]


def test_slow_speakers_take_longer():
    sounds = transcribe("The old house.")
    slow, fast = (
        durations(sounds, SPEAKER._replace(tempo=t), np.random.default_rng(0))
        for t in (0.9, 0.6)
    )
    np.testing.assert_allclose(slow[1:-1] / fast[1:-1], 1.5, rtol=1e-12)
    np.testing.assert_array_equal(slow[[0, -1]], fast[[0, -1]])


@pytest.mark.parametrize("question", [False, True])
def test_melody_falls_and_ends_low_unless_it_asks(question):
    sounds, bounds, times = timed("The small boat turned around the island at noon.")
    rng = np.random.default_rng(0)
    f0 = melody(sounds, bounds, times, SPEAKER, rng, question=question)
    middle = f0[(times > bounds[1]) & (times < bounds[-2] - 0.3)]
    last = f0[np.abs(times - bounds[-2]).argmin()]
    assert np.polyfit(np.arange(len(middle)), middle, 1)[0] < 0
    assert 0.8 * SPEAKER.f0 < np.median(middle) < 1.3 * SPEAKER.f0
    assert (last > np.median(middle)) == question
    # 1.5 octaves around the mean: no jumps to nowhere.
    assert SPEAKER.f0 / 1.8 < f0.min() < f0.max() < 1.8 * SPEAKER.f0


def test_accents_raise_the_melody():
    sounds, bounds, times = timed("Over the wall.")
    plain = [sound._replace(stressed=False) for sound in sounds]
    speaker = SPEAKER._replace(accent=4.0)
    accented, flat = (
        melody(s, bounds, times, speaker, np.random.default_rng(0), question=False)
        for s in (sounds, plain)
    )
    i = next(i for i, sound in enumerate(sounds) if sound.stressed)
    inside = (times > bounds[i]) & (times < bounds[i + 1])
    rise = 12 * np.log2(accented[inside] / flat[inside])
    # 0.4 to 1.3 times four semitones, and flutter.
    assert 1.2 < rise.max() < 5.5


def test_voice_fades_before_silences():
    sounds, bounds, times = timed("Bread, cheese.")
    drawn = [
        loudness(sounds, bounds, times, np.random.default_rng(i)) for i in range(100)
    ]
    level = 20 * np.log10(drawn)
    # Decibels of sounds vary by 2.5, the mean of 100 by a tenth of that.
    assert 1.0 < level.std(axis=0).mean() < 2.7
    mean = level.mean(axis=0)
    assert mean.max() < 1.0
    pause = next(i for i, sound in enumerate(sounds) if sound.phone == "pau")
    before = mean[(times > bounds[pause] - 0.02) & (times < bounds[pause])]
    after = mean[(times > bounds[pause + 1]) & (times < bounds[pause + 1] + 0.05)]
    assert before.max() < -10
    assert after.min() > -5
