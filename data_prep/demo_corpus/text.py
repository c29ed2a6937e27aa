"""What the speakers read, and its phones.

As in TIMIT, every speaker reads the same two sentences SA1 and SA2, some of a fixed
list (SX) that others read too, and some that nobody else reads (SI). The texts are
the project's own; the SI sentences are put together from parts by a random draw.
"""

import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

TABLES = tomllib.loads(Path(__file__).with_name("english.toml").read_text("utf-8"))
SA, SX, SI_PARTS = (TABLES["sentences"][kind] for kind in ("SA", "SX", "SI"))
PHONES, LEXICON = TABLES["phones"], TABLES["lexicon"] | {",": "pau"}
# After SA1 and SA2, the kinds repeat in this order: 5 SX and 3 SI, as in TIMIT.
KINDS = ("SX", "SX", "SI", "SX", "SX", "SI", "SX", "SI")
# The most that a speaker can read without reading a sentence twice.
MAX_SENTENCES = len(SA) + len(KINDS) * (len(SX) // KINDS.count("SX"))
FIRST_SI = 501  # the number of the first SI sentence

SILENCES = ("h#", "pau")
# The closure that comes before each stop and affricate.
CLOSURES = {stop: f"{stop}cl" for stop in "ptkbdg"} | {"ch": "tcl", "jh": "dcl"}


class Sound(NamedTuple):
    """A phone of a sentence, and whether it carries its word's accent."""

    phone: str
    stressed: bool = False


def is_vowel(phone: str) -> bool:
    """Whether a phone is a vowel."""
    return PHONES[phone]["manner"] == "vowel"


def generator(seed: int, *key: int) -> np.random.Generator:
    """A generator of its own for each speaker (0), SI text (1) and recording (2)."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def reading_list(speaker: int, count: int, seed: int) -> list[tuple[str, str]]:
    """Names and texts of the sentences that a speaker reads."""
    sentences = [(f"SA{i}", text) for i, text in enumerate(SA, 1)]
    fixed = speaker * KINDS.count("SX")
    for position in range(MAX_SENTENCES - len(SA)):
        if KINDS[position % len(KINDS)] == "SX":
            sentences.append((f"SX{fixed % len(SX) + 1}", SX[fixed % len(SX)]))
            fixed += 1
        else:
            rng = generator(seed, 1, speaker, position)
            text = " ".join(part[rng.integers(len(part))] for part in SI_PARTS)
            number = FIRST_SI + speaker * MAX_SENTENCES + position
            sentences.append((f"SI{number}", f"{text[0].upper()}{text[1:]}."))
    return sentences[:count]


def transcribe(text: str) -> list[Sound]:
    """Phones of a sentence in connected speech, as TIMIT labels them.

    "The" before a vowel is said "thee". The same consonant twice is said once; a stop
    gets its closure, except after silence, where it cannot be heard, and loses its
    release before another stop; an "h" between two voiced sounds is voiced.
    """
    words, symbols = re.findall(r"[a-z']+|,", text.lower()), ["h#"]
    for word, after in pairwise([*words, ","]):
        thee = word == "the" and LEXICON[after][0] in "aeiou"
        symbols += ["dh", "iy"] if thee else LEXICON[word].split()
    symbols += ["h#", "pau"]
    # Of vowels, each is said.
    said = [a for a, b in pairwise(symbols) if a != b or a[0] in "aeiou"]
    result: list[Sound] = []
    for symbol, after in pairwise([*said, "pau"]):
        phone, before = symbol.rstrip("1"), result[-1].phone if result else "h#"
        if phone in CLOSURES:
            if before not in SILENCES:
                result.append(Sound(CLOSURES[phone]))
            if after in CLOSURES:
                continue
        elif phone == "hh" and is_vowel(before):
            phone = "hv"
        result.append(Sound(phone, symbol.endswith("1")))
    return result
