"""The sounds of American English as a formant synthesizer needs them.

Labels are those of TIMIT's phone transcriptions. Levels are in Klatt's decibels:
60 is a source at full strength, 0 is off. Frequencies are a man's, in Hz;
`target_formants` gives a woman's.

Sources:
    Klatt (1980), "Software for a cascade/parallel formant synthesizer", JASA 67(3),
    table III: formants of consonants and shapes of noise spectra. The levels are
    balanced against the sources of this synthesizer.
    Allen, Hunnicutt and Klatt (1987), "From Text to Speech: the MITalk System",
    table 9-1: inherent and minimal durations. Stops are split into closure and
    release, as TIMIT labels them.
    Sussman, McCaffrey and Matthews (1991), "An investigation of locus equations as
    a source of relational invariance for stop place categorization", JASA 90(3):
    the order of the places in coarticulation.
"""

from typing import NamedTuple

import numpy as np

from .vowels import DIPHTHONGS, VOWELS, WOMAN_TO_MAN

NASAL_ZERO = 450.0  # Hz, in a nasal consonant


class Manner(NamedTuple):
    """How a class of sounds is produced.

    Attributes:
        voicing: Level of the glottal pulses.
        murmur: Level of the nearly sinusoidal voicing of a closed tract.
        aspiration: Level of the noise made at the glottis.
        f1: First formant, in Hz; of no effect in vowels.
        bandwidths: Bandwidths of F1-F4, in Hz.
    """

    voicing: float
    murmur: float
    aspiration: float
    f1: float
    bandwidths: tuple[float, float, float, float]


class Place(NamedTuple):
    """Where the tract is narrowed.

    Attributes:
        formants: F2-F4 that the narrowing leads to, in Hz.
        coarticulation: Weight of the neighboring vowels in F2-F4, 0 to 1.
        noise: Levels of the frication noise at F2, F3, F4, F5, F6 and unfiltered.
    """

    formants: tuple[float, float, float]
    coarticulation: float
    noise: tuple[float, float, float, float, float, float]


class Phone(NamedTuple):
    """One sound.

    Attributes:
        manner: Key of `MANNERS`.
        place: Key of `PLACES`, or of `VOWELS` or `DIPHTHONGS` for a vowel.
        inherent: Duration of the sound in a stressed, phrase-final syllable, in ms.
        minimal: Duration below which it cannot be shortened, in ms.
        noise: Gain of the place's frication noise in dB; `None` for no noise.
    """

    manner: str
    place: str
    inherent: float
    minimal: float
    noise: float | None = None


MANNERS = {
    "silence": Manner(0, 0, 0, 500, (200, 200, 250, 300)),
    "vowel": Manner(60, 0, 0, 500, (100, 130, 180, 250)),
    "glide": Manner(57, 0, 0, 350, (90, 130, 180, 250)),
    "nasal": Manner(51, 0, 0, 480, (60, 250, 300, 350)),
    "flap": Manner(46, 40, 0, 300, (80, 150, 200, 300)),
    "voiced closure": Manner(0, 41, 0, 200, (80, 200, 250, 300)),
    "voiceless closure": Manner(0, 0, 0, 200, (200, 200, 250, 300)),
    "voiced release": Manner(42, 38, 34, 200, (80, 130, 180, 250)),
    "voiceless release": Manner(0, 0, 42, 400, (300, 150, 250, 300)),
    "voiced fricative": Manner(41, 40, 0, 250, (80, 120, 180, 250)),
    "voiceless fricative": Manner(0, 0, 30, 330, (200, 120, 200, 300)),
    "aspirate": Manner(0, 0, 35, 500, (250, 150, 200, 300)),
    "voiced aspirate": Manner(48, 0, 34, 500, (150, 130, 180, 250)),
}

# Manners that leave the jaw free: F1 too is drawn towards the vowels' one.
OPEN = ("silence", "glide", "aspirate", "voiced aspirate")

