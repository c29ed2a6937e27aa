"""Denoising: from noisy speech to the clean speech in it, frame by frame.

Training draws new mixtures all the time; validation and test have each utterance in
each kind of noise, some of which are only in the test.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_ortho.audio import SAMPLE_RATE, excerpt
from keras_ortho.audio.noises import EARLY, at_level
from keras_ortho.checks import check_count
from keras_ortho.extras import require
from keras_ortho.tasks.mixtures import SNRS, TRAINED, Mixture, Noises, one_of
from keras_ortho.tasks.pipeline import made_ahead
from keras_ortho.tasks.timit import Record

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
    """Makes training mixtures, with everything drawn anew for each of them.

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
        ValueError: If an argument is invalid.
    """
    tf = require("tensorflow")
    check_count("batch_size", batch_size)
    samples = check_count("seconds * 8000", round(seconds * SAMPLE_RATE))
    late = round(EARLY * SAMPLE_RATE)
    noises = Noises(records, recordings)
    for kind in kinds:
        noises.check_kind(kind)

    def draw(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        kind, level = one_of(kinds, random), random.uniform(*LEVELS)
        power = 0.0
        while power < PAUSE:
            record = one_of(records, random)
            speech = excerpt(record.audio, samples, random)
            # What sounds in the last 50 ms alone does not reverberate.
            power = np.mean(np.square(speech[: max(1, samples - late)]))
        clean, snr = at_level(speech, level), random.uniform(*snrs)
        return noises.mix(kind, clean, record.speaker, snr, random), clean

    def batch(number: int, index: int) -> np.ndarray:
        random = np.random.default_rng([seed, number, index])
        pairs = [draw(random) for _ in range(batch_size)]
        return np.array(pairs, np.float32).swapaxes(0, 1)

    def one_pass(number: Any) -> Any:
        def make(index: Any) -> tuple[Any, Any]:
            pair = tf.numpy_function(batch, [number, index], tf.float32)
            noisy, clean = tf.unstack(tf.ensure_shape(pair, [2, batch_size, samples]))
            return noisy, clean

        return tf.data.Dataset.range(batches).map(make)

    return one_pass


def padded_batches(pairs: Sequence[Mixture], batch_size: int) -> Any:
    """Makes validation batches of mixtures of any length.

    Args:
        pairs: The mixtures.
        batch_size: Mixtures of similar length in a batch; the last may have fewer.

    Returns:
        A `tf.data.Dataset` of `(noisy, clean, sample_weight)`, float32 `[batch,
        samples]`. The weight of padding is 0.
    """
    tf = require("tensorflow")
    ordered = sorted(pairs, key=lambda pair: len(pair.noisy))
    each = tf.data.Dataset.from_generator(
        lambda: ((p.noisy, p.clean, np.ones_like(p.noisy)) for p in ordered),
        output_signature=(tf.TensorSpec([None], tf.float32),) * 3,
    )
    return made_ahead(each.padded_batch(batch_size), -(-len(ordered) // batch_size))
