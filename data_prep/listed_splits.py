"""Divides listed utterances into train, valid and test."""

import warnings
from collections import Counter
from collections.abc import Sequence

from .corpus import Utterance
from .splits import SPLITS, Splits, divide_speakers


def split_listed(
    utterances: Sequence[Utterance], mode: str = "auto", *, seed: int = 0
) -> tuple[Splits, str]:
    """Divides listed utterances into train, valid and test.

    Warns if a speaker is in more than one split.
    """
    if mode not in ("auto", "speakers"):
        raise ValueError(
            "`mode` must be 'auto' or 'speakers' where a list names the files, as "
            "must `--splits` of the command. "
            f"Received: {mode!r}"
        )
    speakers = {utterance.speaker for utterance in utterances}
    by_speaker = divide_speakers(speakers, seed)
    given = mode == "auto" and all(utterance.part for utterance in utterances)
    splits: Splits = {name: [] for name in SPLITS}
    for utterance in utterances:
        part = utterance.part if given else None
        splits[part or by_speaker[utterance.speaker]].append(utterance)
    empty = [name for name, members in splits.items() if not members]
    if empty:
        needs = "must have files of every split" if given else "needs three speakers"
        raise ValueError(
            f"A list {needs}: nothing for {', '.join(empty)}. "
            f"Received: {len(utterances)} files of {len(speakers)} speakers"
        )
    places = {(utterance.speaker, n) for n in splits for utterance in splits[n]}
    counts = Counter(speaker for speaker, _ in places)
    several = sum(count > 1 for count in counts.values())
    if several:
        warnings.warn(
            "A list should have each speaker in one split only: a network that is "
            "scored on `test` may have heard its voices in training. "
            f"Received: {several} of {len(speakers)} speakers in several splits",
            stacklevel=2,
        )
    return splits, "list" if given else "speakers"
