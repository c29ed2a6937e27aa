"""Divides utterances into train, valid and test.

No split of TIMIT contains the two SA sentences, which every speaker reads.
"""

import hashlib
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence

from .corpus import Utterance

Splits = dict[str, list[Utterance]]

SPLITS = ("train", "valid", "test")
MODES = ("timit", "wisdom", "speakers")

# Numbers of utterances in the complete corpus.
COMPLETE = {
    "timit": {"train": 3696, "valid": 400, "test": 192},
    "wisdom": {"train": 3640, "valid": 400, "test": 192},
}

# Two men and a woman from each dialect region: table 1 of testset.doc in the corpus.
_CORE_TEST_SPEAKERS = """
mdab0 mwbt0 felc0 mtas1 mwew0 fpas0 mjmp0 mlnt0 fpkt0 mlll0 mtls0 fjlm0
mbpm0 mklt0 fnlp0 mcmj0 mjdh0 fmgd0 mgrt0 mnjm0 fdhc0 mjln0 mpam0 fmld0
"""
CORE_TEST_SPEAKERS = frozenset(_CORE_TEST_SPEAKERS.split())

# 50 of the other 144 test speakers: A. K. Halberstadt, "Heterogeneous Acoustic
# Measurements and Multiple Classifiers for Speech Recognition", MIT, 1998.
_DEVELOPMENT_SPEAKERS = """
faks0 fdac1 fjem0 mgwt0 mjar0 mmdb1 mmdm2 mpdf0 fcmh0 fkms0 mbdg0 mbwm0 mcsh0
fadg0 fdms0 fedw0 mgjf0 mglb0 mrtk0 mtaa0 mtdt0 mthc0 mwjg0 fnmr0 frew0 fsem0
mbns0 mmjr0 mdls0 mdlf0 mdvc0 mers0 fmah0 fdrw0 mrcs0 mrjm4 fcal1 mmwh0 fjsj0
majc0 mjsw0 mreb0 fgjd0 fjmg0 mroa0 mteb0 mjfc0 mrjr0 fmml0 mrws1
"""
DEVELOPMENT_SPEAKERS = frozenset(_DEVELOPMENT_SPEAKERS.split())


def resolve_mode(mode: str, utterances: Iterable[Utterance]) -> str:
    """Resolves the mode `"auto"`."""
    if mode in MODES:
        return mode
    if mode != "auto":
        raise ValueError(f"`mode` must be 'auto' or one of {MODES}. Received: {mode!r}")
    core = any(u.part == "test" and u.speaker in CORE_TEST_SPEAKERS for u in utterances)
    return "timit" if core else "speakers"


def split(utterances: Sequence[Utterance], mode: str, *, seed: int = 0) -> Splits:
    """Divides the utterances of TIMIT into train, valid and test."""
    mode = resolve_mode(mode, utterances)
    utterances = [u for u in utterances if not u.sentence.startswith("sa")]
    speakers = {u.speaker for u in utterances}
    by_seed: dict[str, str] = {}
    for sex in "fm":
        by_seed |= _divide_speakers((s for s in speakers if s.startswith(sex)), seed)
    splits: Splits = {name: [] for name in SPLITS}
    for u in utterances:
        name = by_seed[u.speaker] if mode == "speakers" else _timit_split(u)
        # The speaker's name counts, not the folders above it.
        dropped = mode == "wisdom" and name == "train" and "sa" in u.speaker
        if name and not dropped:
            splits[name].append(u)
    needs = "the TRAIN and TEST folders of the complete corpus"
    if mode == "speakers":
        needs = "three men or three women"
    _check_filled(splits, f"Mode {mode!r} needs {needs}", utterances)
    return splits


def _timit_split(utterance: Utterance) -> str | None:
    if utterance.part == "test" and utterance.speaker in DEVELOPMENT_SPEAKERS:
        return "valid"
    if utterance.part == "test" and utterance.speaker not in CORE_TEST_SPEAKERS:
        return None
    return utterance.part


def split_listed(
    utterances: Sequence[Utterance], mode: str = "auto", *, seed: int = 0
) -> tuple[Splits, str]:
    """Divides listed utterances: by their list if it has splits, else by speakers.

    Warns if a speaker is in more than one split.
    """
    if mode not in ("auto", "speakers"):
        raise ValueError(
            "`mode` must be 'auto' or 'speakers' where a list names the files, as "
            f"must `--splits` of the command. Received: {mode!r}"
        )
    speakers = {u.speaker for u in utterances}
    by_seed = _divide_speakers(speakers, seed)
    given = mode == "auto" and all(u.part for u in utterances)
    splits: Splits = {name: [] for name in SPLITS}
    for u in utterances:
        splits[(given and u.part) or by_seed[u.speaker]].append(u)
    needs = "must have files of every split" if given else "needs three speakers"
    _check_filled(splits, f"A list {needs}", utterances)
    places = {(u.speaker, name) for name, members in splits.items() for u in members}
    counts = Counter(speaker for speaker, _ in places)
    if len(places) > len(speakers):
        several = sum(count > 1 for count in counts.values())
        warnings.warn(
            "A list should have each speaker in one split only: a network that is "
            "scored on `test` may have heard its voices in training. "
            f"Received: {several} of {len(speakers)} speakers in several splits",
            stacklevel=2,
        )
    return splits, "list" if given else "speakers"


def _check_filled(splits: Splits, needs: str, given: Sequence[Utterance]) -> None:
    empty = [name for name, members in splits.items() if not members]
    if empty:
        raise ValueError(
            f"{needs}: nothing for {', '.join(empty)}. Received: {len(given)} "
            f"utterances of {len({u.speaker for u in given})} speakers"
        )


def _divide_speakers(speakers: Iterable[str], seed: int) -> dict[str, str]:
    """Assigns an eighth of the speakers to valid, one to test, the rest to train."""
    ordered = sorted(
        speakers,
        key=lambda speaker: hashlib.sha256(f"{seed}:{speaker}".encode()).digest(),
    )
    share = max(1, (len(ordered) + 4) // 8) if len(ordered) >= 3 else 0
    names = ["valid"] * share + ["test"] * share + ["train"] * len(ordered)
    return dict(zip(ordered, names, strict=False))
