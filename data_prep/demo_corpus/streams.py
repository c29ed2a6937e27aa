"""Independent random generators, each a function of the corpus's seed and a key."""

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What the numbers are drawn for."""

    SPEAKER = 0
    TEXT = 1
    UTTERANCE = 2


def generator(seed: int, stream: Stream, *key: int) -> np.random.Generator:
    """A generator that depends on nothing but its arguments."""
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, *key))
    return np.random.default_rng(sequence)
