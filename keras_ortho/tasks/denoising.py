"""Denoising: from noisy speech to the clean speech in it, frame by frame.

Training draws new mixtures all the time; validation and test have each utterance in
each kind of noise. Babble comes from speakers of the same split, and no excerpt of a
noise is in two splits. Some kinds of noise are only in the test.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_ortho.audio import SAMPLE_RATE, at_level, excerpt
from keras_ortho.audio.noises import EARLY
from keras_ortho.checks import check_count, check_decibels, check_number, check_seed
from keras_ortho.extras import require
from keras_ortho.tasks.mixtures import SNRS, TRAINED, Mixture, Noises
from keras_ortho.tasks.pipeline import made_ahead
from keras_ortho.tasks.timit_records import Record

LEVELS = (-36.0, -16.0)  # dB, in training
SECONDS = 2.0
PAUSE = 0.1  # Power relative to the utterance's, below which a piece is a pause.


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
    """Makes training mixtures, new ones in each pass.

    Utterance, excerpt, kind of noise, SNR and level are drawn for each mixture.

    Args:
        records: The utterances, of at least two speakers.
        kinds: Kinds of noise. Default: `TRAINED`.
        batch_size: Mixtures in a batch.
        batches: Batches in a pass.
        seconds: Length of a mixture. Shorter utterances are repeated. Default: 2.
        snrs: The lowest and the highest SNR in dB. Default: -5 and 15.
        recordings: As for `Noises`. Default: none.
        seed: Seed of all random choices. Default: 0.

    Returns:
        A function, for `keras_ortho.training.train`, from the number of a pass to a
        `tf.data.Dataset` of pairs `(noisy, clean)`, float32 `[batch_size, samples]`.

    Raises:
        ImportError: If TensorFlow is not installed.
        ValueError: If an argument is invalid.
    """
    check_count("batch_size", batch_size)
    check_count("batches", batches)
    check_seed("seed", seed)
    samples = round(check_number("seconds", seconds, positive=True) * SAMPLE_RATE)
    check_count("seconds * 8000", samples)
    noises = Noises(records, recordings)
    if not kinds:
        raise ValueError(f"`kinds` must contain at least one. Received: {kinds}")
    for kind in kinds:
        noises.check_kind(kind)
    least, greatest = (check_decibels("snrs", snr) for snr in snrs)
    if least > greatest:
        raise ValueError(f"`snrs` must be (least, greatest). Received: snrs={snrs}")
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
    speech = _piece(record, samples, random)
    while _begins_late(speech):
        record = records[int(random.integers(len(records)))]
        speech = _piece(record, samples, random)
    clean = at_level(speech, level)
    return noises.mix(kind, clean, record.speaker, snr, random), clean


def _piece(record: Record, samples: int, random: np.random.Generator) -> np.ndarray:
    """Cuts out a piece that is not a pause."""
    speech = excerpt(record.audio, samples, random)
    while np.mean(np.square(speech)) < PAUSE:  # That of the whole utterance is 1.
        speech = excerpt(record.audio, samples, random)
    return speech


def _begins_late(speech: np.ndarray) -> bool:
    """Whether all but the last 50 ms are silent, so that nothing reverberates."""
    before = speech[: -round(EARLY * SAMPLE_RATE)]
    return bool(before.size and not before.any())


def padded_batches(pairs: Sequence[Mixture], batch_size: int) -> Any:
    """Makes validation batches of mixtures of any length.

    Args:
        pairs: The mixtures.
        batch_size: Mixtures in a batch; the last one may be smaller.

    Returns:
        A `tf.data.Dataset` of `(noisy, clean, sample_weight)`, float32 `[batch,
        samples]`. The weight of padding is 0. Mixtures of similar length share a
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
    batches = each.padded_batch(batch_size)
    return made_ahead(batches, -(-len(ordered) // batch_size))
