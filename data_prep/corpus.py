"""The type of a corpus, and discovery of the utterances in a copy of TIMIT."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

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


@dataclass(frozen=True, order=True)
class Utterance:
    """One recording of one sentence by one speaker.

    Attributes:
        id: `"{speaker}_{sentence}"`, e.g. `"faem0_sx42"`. For a listed recording, the
            id in the list, or one derived from its path.
        speaker: The speaker. In TIMIT, the first letter is the sex, `f` or `m`.
        sentence: The sentence. Every speaker reads `sa1` and `sa2`. `""` for a listed
            recording.
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


@dataclass(frozen=True)
class Unused:
    """A file that yields no record.

    Attributes:
        path: Path of the file relative to the corpus.
        reason: The reason why.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Corpus:
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
    utterances: tuple[Utterance, ...]
    passed_over: tuple[Unused, ...]
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
    copies: dict[str, list[tuple[bool, int, str, Utterance]]] = {}
    passed_over = []
    for path in sorted(_audio_files(root)):
        match = UTTERANCE_PATH.fullmatch(path)
        if match is None:
            passed_over.append(Unused(path, "Not the path of a TIMIT utterance"))
        else:
            utterance = _utterance(path, match)
            copy = (utterance.part is None, len(match["suffixes"]), path, utterance)
            copies.setdefault(utterance.id, []).append(copy)
    if not copies:
        raise ValueError(
            "No utterances: expected files of TIMIT, such as TRAIN/DR1/FCJF0/SA1.WAV "
            "or dr1-fcjf0/sa1.wav. Another corpus needs a list of its files (--list). "
            f"Received: {root}"
        )
    utterances = []
    for _, (used, *others) in sorted((key, sorted(c)) for key, c in copies.items()):
        utterances.append(used[-1])
        passed_over += [
            Unused(path, f"Another copy of {used[-1].path}") for *_, path, _ in others
        ]
    return Corpus(root, tuple(utterances), tuple(sorted(passed_over, key=_path)))


def _path(unused: Unused) -> str:
    return unused.path


def _utterance(path: str, match: re.Match[str]) -> Utterance:
    part = match["part"]
    speaker, sentence = match["speaker"].lower(), match["sentence"].lower()
    return Utterance(
        id=f"{speaker}_{sentence}",
        speaker=speaker,
        sentence=sentence,
        dialect=match["dialect"].lower(),
        part=part.lower() if part else None,
        path=path,
    )


def _audio_files(root: Path) -> Iterator[str]:
    """Yields the paths of audio files below `root`, relative to it.

    Follows symbolic links, but visits each folder once: by its own path if that is
    below `root`, otherwise by the path of a link.
    """
    seen, starts = set(), [root]
    while starts:
        links: list[Path] = []
        for start in starts:
            for folder, folders, files in os.walk(start, onerror=_raise):
                status = os.stat(folder)
                identity = (status.st_dev, status.st_ino)
                if identity in seen:
                    folders.clear()
                    continue
                seen.add(identity)
                folders.sort()
                links += filter(Path.is_symlink, (Path(folder, x) for x in folders))
                for name in files:
                    # macOS adds "._SA1.WAV" and the like on foreign file systems.
                    if AUDIO_SUFFIX.search(name) and not name.startswith("."):
                        yield Path(folder, name).relative_to(root).as_posix()
        starts = sorted(links)


def _raise(error: OSError) -> NoReturn:
    raise error
