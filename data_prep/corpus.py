"""What a corpus is, and the utterances of a copy of TIMIT, however it is laid out."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

AUDIO_SUFFIX = re.compile(r"\.(?:wav|sph|flac)$", re.IGNORECASE)
# TRAIN/DR1/FCJF0/SA1.WAV as on the disc, dr1-fcjf0/sa1.wav as NLTK ships it, in
# either case and below any folders; SA1.WAV.wav is the copy that some
# distributions add in RIFF format.
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
        id: `"{speaker}_{sentence}"`, e.g. `"faem0_sx42"`; of a listed recording what
            the list says, or its path.
        speaker: The speaker; in TIMIT the first letter is the sex, `f` or `m`.
        sentence: The sentence; `sa1` and `sa2` are read by every speaker. `""` for a
            listed recording, as `dialect`.
        dialect: The dialect region, `dr1` to `dr8`.
        part: `"train"`, `"test"`, or None where the copy does not say; the split
            that a list gives.
        path: The recording, relative to the corpus, with forward slashes.
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
        path: The file, relative to the corpus.
        reason: Why not.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Corpus:
    """A copy of TIMIT, or recordings that a list names.

    Attributes:
        root: The folder that the paths are relative to.
        utterances: One per recording, sorted by id.
        passed_over: Audio files of TIMIT that are second copies of an utterance or no
            utterances at all, sorted by path.
        list_sha256: SHA-256 of what the list says, whatever the order of its lines.
            Default: `None`, there was no list.
    """

    root: Path
    utterances: tuple[Utterance, ...]
    passed_over: tuple[Unused, ...]
    list_sha256: str | None = None


def check_folder(root: str | os.PathLike[str]) -> Path:
    """Checks that a corpus is a folder.

    Args:
        root: The folder.

    Returns:
        Its path.

    Raises:
        FileNotFoundError: If there is no such folder.
        NotADirectoryError: If it is a file.
    """
    root = Path(root)
    if not root.exists():
        raise FileNotFoundError(f"The corpus folder does not exist. Received: {root}")
    if not root.is_dir():
        raise NotADirectoryError(f"The corpus must be a folder. Received: {root}")
    return root


def discover(root: str | os.PathLike[str]) -> Corpus:
    """Lists the utterances below a folder.

    Args:
        root: A folder that holds `TRAIN/DR1/FCJF0/SA1.WAV` and so on, or
            `dr1-fcjf0/sa1.wav` and so on, directly or further down.

    Returns:
        The corpus. Of several files of one utterance one in `TRAIN` or `TEST` is used
        before others, then the one with the shortest suffix, then the one whose path
        sorts first.

    Raises:
        FileNotFoundError: If there is no such folder.
        NotADirectoryError: If it is a file.
        OSError: If a folder below it cannot be listed.
        ValueError: If there are no utterances.

    Example:
    ```python
    corpus = discover("TIMIT")
    len(corpus.utterances)  # 6300
    ```
    """
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
    """Paths of audio files below `root`, through links, each folder once.

    By its own path, if it has one there, and not by that of a link to it.
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
                    # macOS leaves "._SA1.WAV" beside a file on foreign file systems.
                    if AUDIO_SUFFIX.search(name) and not name.startswith("."):
                        yield Path(folder, name).relative_to(root).as_posix()
        starts = sorted(links)


def _raise(error: OSError) -> NoReturn:
    raise error
