"""Denoising: from noisy speech to the clean speech in it, frame by frame.

Mixtures of the speech in records that `keras-ortho-data` makes with noises that are
made here, or read from files. Training draws new ones all the time; validation and test
have each utterance in each kind of noise. Nobody is heard in two splits, neither as the
speaker nor in the babble, and no excerpt of a noise is: there are kinds that are only
in the test.
"""

import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_ortho.audio import (
    NOISES,
    SAMPLE_RATE,
    babble,
    excerpt,
    late_reverberation,
    mix,
    read_audio,
    resample_to_int16,
)
from keras_ortho.checks import check_count
from keras_ortho.extras import require
from keras_ortho.tasks.timit_records import Record

TRAINED = ("white", "pink", "hum", "clicks", "babble", "reverberation")
UNHEARD = ("wind", "siren")  # In the test alone.
RECORDED = "recorded"
SNRS = (-5.0, 0.0, 5.0, 10.0, 15.0)  # dB
LEVEL = -26.0  # dB below full scale, of speech in validation and test
LEVELS = (-36.0, -16.0)  # dB, in training
SECONDS = 2.0
PAUSE = 0.1  # Power over that of the utterance, below which a piece is no speech.
SUFFIXES = (".wav", ".flac", ".sph", ".ogg", ".mp3", ".aiff")