PLACES = {
    "none": Place((1500, 2500, 3500), 1.0, (0, 0, 0, 0, 0, 0)),
    "labial": Place((1100, 2150, 3300), 0.6, (0, 0, 0, 0, 0, 47)),
    "labiodental": Place((1100, 2080, 3300), 0.6, (0, 0, 0, 0, 0, 36)),
    "dental": Place((1290, 2540, 3400), 0.4, (0, 0, 0, 0, 44, 35)),
    "alveolar": Place((1650, 2600, 3500), 0.35, (0, 45, 48, 51, 49, 0)),
    "groove": Place((1500, 2550, 3500), 0.3, (0, 38, 46, 57, 56, 0)),
    "palatal": Place((1840, 2750, 3500), 0.2, (43, 58, 60, 57, 51, 0)),
    "velar": Place((1990, 2500, 3500), 0.65, (53, 49, 42, 43, 42, 0)),
    "labiovelar": Place((610, 2150, 3200), 0.2, (0, 0, 0, 0, 0, 0)),
    "front": Place((2070, 2900, 3500), 0.2, (0, 0, 0, 0, 0, 0)),
    "retroflex": Place((1150, 1550, 3200), 0.3, (0, 0, 0, 0, 0, 0)),
    "lateral": Place((900, 2750, 3400), 0.4, (0, 0, 0, 0, 0, 0)),
}

# Label, place, inherent and minimal duration of each phone, and noise if any.
_BY_MANNER = {
    "silence": "h# none 140 90; pau none 160 80",
    "vowel": (
        "iy iy 155 55; ih ih 135 40; eh eh 150 70; ae ae 230 80; aa aa 240 100; "
        "ah ah 140 60; ao ao 240 100; uh uh 160 60; uw uw 210 70; ux ux 210 70; "
        "er er 180 80; ax ax 120 40; ix ix 110 40; axr er 150 50; ay ay 250 110; "
        "aw aw 260 110; oy oy 280 120; ey ey 190 80; ow ow 220 80"
    ),
    "glide": "w labiovelar 80 50; y front 80 40; r retroflex 80 40; l lateral 80 45",
    "aspirate": "hh none 80 45",
    "voiced aspirate": "hv none 80 45",
    "nasal": "m labial 75 55; n alveolar 65 45; ng velar 95 55",
    "flap": "dx alveolar 30 22",
    "voiceless fricative": (
        "f labiodental 100 80 0; th dental 90 60 0; s groove 105 75 0; "
        "sh palatal 105 80 0; ch palatal 75 55 0"
    ),
    "voiced fricative": (
        "v labiodental 60 40 -4; dh dental 50 30 -7; z groove 75 50 -3; "
        "zh palatal 70 50 -4; jh palatal 60 40 -2"
    ),
    "voiceless closure": "pcl labial 75 45; tcl alveolar 60 35; kcl velar 65 40",
    "voiced closure": "bcl labial 70 45; dcl alveolar 55 35; gcl velar 60 40",
    "voiceless release": "p labial 75 25 6; t alveolar 80 28 11; k velar 85 35 8",
    "voiced release": "b labial 22 15 2; d alveolar 28 20 4; g velar 40 28 2",
}

PHONES = {
    label: Phone(manner, place, *map(float, numbers))
    for manner, rows in _BY_MANNER.items()
    for label, place, *numbers in map(str.split, rows.split(";"))
}

SILENCES = ("h#", "pau")
# The closure that comes before each stop and affricate.
CLOSURES = {stop: f"{stop}cl" for stop in "ptkbdg"} | {"ch": "tcl", "jh": "dcl"}


def target_formants(label: str, *, woman: bool) -> np.ndarray:
    """Formant targets at the start and at the end of a sound."""
    phone = PHONES[label]
    manner = MANNERS[phone.manner]
    if phone.manner == "vowel":
        ends = DIPHTHONGS.get(phone.place, (phone.place, phone.place))
        return np.array([VOWELS[end][int(woman)] for end in ends], dtype=float)
    row = np.array([manner.f1, *PLACES[phone.place].formants])
    return np.stack([row, row]) * (WOMAN_TO_MAN if woman else 1.0)
