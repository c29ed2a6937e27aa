"""The speakers: made-up names, and voices drawn from the seed."""

from typing import NamedTuple

from .streams import Stream, generator
from .synthesizer import Voice
from .vowels import WOMAN_TO_MAN

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# As many as there are names: `AA`, a letter, a digit. No TIMIT speaker has one.
MAX_SPEAKERS = 10 * len(LETTERS)
REGIONS = ("DR1", "DR2")


class Speaker(NamedTuple):
    """Who reads, and how.

    Attributes:
        name: Identifier of TIMIT's form: sex, initials, digit.
        region: Dialect region, a folder of the corpus.
        woman: Whether the voice is a woman's.
        f0: Mean fundamental frequency, in Hz.
        accent: Height of an accent, in semitones.
        tempo: Durations over those of a slow, careful reading.
        build: Formant frequencies over the mean of the speaker's sex.
        level: Mean peak of a recording, relative to full scale.
        voice: What the synthesizer needs to know of the voice.
    """

    name: str
    region: str
    woman: bool
    f0: float
    accent: float
    tempo: float
    build: float
    level: float
    voice: Voice


def draw_speaker(number: int, *, seed: int) -> Speaker:
    """Draws a speaker.

    Women and men alternate, and the two dialect regions have as many of each. Mean
    f0 follows Hillenbrand et al. (1995), opening and closing of the glottis lie
    around the 40 % and 16 % of Rosenberg (1971), and women's voices are the
    breathier ones (Klatt and Klatt 1990).
    """
    rng = generator(seed, Stream.SPEAKER, number)
    woman = number % 2 == 0
    digit, letter = divmod(number, len(LETTERS))
    build = rng.uniform(0.94, 1.06)
    return Speaker(
        name=f"{'F' if woman else 'M'}AA{LETTERS[letter]}{digit}",
        region=REGIONS[number // 2 % len(REGIONS)],
        woman=woman,
        f0=rng.uniform(180, 245) if woman else rng.uniform(95, 150),
        accent=rng.uniform(2.0, 4.5),
        tempo=rng.uniform(0.62, 0.84),
        build=build,
        level=rng.uniform(0.35, 0.62),
        voice=Voice(
            opening=rng.uniform(0.36, 0.46) if woman else rng.uniform(0.30, 0.40),
            closing=rng.uniform(0.12, 0.18) if woman else rng.uniform(0.10, 0.16),
            jitter=rng.uniform(0.004, 0.010),
            shimmer=rng.uniform(0.02, 0.06),
            tilt=rng.uniform(1600, 3200) if woman else rng.uniform(2000, 4200),
            breath=rng.uniform(0.04, 0.12) if woman else rng.uniform(0.02, 0.06),
            tract=build * (WOMAN_TO_MAN if woman else 1.0),
        ),
    )
