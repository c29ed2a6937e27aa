"""From text to phones: the dictionary, and a few rules of connected speech."""

import re
from itertools import pairwise
from typing import NamedTuple

from .lexicon import LEXICON
from .phones import CLOSURES, PHONES, SILENCES


class Sound(NamedTuple):
    """A phone in its sentence.

    Attributes:
        phone: Label, a key of `phones.PHONES`.
        stressed: Whether it is the vowel that carries its word's accent.
    """

    phone: str
    stressed: bool = False


def is_vowel(sound: Sound) -> bool:
    """Whether a sound is a vowel."""
    return PHONES[sound.phone].manner == "vowel"


def pronounce(text: str) -> list[Sound]:
    """Looks a sentence's words up.

    A comma is a pause; "the" before a vowel is said "thee".
    """
    words = re.findall(r"[a-z']+|,", text.lower())
    unknown = [word for word in words if word != "," and word not in LEXICON]
    if unknown:
        raise ValueError(
            f"`text` must be made of words in the dictionary. Received: {unknown}"
        )
    sounds = [Sound("h#")]
    for word, after in pairwise([*words, ","]):
        entry = "pau" if word == "," else LEXICON[word]
        if word == "the" and is_vowel(_sound(LEXICON.get(after, "pau").split()[0])):
            entry = "dh iy"
        sounds += [_sound(symbol) for symbol in entry.split()]
    return [*sounds, Sound("h#")]


def transcribe(text: str) -> list[Sound]:
    """Phones of a sentence in connected speech, as TIMIT labels them.

    The same consonant twice is said once; a stop gets its closure, except after
    silence, where it cannot be heard, and loses its release before another stop;
    an "h" between two voiced sounds is voiced.
    """
    words = pronounce(text)
    merged = [
        sound
        for sound, after in pairwise([*words, Sound("pau")])
        if is_vowel(sound) or sound.phone != after.phone
    ]
    result: list[Sound] = []
    for sound, after in pairwise([*merged, Sound("pau")]):
        before = result[-1].phone if result else "h#"
        if sound.phone in CLOSURES:
            if before not in SILENCES:
                result.append(Sound(CLOSURES[sound.phone]))
            if after.phone not in CLOSURES:
                result.append(sound)
        elif sound.phone == "hh" and is_vowel(Sound(before)):
            result.append(Sound("hv"))
        else:
            result.append(sound)
    return result


def _sound(symbol: str) -> Sound:
    """Reads a dictionary symbol such as `"aa1"`."""
    return Sound(symbol.removesuffix("1"), symbol.endswith("1"))
