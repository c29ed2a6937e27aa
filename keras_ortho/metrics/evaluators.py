"""Speech metrics that accumulate over batches of waveforms.

They run on the host and are not subclasses of `keras.metrics.Metric`: they score whole
waveforms of different lengths with NumPy and C code, which neither a compiled
evaluation step nor variables on a device can hold. They keep the score of every
utterance, NaN for those that cannot be scored.
"""

import abc
import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from keras_ortho.metrics.active_level import Version, check_version
from keras_ortho.metrics.pesq import check_pesq_options, pesq, raw_to_mos_lqo
from keras_ortho.metrics.segsnr import check_snr_options, segmental_snr
from keras_ortho.metrics.si_sdr import si_sdr
from keras_ortho.metrics.signals import check_sample_rate, signal_pairs
from keras_ortho.metrics.stoi import stoi

RAW_PESQ_BOUNDS = (-0.5, 4.5)
WIDE_BAND_PESQ_BOUNDS = (1.0, 4.65)


class Evaluator(abc.ABC):
    """Base class of evaluators, which score pairs of waveforms and keep the scores.

    A subclass sets `bounds` and defines `score`.

    Args:
        sample_rate: Sampling rate of all waveforms in Hz.
        name: Name under which to report the result.

    Raises:
        ValueError: If the sampling rate is below 1000 Hz, or infinite.

    Attributes:
        unit: Unit of the score; empty if it has none.
        higher_is_better: Whether a higher score is better.
        bounds: Lower and upper end of the scale. (PESQ scores slightly below it for
            some estimates that have nothing in common with the reference.)
        name: Name under which to report the result.
    """

    unit: ClassVar[str] = ""
    higher_is_better: ClassVar[bool] = True
    bounds: tuple[float, float]

    def __init__(self, sample_rate: int, name: str) -> None:
        check_sample_rate(sample_rate)
        self.sample_rate = sample_rate
        self.name = name
        self._scores: list[float] = []

    @abc.abstractmethod
    def score(self, estimate: np.ndarray, reference: np.ndarray) -> float:
        """Computes the score of one pair of waveforms.

        Args:
            estimate: `[samples]`.
            reference: `[samples]`.

        Returns:
            The score; NaN if the pair cannot be scored.
        """

    def update(
        self,
        estimates: Sequence[np.ndarray],
        references: Sequence[np.ndarray],
        lengths: Sequence[int] | None = None,
    ) -> None:
        """Scores a batch.

        Args:
            estimates: Sequence of waveforms, or `[batch, samples]`; int16, or
                floating point on the scale of the references.
            references: As `estimates`, in the same order.
            lengths: Number of samples of each pair; the rest is padding. Default:
                `None`, no padding.

        Raises:
            ValueError: If the batch is not as described; then none of it is scored.
        """
        pairs = signal_pairs(estimates, references, self.sample_rate, lengths)
        self._scores += [self.score(*pair) for pair in pairs]

    def result(self) -> float:
        """Returns the mean over the scored utterances; NaN if there are none."""
        scored = self.per_item[~np.isnan(self.per_item)]
        return float(scored.mean()) if len(scored) else math.nan

    def reset(self) -> None:
        """Clears all scores."""
        self._scores = []

    @property
    def per_item(self) -> np.ndarray:
        """Scores in the order of the updates, float64 `[items]`, NaN if unscored."""
        return np.array(self._scores, np.float64)

    @property
    def num_unscored(self) -> int:
        """Number of utterances that could not be scored."""
        return int(np.isnan(self.per_item).sum())


class SegmentalSNR(Evaluator):
    """Mean segmental SNR of utterances, in dB.

    Args:
        sample_rate: Sampling rate in Hz. Default: 8000.
        name: Name of the result. Default: `"segmental_snr"`.
        activity: `"p56"` or `"all"`, as for `keras_ortho.metrics.segmental_snr`.
            Default: `"p56"`.
        interpolate: As for `keras_ortho.metrics.segmental_snr`. Default: `True`.
        clamp: As for `keras_ortho.metrics.segmental_snr`. Default: `None`.
        voicebox: As for `keras_ortho.metrics.segmental_snr`. Default: `"2019"`.

    Raises:
        ValueError: If an option is not allowed.

    Example:
    >>> metric = SegmentalSNR(8000, interpolate=False)
    >>> references = np.sin(np.arange(16000) / 5).reshape(2, 8000)
    >>> metric.update(0.9 * references, references, lengths=[8000, 4000])
    >>> round(metric.result(), 6), metric.num_unscored
    (20.0, 0)
    """

    unit = "dB"

    def __init__(
        self,
        sample_rate: int = 8000,
        name: str = "segmental_snr",
        *,
        activity: Literal["p56", "all"] = "p56",
        interpolate: bool = True,
        clamp: tuple[float, float] | None = None,
        voicebox: Version = "2019",
    ) -> None:
        check_snr_options(activity, clamp)
        check_version(voicebox)
        super().__init__(sample_rate, name)
        self.activity = activity
        self.interpolate = interpolate
        self.clamp = clamp
        self.voicebox = voicebox
        self.bounds: tuple[float, float] = clamp or (-math.inf, math.inf)

    def score(self, estimate: np.ndarray, reference: np.ndarray) -> float:
        """Computes the segmental SNR of one pair; see `Evaluator.score`."""
        return segmental_snr(
            estimate,
            reference,
            self.sample_rate,
            activity=self.activity,
            interpolate=self.interpolate,
            clamp=self.clamp,
            voicebox=self.voicebox,
        ).segmental


