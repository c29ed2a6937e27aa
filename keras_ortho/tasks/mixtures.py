"""Mixtures of recorded speech with noises, synthetic or from files."""

import itertools
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_ortho import audio
from keras_ortho.audio.noises import at_level, late_reverberation
from keras_ortho.checks import check
from keras_ortho.files import FilePath
from keras_ortho.tasks.timit import Record

TRAINED = ("white", "pink", "hum", "clicks", "babble", "reverberation")
UNHEARD = ("wind", "siren")  # Only in the test.
RECORDED = "recorded"
SNRS = (-5.0, 0.0, 5.0, 10.0, 15.0)  # dB
LEVEL = -26.0  # dB relative to full scale, of speech in validation and test
SUFFIXES = (".wav", ".flac", ".sph", ".ogg", ".mp3", ".aiff")


class Mixture(NamedTuple):
    """Noisy speech, and the clean speech in it.

    Attributes:
        utterance, noise: Id of the utterance, and kind of the noise.
        snr: Signal-to-noise ratio in dB.
        noisy, clean: The signals, float32 `[samples]`.
    """

    utterance: str
    noise: str
    snr: float
    noisy: np.ndarray
    clean: np.ndarray


class Noises:
    """Noises to mix with the speech of a split.

    Args:
        records: The utterances of the split, of at least two speakers, for babble.
        recordings: Recorded noises, each `[samples]` at 8 kHz. Default: none.

    Raises:
        ValueError: If there are fewer than two speakers.
    """

    def __init__(
        self, records: Sequence[Record], recordings: Sequence[np.ndarray] = ()
    ) -> None:
        self.recordings = recordings
        self.others = {
            speaker: [r.audio for r in records if r.speaker != speaker]
            for speaker in {record.speaker for record in records}
        }
        wanted, found = "have at least two speakers, for babble", len(self.others)
        check(found > 1, "records", wanted, found)

    def mix(
        self,
        kind: str,
        speech: np.ndarray,
        speaker: str,
        snr: float,
        random: np.random.Generator,
    ) -> np.ndarray:
        """Adds noise to speech.

        Args:
            kind: One of `TRAINED` and `UNHEARD`, or `"recorded"`.
            speech: `[samples]` at 8 kHz, floating point.
            speaker: The speaker, whose voice is not in the babble.
            snr: Signal-to-noise ratio in dB, of the whole signals.
            random: Random generator.

        Returns:
            float64 `[samples]`.

        Raises:
            ValueError: If there is no such kind, or an argument is invalid.
        """
        self.check_kind(kind)
        if kind == "babble":
            noise = audio.babble(len(speech), random, self.others[speaker])
        elif kind == "reverberation":
            noise = late_reverberation(speech, random)
        elif kind == RECORDED:
            noise = audio.excerpt(one_of(self.recordings, random), len(speech), random)
        else:
            noise = audio.NOISES[kind](len(speech), random)
        return audio.mix(speech, noise, snr)

    def check_kind(self, kind: str) -> None:
        """Raises a `ValueError` if a kind of noise is not available."""
        there = (*TRAINED, *UNHEARD)
        known = kind in there or (kind == RECORDED and len(self.recordings))
        wanted = f"be one of {there}, or {RECORDED!r} if recordings are given"
        check(known, "kind", wanted, repr(kind))


def one_of(items: Sequence[Any], random: np.random.Generator) -> Any:
    """Draws one of some items."""
    return items[int(random.integers(len(items)))]


def mixtures(
    records: Sequence[Record],
    kinds: Sequence[str],
    snrs: Sequence[float] = SNRS,
    *,
    recordings: Sequence[np.ndarray] = (),
    seed: int = 0,
) -> Iterator[Mixture]:
    """Mixes each utterance with each kind of noise at each signal-to-noise ratio.

    Args:
        records: The utterances, of at least two speakers.
        kinds: Kinds of noise.
        snrs: Signal-to-noise ratios in dB. Default: -5 to 15.
        recordings: As for `Noises`. Default: none.
        seed: Seed of the noises, with the utterance and the kind. Default: 0.

    Yields:
        The mixtures, with speech at -26 dB.

    Raises:
        ValueError: If an argument is invalid.

    Example:
    ```python
    records = list(timit.utterances("records", "test"))
    for mixture in mixtures(records, ["pink"], [0.0]):
        print(mixture.utterance, si_sdr(mixture.noisy, mixture.clean))
    ```
    """
    noises = Noises(records, recordings)
    for record in records:
        clean = at_level(record.audio, LEVEL)
        for kind, snr in itertools.product(kinds, snrs):
            words = (zlib.crc32(text.encode()) for text in (record.id, kind))
            random = np.random.default_rng([seed, *words])
            noisy = noises.mix(kind, clean, record.speaker, snr, random)
            sounds = (sound.astype(np.float32) for sound in (noisy, clean))
            yield Mixture(record.id, kind, snr, *sounds)


def read_recordings(folder: FilePath) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Reads recorded noises, and reserves some of the files for the test.

    Args:
        folder: A folder with at least two audio files, directly or in subfolders. Of
            their sorted paths, the second and then every fifth is for the test.

    Returns:
        The noises for training and for the test, each int16 `[samples]` at 8 kHz.

    Raises:
        ValueError: If there are fewer than two files, or one is not audio or silent.
    """
    paths = sorted(
        path
        for path in Path(folder).rglob("*")
        # macOS leaves files `._x.wav` that are not audio.
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )
    wanted = "contain at least two files of noises, one of them for the test"
    check(len(paths) > 1, "folder", wanted, f"{len(paths)} in {folder}")
    recordings = []
    for path in paths:
        recordings.append(audio.resample_to_int16(*audio.read_audio(path)))
        if not recordings[-1].any():
            raise ValueError(f"A noise must not be silent. Received: {path}")
    held_out = recordings[1::5]
    del recordings[1::5]
    return recordings, held_out
