"""Timing and melody of a sentence.

Sources:
    Allen, Hunnicutt and Klatt (1987), "From Text to Speech: the MITalk System",
    chapter 9: durations shrink towards a minimum by percentages.
    't Hart, Collier and Cohen (1990), "A Perceptual Study of Intonation": melody as
    declination with accents on it, in semitones.
    Klatt and Klatt (1990), "Analysis, synthesis, and perception of voice quality
    variations among female and male talkers", JASA 87(2): flutter of f0.
"""

from collections.abc import Sequence

import numpy as np

from .phones import PHONES, SILENCES
from .speakers import Speaker
from .transcription import Sound, is_vowel

# Factors on what a duration has above its minimum.
PHRASE_FINAL = 1.4  # in the last syllable of a phrase
UNSTRESSED = 0.55  # in an unstressed vowel
AFTER_S = 0.15  # in the release of a stop after "s"
CONNECTED = 0.75  # elsewhere
VARIATION = 0.12  # standard deviation of the logarithm of a duration

# Melody, in semitones: fall over the whole, and fall or rise at the end.
DECLINATION = 5.0
FINAL_FALL = 4.0
FINAL_RISE = 7.0
END_WIDTH = 0.2  # s that the end's movement takes
ACCENT_WIDTH = 0.09  # standard deviation of an accent, in s
FLUTTER = (12.7, 7.1, 4.7)  # Hz of the slow variation of f0
FLUTTER_DEPTH = 0.005

# Loudness, in dB: standard deviation from sound to sound, fall over the whole, and at
# the end of a phrase.
LOUDNESS_VARIATION = 2.5
LOUDNESS_FALL = 4.0
FADE = 14.0
FADE_TIME = 0.12  # s that the last takes


def durations(
    sounds: Sequence[Sound], speaker: Speaker, rng: np.random.Generator
) -> np.ndarray:
    """Durations of the sounds of a sentence."""
    final = final_syllables(sounds)
    result = np.empty(len(sounds))
    for i, sound in enumerate(sounds):
        phone = PHONES[sound.phone]
        tempo = speaker.tempo * np.exp(rng.normal(0.0, VARIATION))
        if sound.phone in SILENCES:
            factor, tempo = rng.uniform(), 1.0
        elif phone.manner == "voiceless release" and sounds[i - 2].phone == "s":
            factor = AFTER_S
        elif final[i]:
            factor = PHRASE_FINAL
        elif is_vowel(sound) and not sound.stressed:
            factor = UNSTRESSED
        else:
            factor = CONNECTED
        span = phone.inherent - phone.minimal
        result[i] = tempo * (phone.minimal + factor * span) / 1000
    return result


def final_syllables(sounds: Sequence[Sound]) -> np.ndarray:
    """Marks the sounds from the last vowel before a silence up to it: booleans."""
    marks, inside = [], False
    for sound in reversed(sounds):
        silent = sound.phone in SILENCES
        marks.append(inside and not silent)
        inside = silent or (inside and not is_vowel(sound))
    return np.array(marks[::-1])


def melody(
    sounds: Sequence[Sound],
    bounds: np.ndarray,
    times: np.ndarray,
    speaker: Speaker,
    rng: np.random.Generator,
    *,
    question: bool,
) -> np.ndarray:
    """Fundamental frequency of a sentence."""
    begin, end = bounds[1], bounds[-2]
    semitones = DECLINATION * (0.5 - np.clip((times - begin) / (end - begin), 0, 1))
    for i, sound in enumerate(sounds):
        if sound.stressed:
            peak = bounds[i] + rng.uniform(0.2, 0.7) * (bounds[i + 1] - bounds[i])
            height = speaker.accent * rng.uniform(0.4, 1.3)
            semitones += height * np.exp(-0.5 * ((times - peak) / ACCENT_WIDTH) ** 2)
    movement = FINAL_RISE if question else -FINAL_FALL
    semitones += movement * np.clip((times - end) / END_WIDTH + 1, 0, 1)
    waves = 2 * np.pi * np.outer(times, FLUTTER) + rng.uniform(0, 2 * np.pi, 3)
    flutter = 1 + FLUTTER_DEPTH * np.sin(waves).mean(axis=1)
    return speaker.f0 * 2 ** (semitones / 12) * flutter


def loudness(
    sounds: Sequence[Sound],
    bounds: np.ndarray,
    times: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Loudness of the voice: it falls over a sentence, and fades before a silence.

    The arguments are those of `melody`; the result is an amplitude per time.
    """
    middles = (bounds[:-1] + bounds[1:]) / 2
    variation = rng.normal(0.0, LOUDNESS_VARIATION, len(sounds))
    level = np.interp(times, middles, variation) - LOUDNESS_FALL * times / bounds[-1]
    for sound, begin, end in zip(sounds[1:], bounds[1:], bounds[2:], strict=False):
        if sound.phone in SILENCES:
            before = (times > begin - FADE_TIME) & (times < end)
            level -= FADE * before * np.clip((times - begin) / FADE_TIME + 1, 0, 1)
    return 10 ** (level / 20)
