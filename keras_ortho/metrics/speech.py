"""All speech scores of many utterances, in parallel processes."""

import functools
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_ortho.checks import check_count
from keras_ortho.executors.parallel import in_parallel
from keras_ortho.extras import require
from keras_ortho.metrics.pesq import check_pesq_options, mos_lqo_to_raw, pesq
from keras_ortho.metrics.segsnr import segmental_snr
from keras_ortho.metrics.si_sdr import si_sdr
from keras_ortho.metrics.signals import UnscoredWarning, signal_pairs
from keras_ortho.metrics.stoi import stoi
from keras_ortho.processors import processor_count

# A process takes seconds to start, in which another scores a hundred utterances.
UTTERANCES_PER_PROCESS = 256

NAMES = ("segmental_snr", "global_snr", "si_sdr", "stoi", "pesq_mos_lqo", "pesq_raw")

Pair = tuple[np.ndarray, np.ndarray]


def score_speech(
    estimates: Sequence[np.ndarray],
    references: Sequence[np.ndarray],
    sample_rate: int = 8000,
    *,
    processes: int | None = None,
    progress: bool | str = True,
) -> dict[str, np.ndarray]:
    """Computes the scores that the TIMIT experiments report, for many utterances.

    Args:
        estimates: Sequence of waveforms; int16, or floating point on the scale of
            the references.
        references: As `estimates`, in the same order.
        sample_rate: 8000 or 16000 Hz. Default: 8000.
        processes: Number of processes; with 1, the calling process does the work.
            Default: `None`, one for every 256 utterances, but at most one for each CPU
            that is available.
        progress: Whether to show a progress bar, or its title, such as `"LSTM (2/3)"`
            for one of several passes. Default: `True`, a bar titled "Scoring".

    Returns:
        A dictionary with a float64 array `[utterances]` for each score, in the given
        order, NaN where an utterance has no such score: `"segmental_snr"`,
        `"global_snr"` and `"si_sdr"` in dB, `"stoi"`, and the narrow-band
        `"pesq_mos_lqo"` and `"pesq_raw"`.

    Raises:
        ValueError: If a waveform is not a single finite channel, the sampling rate is
            neither 8000 nor 16000 Hz, the numbers of estimates and references differ,
            or `processes` is not positive.
        ImportError: If a package that computes a score is not installed.

    Example:
    ```python
    scores = score_speech(estimates, references)
    for name, (mean, unscored, utterances) in mean_scores(scores).items():
        print(name, mean, f"({unscored} of {utterances} not scored)")
    ```
    """
    check_pesq_options(sample_rate, "nb", "raw")
    pairs = signal_pairs(estimates, references, sample_rate)
    if processes is None:
        needed = -(-len(pairs) // UTTERANCES_PER_PROCESS)
        processes = max(1, min(needed, processor_count()))
    processes = check_count("processes", processes)
    tqdm = require("tqdm", extra="speech").tqdm
    title = progress if isinstance(progress, str) else "Scoring"
    bar = functools.partial(
        tqdm, total=len(pairs), desc=title, unit="utt", disable=not progress
    )
    score = functools.partial(_score_pair, sample_rate=sample_rate)
    return score_pairs(score, NAMES, pairs, processes, bar)


def score_pairs(
    score: Callable[[Pair], Mapping[str, float]],
    names: Iterable[str],
    pairs: Sequence[Pair],
    processes: int,
    bar: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> dict[str, np.ndarray]:
    """Scores pairs in processes; warns of those that lack a score."""
    score_one = functools.partial(_with_reasons, score)
    results = list(bar(in_parallel(score_one, pairs, processes)))
    for index, (_, reasons) in enumerate(results):
        for reason in reasons:
            warnings.warn(f"Utterance {index}: {reason}", UnscoredWarning, stacklevel=3)
    return {
        name: np.array([scores[name] for scores, _ in results], np.float64)
        for name in names
    }


class MeanScore(NamedTuple):
    """Mean of a score over utterances.

    Attributes:
        mean: Mean over the utterances that have the score; NaN if none has.
        unscored: Number of utterances that do not have it.
        utterances: Total number of utterances.
    """

    mean: float
    unscored: int
    utterances: int


def mean_scores(scores: Mapping[str, np.ndarray]) -> dict[str, MeanScore]:
    """Averages scores, and counts the utterances that are not in the mean.

    Args:
        scores: Arrays `[utterances]` by name, NaN where there is no score, as returned
            by `score_speech`.

    Returns:
        A dictionary with a `MeanScore` for each score.

    Example:
    >>> mean_scores({"stoi": np.array([0.5, np.nan, 1.0])})["stoi"]
    MeanScore(mean=0.75, unscored=1, utterances=3)
    """
    means = {}
    for name, values in scores.items():
        scored = values[~np.isnan(values)]
        mean = float(scored.mean()) if len(scored) else math.nan
        means[name] = MeanScore(mean, len(values) - len(scored), len(values))
    return means


def _with_reasons(
    score: Callable[[Pair], Mapping[str, float]], pair: Pair
) -> tuple[Mapping[str, float], list[str]]:
    """Returns the scores of a pair by name, and the reasons for missing scores."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnscoredWarning)
        scores = score(pair)
    return scores, [str(warning.message) for warning in caught]


def _score_pair(pair: Pair, sample_rate: int) -> dict[str, float]:
    snr = segmental_snr(*pair, sample_rate)
    quality = pesq(*pair, sample_rate)
    ratios = snr.segmental, snr.overall, si_sdr(*pair)
    others = stoi(*pair, sample_rate), quality, mos_lqo_to_raw(quality)
    return dict(zip(NAMES, ratios + others, strict=True))
