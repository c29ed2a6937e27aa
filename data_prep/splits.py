"""Divides the utterances of TIMIT into train, valid and test.

No split contains the two SA sentences, which every speaker reads.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence

from .corpus import Utterance

Splits = dict[str, list[Utterance]]

SPLITS = ("train", "valid", "test")
MODES = ("timit", "wisdom", "speakers")

# Number of utterances in the complete corpus.
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
    assign = _assign_by_seed(utterances, seed) if mode == "speakers" else _assign_timit
    splits: Splits = {name: [] for name in SPLITS}
    for utterance in utterances:
        name = assign(utterance)
        if name and not (mode == "wisdom" and _dropped_by_wisdom(name, utterance)):
            splits[name].append(utterance)
    empty = [name for name, members in splits.items() if not members]
    if empty:
        needs = {
            "speakers": "three men or three women",
            "timit": "the TRAIN and TEST folders of the complete corpus",
        }["speakers" if mode == "speakers" else "timit"]
        raise ValueError(
            f"Mode {mode!r} needs {needs}: nothing for {', '.join(empty)}. "
            f"Received: {len({u.speaker for u in utterances})} speakers"
        )
    return splits


def _assign_timit(utterance: Utterance) -> str | None:
    if utterance.part == "train":
        return "train"
    if utterance.part == "test" and utterance.speaker in DEVELOPMENT_SPEAKERS:
        return "valid"
    if utterance.part == "test" and utterance.speaker in CORE_TEST_SPEAKERS:
        return "test"
    return None


def _dropped_by_wisdom(name: str, utterance: Utterance) -> bool:
    # Only the speaker's folder matters: the folders above the part must be ignored, and
    # the sentences sa1 and sa2 are already excluded.
    return name == "train" and "sa" in utterance.speaker


def _assign_by_seed(
    utterances: Sequence[Utterance], seed: int
) -> Callable[[Utterance], str]:
    speakers = {u.speaker for u in utterances}
    names: dict[str, str] = {}
    for sex in "fm":
        names |= divide_speakers((s for s in speakers if s.startswith(sex)), seed)
    return lambda utterance: names[utterance.speaker]


def divide_speakers(speakers: Iterable[str], seed: int) -> dict[str, str]:
    """Assigns an eighth of the speakers to valid, one to test, the rest to train."""
    ordered = sorted(
        speakers,
        key=lambda speaker: hashlib.sha256(f"{seed}:{speaker}".encode()).digest(),
    )
    share = max(1, (len(ordered) + 4) // 8) if len(ordered) >= 3 else 0
    names = dict.fromkeys(ordered, "train")
    names.update(dict.fromkeys(ordered[:share], "valid"))
    names.update(dict.fromkeys(ordered[share : 2 * share], "test"))
    return names