class SISDR(Evaluator):
    """Mean scale-invariant signal-to-distortion ratio of utterances, in dB.

    Args:
        sample_rate: Sampling rate in Hz, which has no effect. Default: 8000.
        name: Name of the result. Default: `"si_sdr"`.
        zero_mean: As for `keras_ortho.metrics.si_sdr`. Default: `False`.

    Example:
    >>> metric = SISDR()
    >>> references = np.eye(2, 1000)
    >>> metric.update(references + 0.1 * np.eye(2, 1000, k=2), references)
    >>> round(metric.result(), 6)
    20.0
    """

    unit = "dB"
    bounds: tuple[float, float] = (-math.inf, math.inf)

    def __init__(
        self, sample_rate: int = 8000, name: str = "si_sdr", *, zero_mean: bool = False
    ) -> None:
        super().__init__(sample_rate, name)
        self.zero_mean = zero_mean

    def score(self, estimate: np.ndarray, reference: np.ndarray) -> float:
        """Computes the ratio of one pair; see `Evaluator.score`."""
        return si_sdr(estimate, reference, zero_mean=self.zero_mean)


class STOI(Evaluator):
    """Mean short-time objective intelligibility of utterances.

    Args:
        sample_rate: Sampling rate in Hz. Default: 8000.
        name: Name of the result. Default: `"stoi"`.
        extended: Whether to compute the extended measure. Default: `False`.

    Example:
    >>> metric = STOI(8000)
    >>> references = np.random.default_rng(0).standard_normal((2, 8000))
    >>> metric.update(references, references)
    >>> round(metric.result(), 3)
    1.0
    """

    bounds: tuple[float, float] = (-1.0, 1.0)

    def __init__(
        self, sample_rate: int = 8000, name: str = "stoi", *, extended: bool = False
    ) -> None:
        super().__init__(sample_rate, name)
        self.extended = extended

    def score(self, estimate: np.ndarray, reference: np.ndarray) -> float:
        """Computes the intelligibility of one pair; see `Evaluator.score`."""
        return stoi(estimate, reference, self.sample_rate, extended=self.extended)


class PESQ(Evaluator):
    """Mean perceptual evaluation of speech quality of utterances.

    Args:
        sample_rate: 8000 or 16000 Hz. Default: 8000.
        name: Name of the result. Default: `"pesq"`.
        mode: `"nb"` or `"wb"`, as for `keras_ortho.metrics.pesq`. Default: `"nb"`.
        scale: `"mos_lqo"` or `"raw"`, as for `keras_ortho.metrics.pesq`. Default:
            `"mos_lqo"`.

    Raises:
        ValueError: If an option is not allowed, or does not fit another.

    Example:
    >>> metric = PESQ(8000, scale="raw")
    >>> metric.bounds
    (-0.5, 4.5)
    """

    unit = "MOS"

    def __init__(
        self,
        sample_rate: int = 8000,
        name: str = "pesq",
        *,
        mode: Literal["nb", "wb"] = "nb",
        scale: Literal["mos_lqo", "raw"] = "mos_lqo",
    ) -> None:
        check_pesq_options(sample_rate, mode, scale)
        super().__init__(sample_rate, name)
        self.mode = mode
        self.scale = scale
        self.bounds: tuple[float, float]
        least, greatest = RAW_PESQ_BOUNDS
        if mode == "wb":
            self.bounds = WIDE_BAND_PESQ_BOUNDS
        elif scale == "raw":
            self.bounds = RAW_PESQ_BOUNDS
        else:
            self.bounds = (raw_to_mos_lqo(least), raw_to_mos_lqo(greatest))

    def score(self, estimate: np.ndarray, reference: np.ndarray) -> float:
        """Computes the quality of one pair; see `Evaluator.score`."""
        return pesq(
            estimate, reference, self.sample_rate, mode=self.mode, scale=self.scale
        )
