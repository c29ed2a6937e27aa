"""The type of a corpus, and discovery of the utterances in a copy of TIMIT."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

AUDIO_SUFFIX = re.compile(r"\.(?:wav|sph|flac)$", re.IGNORECASE)
# TRAIN/DR1/FCJF0/SA1.WAV as on the disc, or dr1-fcjf0/sa1.wav as in NLTK, in upper or
# lower case and below any folders. SA1.WAV.wav is a copy in RIFF format that some
# distributions add.
UTTERANCE_PATH = re.compile(
    r"(?:.*?/)??(?:(?P<part>train|test)/)?(?P<dialect>dr[1-8])[/-]"
    r"(?P<speaker>[fm][a-z]{3}[0-9])/(?P<sentence>s[aix][0-9]+)"
    r"(?P<suffixes>(?:\.(?:wav|sph|flac))+)",
    re.IGNORECASE,
)


class Utterance(NamedTuple):
    """One recording of one sentence by one speaker.

    Attributes:
        id: `"{speaker}_{sentence}"`, e.g. `"faem0_sx42"`. For a listed recording, the
            id in the list, or one derived from its path.
        speaker: The speaker. In TIMIT, the first letter is the sex, `f` or `m`.
        sentence: The sentence, e.g. `"sx42"`. `""` for a listed recording.
        dialect: The dialect region, `dr1` to `dr8`. `""` for a listed recording.
        part: `"train"` or `"test"`, or `None` if the copy has no such folders. For a
            listed recording, the split in the list, or `None`.
        path: Path of the recording relative to the corpus, with forward slashes.
    """

    id: str
    speaker: str
    sentence: str
    dialect: str
    part: str | None
    path: str


class Unused(NamedTuple):
    """Path, relative to the corpus, of a file that yields no record, and the reason."""

    path: str
    reason: str


class Corpus(NamedTuple):
    """A copy of TIMIT, or the recordings in a list.

    Attributes:
        root: Folder to which the paths are relative.
        utterances: One utterance per recording, sorted by id.
        passed_over: Audio files in a copy of TIMIT that are additional copies of an
            utterance or not utterances, sorted by path. Empty for a list.
        list_sha256: SHA-256 of the contents of the list, independent of the order of
            its lines. Default: `None`, no list.
    """

    root: Path
    utterances: list[Utterance]
    passed_over: list[Unused]
    list_sha256: str | None = None


def check_folder(root: str | os.PathLike[str]) -> Path:
    """Checks that a corpus is a folder."""
    root = Path(root)
    if not root.exists():
        raise FileNotFoundError(f"The corpus folder does not exist. Received: {root}")
    if not root.is_dir():
        raise NotADirectoryError(f"The corpus must be a folder. Received: {root}")
    return root


def discover(root: str | os.PathLike[str]) -> Corpus:
    """Finds the utterances in a copy of TIMIT."""
    root = check_folder(root)
    used: dict[str, Utterance] = {}
    passed_over = []
    matches = [(UTTERANCE_PATH.fullmatch(path), path) for path in _audio_files(root)]
    # Of several copies, one in TRAIN or TEST is preferred, then one as on the disc.
    for match, path in sorted(matches, key=_preference):
        if match is None:
            passed_over.append(Unused(path, "Not the path of a TIMIT utterance"))
            continue
        part = match["part"] and match["part"].lower()
        speaker, sentence = match["speaker"].lower(), match["sentence"].lower()
        name, dialect = f"{speaker}_{sentence}", match["dialect"].lower()
        if name in used:
            passed_over.append(Unused(path, f"Another copy of {used[name].path}"))
        else:
            used[name] = Utterance(name, speaker, sentence, dialect, part, path)
    if not used:
        raise ValueError(
            "No utterances: expected files of TIMIT, such as TRAIN/DR1/FCJF0/SA1.WAV "
            "or dr1-fcjf0/sa1.wav. Another corpus needs a list of its files (--list). "
            f"Received: {root}"
        )
    return Corpus(root, sorted(used.values()), sorted(passed_over))


def _preference(found: tuple[re.Match[str] | None, str]) -> tuple[bool, int, str]:
    match, path = found
    return (not (match and match["part"]), len(match["suffixes"]) if match else 0, path)


def _audio_files(root: Path) -> Iterator[str]:
    """Yields the paths of audio files below `root`, relative to it."""
    seen = set()
    for folder, folders, files in os.walk(root, onerror=_raise, followlinks=True):
        place = os.path.realpath(folder)
        if place in seen:  # A link to a folder above it, for example.
            folders.clear()
            continue
        seen.add(place)
        folders.sort()
        for name in files:
            # macOS adds "._SA1.WAV" and the like on foreign file systems.
            if AUDIO_SUFFIX.search(name) and not name.startswith("."):
                yield Path(folder, name).relative_to(root).as_posix()


def _raise(error: OSError) -> NoReturn:
    raise error