class Mixture(NamedTuple):
    """Noisy speech, and what is clean in it.

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
        records: The utterances of the split, whose voices the babble is of: at least
            two speakers.
        recordings: Noises that were recorded, each int16 or floating point `[samples]`
            at 8 kHz. Default: none.

    Raises:
        ValueError: If there are not two speakers.
    """

    def __init__(
        self, records: Sequence[Record], recordings: Sequence[np.ndarray] = ()
    ) -> None:
        speakers = {record.speaker for record in records}
        if len(speakers) < 2:
            raise ValueError(
                "`records` must be of two speakers at least, for the babble of others. "
                f"Received: {len(speakers)}"
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
            speaker: The speaker, who is not in the babble.
            snr: Signal-to-noise ratio in dB, of the whole signals.
            random: Source of randomness.

        Returns:
            float64 `[samples]`.

        Raises:
            ValueError: If there is no such kind, or an argument does not fit.
        """
        samples = len(speech)
        if kind == "babble":
            noise = babble(samples, random, self.others[speaker])
        elif kind == "reverberation":
            noise = late_reverberation(speech, random)
        elif kind == RECORDED and len(self.recordings):
            chosen = self.recordings[int(random.integers(len(self.recordings)))]
            noise = excerpt(chosen, samples, random)
        elif kind in NOISES:
            noise = NOISES[kind](samples, random)
        else:
            raise ValueError(
                f"`kind` must be one of {(*TRAINED, *UNHEARD)}, or {RECORDED!r} where "
                f"there are recordings. Received: {kind!r}"
            )
        return mix(speech, noise, snr)


def mixtures(
    records: Sequence[Record],
    kinds: Sequence[str],
    snrs: Sequence[float] = SNRS,
    *,
    recordings: Sequence[np.ndarray] = (),
    seed: int = 0,
) -> Iterator[Mixture]:
    """Mixes each utterance with each kind of noise at each signal-to-noise ratio.

    The noise is the same at all ratios, and depends on the utterance, the kind and the
    seed alone.

    Args:
        records: The utterances, of two speakers at least.
        kinds: Kinds of noise.
        snrs: Signal-to-noise ratios in dB. Default: -5 to 15.
        recordings: As for `Noises`. Default: none.
        seed: Seed of the noises. Default: 0.

    Returns:
        An iterator, with speech at -26 dB.

    Raises:
        ValueError: As `Noises`.

    Example:
    ```python
    records = list(timit.utterances("records", "test"))
    for mixture in mixtures(records, ["pink"], [0.0]):
        print(mixture.utterance, si_sdr(mixture.noisy, mixture.clean))
    ```
    """
    noises = Noises(records, recordings)
    for record in records:
        clean = _at_level(record.audio / 32768, LEVEL)
        for kind in kinds:
            for snr in snrs:
                words = [
                    seed,
                    zlib.crc32(record.id.encode()),
                    zlib.crc32(kind.encode()),
                ]
                random = np.random.default_rng(words)
                noisy = noises.mix(kind, clean, record.speaker, snr, random)
                yield Mixture(
                    record.id,
                    kind,
                    snr,
                    noisy.astype(np.float32),
                    clean.astype(np.float32),
                )


def training_passes(
    records: Sequence[Record],
    kinds: Sequence[str] = TRAINED,
    *,
    batch_size: int,
    batches: int,
    seconds: float = SECONDS,
    snrs: tuple[float, float] = (min(SNRS), max(SNRS)),
    recordings: Sequence[np.ndarray] = (),
    seed: int = 0,
) -> Callable[[Any], Any]:
    """Makes mixtures to train on, new ones in each pass.

    Utterance, excerpt, kind of noise, ratio and level are drawn for each mixture.

    Args:
        records: The utterances, of two speakers at least.
        kinds: Kinds of noise. Default: `TRAINED`.
        batch_size: Mixtures in a batch.
        batches: Batches in a pass.
        seconds: Length of a mixture; shorter utterances are repeated. Default: 2.
        snrs: The least and the greatest ratio in dB. Default: -5 and 15.
        recordings: As for `Noises`. Default: none.
        seed: Seed of all of it. Default: 0.

    Returns:
        For `keras_ortho.training.train`: a function from the number of a pass to a
        `tf.data.Dataset` of pairs `(noisy, clean)`, float32 `[batch_size, samples]`.

    Raises:
        ImportError: If TensorFlow is not installed.
        ValueError: If an argument does not fit.
    """
    check_count("batch_size", batch_size)
    check_count("batches", batches)
    samples = round(seconds * SAMPLE_RATE)
    check_count("seconds * 8000", samples)
    noises = Noises(records, recordings)
    tf = require("tensorflow")

    def batch(number: int, index: int) -> tuple[np.ndarray, np.ndarray]:
        random = np.random.default_rng([seed, number, index])
        pairs = [
            _draw(noises, records, kinds, samples, snrs, random)
            for _ in range(batch_size)
        ]
        noisy, clean = np.array(pairs, np.float32).swapaxes(0, 1)
        return noisy, clean

    def one_pass(number: Any) -> Any:
        def draw(index: Any) -> tuple[Any, Any]:
            pair = tf.numpy_function(batch, [number, index], [tf.float32, tf.float32])
            return tuple(tf.ensure_shape(x, [batch_size, samples]) for x in pair)

        return tf.data.Dataset.range(batches).map(draw)

    return one_pass


def _draw(
    noises: Noises,
    records: Sequence[Record],
    kinds: Sequence[str],
    samples: int,
    snrs: tuple[float, float],
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    record = records[int(random.integers(len(records)))]
    kind = kinds[int(random.integers(len(kinds)))]
    level, snr = random.uniform(*LEVELS), random.uniform(*snrs)
    speech = excerpt(record.audio, samples, random)
    while np.mean(np.square(speech)) < PAUSE:  # That of the whole utterance is 1.
        speech = excerpt(record.audio, samples, random)
    clean = _at_level(speech, level)
    return noises.mix(kind, clean, record.speaker, snr, random), clean


def padded_batches(pairs: Sequence[Mixture], batch_size: int) -> Any:
    """Makes batches of mixtures of any length, to validate on.

    Args:
        pairs: The mixtures.
        batch_size: Mixtures in a batch; the last one may be smaller.

    Returns:
        A `tf.data.Dataset` of `(noisy, clean, sample_weight)`, float32 `[batch,
        samples]`, where the weight of padding is 0. Mixtures of like length share a
        batch.

    Raises:
        ImportError: If TensorFlow is not installed.
        ValueError: If `batch_size` is not a positive integer.
    """
    check_count("batch_size", batch_size)
    tf = require("tensorflow")
    ordered = sorted(pairs, key=lambda pair: len(pair.noisy))
    signature = tf.TensorSpec([None], tf.float32)
    each = tf.data.Dataset.from_generator(
        lambda: ((p.noisy, p.clean, np.ones_like(p.noisy)) for p in ordered),
        output_signature=(signature, signature, signature),
    )
    known = tf.data.experimental.assert_cardinality(-(-len(ordered) // batch_size))
    return each.padded_batch(batch_size).apply(known).prefetch(tf.data.AUTOTUNE)


def read_recordings(
    folder: str | os.PathLike[str],
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Reads recorded noises, and keeps some of the files for the test.

    Args:
        folder: A folder with at least two audio files, in it or further down. Every
            fifth in the order of their names, from the second on, is for the test.

    Returns:
        Those to train on and those to test on, each int16 `[samples]` at 8 kHz.

    Raises:
        FileNotFoundError: If there is no such folder.
        ValueError: If there are not two files, or one is no audio, or silent.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"No such folder of noises. Received: {folder}")
    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES)
    if len(paths) < 2:
        raise ValueError(
            "A folder of noises must hold two files at least, one to test on. "
            f"Received: {len(paths)} in {folder}"
        )
    recordings = []
    for path in paths:
        samples = resample_to_int16(*read_audio(path))
        if not samples.any():
            raise ValueError(f"A noise must not be silent. Received: {path}")
        recordings.append(samples)
    held_out = [index % 5 == 1 for index in range(len(paths))]
    return (
        [r for r, out in zip(recordings, held_out, strict=True) if not out],
        [r for r, out in zip(recordings, held_out, strict=True) if out],
    )


def _at_level(speech: np.ndarray, level: float) -> np.ndarray:
    """Speech of a level in dB below full scale, pauses included."""
    power = np.mean(np.square(speech))
    if not power:
        raise ValueError("`speech` must not be silent. Received: only zeros")
    return speech * (10 ** (level / 20) / np.sqrt(power))
