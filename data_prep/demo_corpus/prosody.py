"""The speakers' voices, and the timing, melody and loudness of a sentence."""

from itertools import pairwise
from string import ascii_uppercase
from types import SimpleNamespace

import numpy as np
from numpy import ndarray
from numpy.random import Generator

from .text import PHONES, SILENCES, TABLES, Sound, generator, is_vowel

WOMAN_TO_MAN = 1.16  # mean ratio of F1-F4 over the vowels of Hillenbrand et al. (1995)
# As many as there are names: `AA`, a letter, a digit. No TIMIT speaker has one.
MAX_SPEAKERS = 10 * len(ascii_uppercase)
P = SimpleNamespace(**TABLES["prosody"])


def draw_speaker(number: int, seed: int) -> SimpleNamespace:
    """Draws a speaker: name, region, sex, and a value of each of the table `voices`."""
    rng, woman = generator(seed, 0, number), number % 2 == 0
    digit, letter = divmod(number, len(ascii_uppercase))
    voice = {name: rng.uniform(*x[woman]) for name, x in TABLES["voices"].items()}
    return SimpleNamespace(
        name=f"{'F' if woman else 'M'}AA{ascii_uppercase[letter]}{digit}",
        region=f"DR{number // 2 % 2 + 1}",
        woman=woman,
        # Formant frequencies over those of a man's vocal tract.
        tract=voice["build"] * (WOMAN_TO_MAN if woman else 1.0),
        **voice,
    )


def durations(sounds: list[Sound], tempo: float, rng: Generator) -> ndarray:
    """Durations of the sounds of a sentence, in seconds."""
    result = np.empty(len(sounds))
    for i, (label, stressed) in enumerate(sounds):
        phone = PHONES[label]
        rest = (x for x, _ in sounds[i + 1 :] if is_vowel(x) or x in SILENCES)
        factor, pace = P.connected, tempo * np.exp(rng.normal(0.0, P.variation))
        if label in SILENCES:
            factor, pace = rng.uniform(), 1.0
        elif phone["manner"] == "voiceless release" and sounds[i - 2].phone == "s":
            factor = P.after_s
        elif next(rest) in SILENCES:  # It is in the last syllable of a phrase.
            factor = P.phrase_final
        elif phone["manner"] == "vowel" and not stressed:
            factor = P.unstressed
        span = phone["inherent"] - phone["minimal"]
        result[i] = pace * (phone["minimal"] + factor * span) / 1000
    return result


def melody(
    sounds: list[Sound],
    bounds: ndarray,
    times: ndarray,
    speaker: SimpleNamespace,
    question: bool,
    rng: Generator,
) -> tuple[ndarray, ndarray]:
    """Fundamental frequency in Hz, and amplitude of the voice, at times in s."""
    begin, end = bounds[1], bounds[-2]
    semitones = P.declination * (0.5 - np.clip((times - begin) / (end - begin), 0, 1))
    for sound, (left, right) in zip(sounds, pairwise(bounds), strict=True):
        if sound.stressed:
            peak = left + rng.uniform(0.2, 0.7) * (right - left)
            height = speaker.accent * rng.uniform(0.4, 1.3)
            semitones += height * np.exp(-0.5 * ((times - peak) / P.accent_width) ** 2)
    movement = P.final_rise if question else -P.final_fall
    semitones += movement * np.clip((times - end) / P.end_width + 1, 0, 1)
    waves = 2 * np.pi * np.outer(times, P.flutter) + rng.uniform(0, 2 * np.pi, 3)
    flutter = 1 + P.flutter_depth * np.sin(waves).mean(axis=1)

    variation = rng.normal(0.0, P.loudness_variation, len(sounds))
    level = np.interp(times, (bounds[:-1] + bounds[1:]) / 2, variation)
    level -= P.loudness_fall * times / bounds[-1]
    for sound, (left, right) in zip(sounds[1:], pairwise(bounds[1:]), strict=True):
        if sound.phone in SILENCES:
            before = (times > left - P.fade_time) & (times < right)
            level -= P.fade * before * np.clip((times - left) / P.fade_time + 1, 0, 1)
    return speaker.f0 * 2 ** (semitones / 12) * flutter, 10 ** (level / 20)
