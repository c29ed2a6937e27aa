"""What the speakers read.

As in TIMIT, every speaker reads the same two sentences SA1 and SA2, some of a fixed
list (SX) that others read too, and some that nobody else reads (SI). The texts are
the project's own; the SI sentences are put together from parts by a random draw.
"""

from typing import NamedTuple

import numpy as np

from .streams import Stream, generator

SA = (
    "Every morning the wind moves slowly over the quiet water.",
    "Please show me which road leads back to the old house.",
)

SX = (
    "The small boat turned around the island at noon.",
    "Five green apples lay under the kitchen table.",
    "She wrote a long letter to her father in the city.",
    "Bring the yellow lamp closer to the open window.",
    "Our teacher found a good book about stars.",
    "He paid for bread, cheese, and a bag of rice.",
    "Snow fell all night on the roofs of the village.",
    "Did you hear the train pass behind the garden?",
    "The young singer chose a very simple song.",
    "Warm rain is good for the beans and the corn.",
    "Nobody could open the heavy door with one hand.",
    "They walked home together through the narrow park.",
    "Thick smoke rose above the old paper mill.",
    "My brother keeps his tools in a wooden box.",
    "A cold river joins the lake beyond the bridge.",
    "We usually drink coffee before the first lesson.",
    "Their horse jumped over the low stone wall.",
    "The doctor asked about the pain in his shoulder.",
    "Put the clean shirt and the blue jacket on the chair.",
    "Few birds sing when the evening turns gray.",
)

_PARTS = """
the doctor, my brother, our teacher, the young singer, her father, the old farmer,
his sister, a strong worker, their neighbor, nobody, she, they;
found, carried, painted, measured, sold, lost, drew, watched, chose, visited;
a yellow lamp, the heavy box, two silver chairs, the wooden ship, a small basket,
three round tables, the old map, his blue jacket, the first horse, a clean shop,
their green tree, the narrow road;
under the bridge, near the lake, behind the house, across the river, in the village,
beyond the stone wall, above the garden, on the island;
early, late at night, at noon, today, twice, before the rain, soon
"""

# Who, did, what, where and when: one of each makes an SI sentence.
SI_PARTS = [[part.strip() for part in row.split(",")] for row in _PARTS.split(";")]
# After SA1 and SA2, the kinds repeat in this order: 5 SX and 3 SI, as in TIMIT.
KINDS = ("SX", "SX", "SI", "SX", "SX", "SI", "SX", "SI")
# The most that a speaker can read without reading a sentence twice.
MAX_SENTENCES = len(SA) + len(KINDS) * (len(SX) // KINDS.count("SX"))
FIRST_SI = 501  # the number of the first SI sentence


class Sentence(NamedTuple):
    """A sentence that a speaker reads: its TIMIT file name and its text."""

    name: str
    text: str


def compose_text(rng: np.random.Generator) -> str:
    """Puts an SI sentence together from one of each of `SI_PARTS`."""
    words = " ".join(part[rng.integers(len(part))] for part in SI_PARTS)
    return f"{words[0].upper()}{words[1:]}."


def reading_list(speaker: int, count: int, *, seed: int) -> list[Sentence]:
    """Sentences that a speaker reads."""
    sentences = [Sentence(f"SA{i}", text) for i, text in enumerate(SA, 1)]
    fixed = speaker * KINDS.count("SX")
    for position in range(MAX_SENTENCES - len(SA)):
        if KINDS[position % len(KINDS)] == "SX":
            number = fixed % len(SX)
            sentences.append(Sentence(f"SX{number + 1}", SX[number]))
            fixed += 1
        else:
            text = compose_text(generator(seed, Stream.TEXT, speaker, position))
            number = FIRST_SI + speaker * MAX_SENTENCES + position
            sentences.append(Sentence(f"SI{number}", text))
    return sentences[:count]
