"""Mixtures of recorded speech with noises, synthetic or from files.

The speech comes from the records that `keras-ortho-data` writes. Each utterance is
mixed with each kind of noise at each signal-to-noise ratio.
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_ortho.audio import (
    NOISES,
    at_level,
    babble,
    excerpt,
    late_reverberation,
    mix,
    read_audio,
    resample_to_int16,
)
from keras_ortho.checks import check_decibels, check_seed
from keras_ortho.tasks.timit_records import Record

TRAINED = ("white", "pink", "hum", "clicks", "babble", "reverberation")
UNHEARD = ("wind", "siren")  # Only in the test.
RECORDED = "recorded"
SNRS = (-5.0, 0.0, 5.0, 10.0, 15.0)  # dB
LEVEL = -26.0  # dB relative to full scale, of speech in validation and test
SUFFIXES = (".wav", ".flac", ".sph", ".ogg", ".mp3", ".aiff")


class Mixture(NamedTuple):
    """Noisy speech, and the clean speech in it.

    Attributes:
        utterance: Id of the utterance.
        noise: The kind of noise.
        snr: Signal-to-noise ratio in dB.
        noisy: float32 `[samples]`.
        clean: float32 `[samples]`.
    """

    utterance: str
    noise: str
    snr: float
    noisy: np.ndarray
    clean: np.ndarray


class Noises:
    """Noises to mix with the speech of a split.

    Args:
        records: The utterances of the split, of at least two speakers. The babble
            consists of their voices.
        recordings: Recorded noises, each int16 or floating point `[samples]` at
            8 kHz. Default: none.

    Raises:
        ValueError: If there are fewer than two speakers.
    """

    def __init__(
        self, records: Sequence[Record], recordings: Sequence[np.ndarray] = ()
    ) -> None:
        speakers = {record.speaker for record in records}
        if len(speakers) < 2:
            raise ValueError(
                "`records` must have at least two speakers, for babble. Received: "
                f"{len(speakers)}"
            )
        self.recordings = recordings
        self.others: dict[str, list[np.ndarray]] = {
            speaker: [r.audio for r in records if r.speaker != speaker]
            for speaker in speakers
        }

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
            kind: The kind of noise: one of `TRAINED` and `UNHEARD`, or `"recorded"`.
            speech: `[samples]` at 8 kHz, floating point.
            speaker: The speaker, whose voice is not in the babble.
            snr: Signal-to-noise ratio in dB, of the whole signals.
            random: Source of randomness.

        Returns:
            float64 `[samples]`.

        Raises:
            ValueError: If there is no such kind, or an argument is invalid.
        """
        self.check_kind(kind)
        samples = len(speech)
        if kind == "babble":
            noise = babble(samples, random, self.others[speaker])
        elif kind == "reverberation":
            noise = late_reverberation(speech, random)
        elif kind == RECORDED:
            chosen = self.recordings[int(random.integers(len(self.recordings)))]
            noise = excerpt(chosen, samples, random)
        else:
            noise = NOISES[kind](samples, random)
        return mix(speech, noise, snr)

    def check_kind(self, kind: str) -> None:
        """Checks that a kind of noise is available.

        Raises:
            ValueError: If it is not.
        """
        there = (*TRAINED, *UNHEARD, *([RECORDED] if len(self.recordings) else []))
        if kind not in there:
            raise ValueError(
                f"`kind` must be one of {(*TRAINED, *UNHEARD)}, or {RECORDED!r} if "
                f"recordings are given. Received: {kind!r}"
            )


def mixtures(
    records: Sequence[Record],
    kinds: Sequence[str],
    snrs: Sequence[float] = SNRS,
    *,
    recordings: Sequence[np.ndarray] = (),
    seed: int = 0,
) -> Iterator[Mixture]:
    """Mixes each utterance with each kind of noise at each signal-to-noise ratio.

    The noise is the same at all ratios. It depends only on the utterance, the kind and
    the seed.

    Args:
        records: The utterances, of at least two speakers.
        kinds: Kinds of noise.
        snrs: Signal-to-noise ratios in dB, from -200 to 200. Default: -5 to 15.
        recordings: As for `Noises`. Default: none.
        seed: Seed of the noises. Default: 0.

    Returns:
        An iterator over the mixtures, with speech at -26 dB.

    Raises:
        ValueError: As for `Noises`; or if a kind is unknown, a ratio is out of range,
            or the seed is negative. During iteration, if an utterance cannot be mixed:
            one of less than 50 ms, for example, has no reverberation.

    Example:
    ```python
    records = list(timit.utterances("records", "test"))
    for mixture in mixtures(records, ["pink"], [0.0]):
        print(mixture.utterance, si_sdr(mixture.noisy, mixture.clean))
    ```
    """
    check_seed("seed", seed)
    noises = Noises(records, recordings)
    for kind in kinds:
        noises.check_kind(kind)
    ratios = [check_decibels("snrs", snr) for snr in snrs]
    return _mixtures(noises, records, kinds, ratios, seed)


def _mixtures(
    noises: Noises,
    records: Sequence[Record],
    kinds: Sequence[str],
    snrs: Sequence[float],
    seed: int,
) -> Iterator[Mixture]:
    for record in records:
        clean = at_level(record.audio, LEVEL)
        for kind in kinds:
            for snr in snrs:
                words = (zlib.crc32(text.encode()) for text in (record.id, kind))
                random = np.random.default_rng([seed, *words])
                try:
                    noisy = noises.mix(kind, clean, record.speaker, snr, random)
                except ValueError as error:
                    raise ValueError(
                        f"An utterance cannot be mixed with {kind!r}: {error}. "
                        f"Received: {record.id}"
                    ) from error
                yield Mixture(
                    record.id,
                    kind,
                    snr,
                    noisy.astype(np.float32),
                    clean.astype(np.float32),
                )


def read_recordings(
    folder: str | os.PathLike[str],
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Reads recorded noises, and reserves some of the files for the test.

    Args:
        folder: A folder with at least two audio files, directly or in subfolders.
            Names that begin with a dot are ignored. Every fifth file in the order of
            their paths, from the second on, is for the test.

    Returns:
        The noises for training and those for the test, each int16 `[samples]` at
        8 kHz.

    Raises:
        FileNotFoundError: If there is no such folder.
        ValueError: If there are fewer than two files, or one is not audio or silent.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"The folder of noises does not exist. Received: {folder}"
        )
    paths = sorted(
        path
        for path in folder.rglob("*")
        # macOS leaves files `._x.wav` that are not audio.
        if path.suffix.lower() in SUFFIXES
        and not path.name.startswith(".")
        and path.is_file()
    )
    if len(paths) < 2:
        raise ValueError(
            "A folder of noises must contain at least two files, one of them for the "
            f"test. Received: {len(paths)} in {folder}"
        )
    recordings = []
    for path in paths:
        samples = resample_to_int16(*read_audio(path))
        if not samples.any():
            raise ValueError(f"A noise must not be silent. Received: {path}")
        recordings.append(samples)
    held_out = recordings[1::5]
    del recordings[1::5]
    return recordings, held_out
