"""Scores of many utterances: at once, in a loop of one's own, or in `model.fit`."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import keras
import numpy as np

from keras_ortho import audio
from keras_ortho.audio.samples import signal_pair, to_float
from keras_ortho.checks import check, check_choice, check_count
from keras_ortho.executors import in_parallel, processor_count
from keras_ortho.extras import require
from keras_ortho.metrics.perceptual import check_pesq, mos_lqo_to_raw, pesq, stoi
from keras_ortho.metrics.ratios import (
    SNRScores,
    UnscoredWarning,
    segmental_snr,
    si_sdr,
)

# Scores a pair of waveforms: estimate, reference, sampling rate in Hz.
Score = Callable[[np.ndarray, np.ndarray, int], float | SNRScores]
SCORES: dict[str, Score] = {
    "segsnr": segmental_snr,
    "stoi": stoi,
    "pesq": pesq,
    "si_sdr": si_sdr,
}
Pair = tuple[np.ndarray, np.ndarray]
Predicted = Literal["next_frame", "log_power", "mask", "waveform"]


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
        estimates: Waveforms; int16, or floating point on the scale of the references.
        references: As `estimates`, in the same order.
        sample_rate: 8000 or 16000 Hz. Default: 8000.
        processes: Number of processes. Default: `None`, one for 256 utterances each.
        progress: Whether to show a progress bar, or its title. Default: `True`.

    Returns:
        The float64 arrays `[utterances]`, NaN for no score, `"segmental_snr"`,
        `"global_snr"`, `"si_sdr"`, `"stoi"`, `"pesq_mos_lqo"` and `"pesq_raw"`.

    Raises:
        ValueError: If an argument is not as described.

    Example:
    ```python
    print(mean_scores(score_speech(estimates, references)))
    ```
    """
    reported: dict[str, Score] = {
        "segmental_snr": segmental_snr,
        "si_sdr": si_sdr,
        "stoi": stoi,
        "pesq_mos_lqo": pesq,
    }
    pairs = list(zip(estimates, references, strict=True))
    processes = _process_number(processes, len(pairs), each=256)
    evaluator = Evaluator(reported, sample_rate, processes=processes)
    title = progress if isinstance(progress, str) else "Scoring"
    look = {"desc": title, "unit": "utt", "disable": not progress}
    tqdm = require("tqdm", extra="speech").tqdm
    evaluator._score(pairs, partial(tqdm, total=len(pairs), **look))
    scores = evaluator.per_item
    scores["global_snr"] = np.array([found["global_snr"] for found in evaluator._found])
    scores["pesq_raw"] = np.array([*map(mos_lqo_to_raw, scores["pesq_mos_lqo"])])
    return scores


def _process_number(given: int | None, utterances: int, each: int) -> int:
    """Returns one process, which takes seconds to start, for `each` utterances."""
    if given is not None:
        return check_count("processes", given)
    return max(1, min(-(-utterances // each), processor_count()))


class MeanScore(NamedTuple):
    """Mean of a score over utterances.

    Attributes:
        mean: Mean over the utterances that have the score; NaN if none has.
        unscored, utterances: Numbers of those that do not have it, and of all.
    """

    mean: float
    unscored: int
    utterances: int


def mean_scores(scores: Mapping[str, np.ndarray]) -> dict[str, MeanScore]:
    """Averages scores, and counts the utterances that are not in the mean.

    Args:
        scores: Arrays `[utterances]` by name, NaN where there is no score.

    Returns:
        A `MeanScore` by name.

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


class Evaluator:
    """Scores pairs of waveforms, batch by batch, in a loop of one's own.

    Args:
        scores: Names of scores: `"segsnr"` (`segmental_snr`), `"stoi"`, `"pesq"`
            (narrow-band MOS-LQO) and `"si_sdr"`; or a dictionary of functions of
            `(estimate, reference, sample_rate)` by name. Default: all four.
        sample_rate: Sampling rate of all waveforms in Hz. Default: 8000.
        processes: Number of processes that score. Default: 1, the calling process.

    Raises:
        ValueError: If there is no such score, or another argument is invalid.

    Example:
    >>> from functools import partial
    >>> evaluator = Evaluator({"estoi": partial(stoi, extended=True)})
    >>> references = np.random.default_rng(0).standard_normal((2, 8000))
    >>> evaluator.update(references, references, lengths=[8000, 6000])
    >>> {name: round(score, 3) for name, score in evaluator.result().items()}
    {'estoi': 1.0}
    """

    def __init__(
        self,
        scores: Sequence[str] | Mapping[str, Score] = tuple(SCORES),
        sample_rate: int = 8000,
        *,
        processes: int = 1,
    ) -> None:
        if not isinstance(scores, Mapping):
            for name in scores:
                check_choice("scores", name, SCORES)
            scores = {name: SCORES[name] for name in scores}
        self.scores = dict(scores)
        if pesq in self.scores.values():
            check_pesq(sample_rate)
        self.sample_rate = sample_rate
        self.processes = check_count("processes", processes)
        self.reset()

    def update(
        self,
        estimates: Sequence[np.ndarray],
        references: Sequence[np.ndarray],
        lengths: Sequence[int] | None = None,
    ) -> None:
        """Scores a batch.

        Args:
            estimates: Waveforms, or `[batch, samples]`; as for `score_speech`.
            references: As `estimates`, in the same order.
            lengths: Samples of each pair before its padding. Default: `None`, all.

        Raises:
            ValueError: If the batch is not as described; none of it is scored.
        """
        pairs = list(zip(estimates, references, strict=True))
        if lengths is not None:
            pairs = [(x[:n], y[:n]) for (x, y), n in zip(pairs, lengths, strict=True)]
        self._score(pairs)

    def result(self) -> dict[str, float]:
        """Returns the mean of each score over the utterances that have it, or NaN."""
        return {name: mean for name, (mean, *_) in mean_scores(self.per_item).items()}

    def reset(self) -> None:
        """Clears all scores."""
        self._found: list[dict[str, float]] = []

    @property
    def per_item(self) -> dict[str, np.ndarray]:
        """Each score of each utterance in their order, float64 `[items]`, or NaN."""
        return {
            name: np.array([scores[name] for scores in self._found], np.float64)
            for name in self.scores
        }

    def _score(self, pairs: Iterable[Pair], bar: Callable[..., Any] = iter) -> None:
        pairs = [signal_pair(*pair) for pair in pairs]
        score = partial(_scores_of, self.scores, self.sample_rate)
        results = list(bar(in_parallel(score, pairs, self.processes)))
        self._found += [scores for scores, _ in results]
        for index, (_, reasons) in enumerate(results):
            for reason in reasons:
                said = f"Utterance {index}: {reason}"
                warnings.warn(said, UnscoredWarning, stacklevel=3)


def _scores_of(
    functions: Mapping[str, Score], sample_rate: int, pair: Pair
) -> tuple[dict[str, float], list[str]]:
    """Returns the scores of a pair by name, and the reasons for missing scores."""
    scores = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnscoredWarning)
        for name, function in functions.items():
            score = function(*pair, sample_rate)
            if isinstance(score, SNRScores):
                scores["global_snr"], score = score.overall, score.segmental
            scores[name] = float(score)
    return scores, list(dict.fromkeys(str(warning.message) for warning in caught))


class SpeechScores(keras.callbacks.Callback):
    """Scores what a model makes of validation speech, and adds it to the epoch's logs.

    The means appear as `val_segsnr`, `val_stoi`, `val_pesq` and `val_si_sdr` to the
    callbacks that follow, and to `History`; a monitor of them needs `mode="max"`. If
    the model puts out a NaN or infinity, the scores are NaN.

    Args:
        utterances: The records of `keras_ortho.tasks.timit.utterances`, or pairs
            `(noisy, clean)` of waveforms, int16 or floating point, `[samples]` each.
        predicts: What the model puts out: `"next_frame"`, the log power of the
            following frame in dB, as in TIMIT's task; `"log_power"`, that of the same
            frame; `"mask"`, a gain for each bin of the noisy frame; or `"waveform"`.
            Frames, `[frames, 129]`, get the phase of the noisy waveform. Otherwise a
            function of a padded output and the noisy waveform to the estimated one.
        scores: As for `Evaluator`. Default: all four.
        every: Epochs between scorings; the logs repeat the last scores. Default: 1.
        number: Number of utterances to score, spread over all. Default: `None`, all.
        features: Function from a noisy waveform to what the model reads, `[steps,
            ...]`. Default: `None`, the waveform itself for `"waveform"`, otherwise
            its log power in dB, `[frames, 129]`.
        sample_rate: Sampling rate of all waveforms in Hz. Default: 8000.
        batch_size: Utterances that the model gets at once, padded with silence to the
            longest of all; with 1, none is padded. Default: 16.
        processes: Number of processes. Default: `None`, one for 32 utterances each.

    Raises:
        ValueError: If an argument is invalid; when used, if the outputs do not fit
            `predicts`.

    Example:
    ```python
    records = timit.utterances("records", "valid")
    model.fit(data.train, epochs=40, callbacks=[SpeechScores(records, "next_frame")])
    ```
    """

    def __init__(
        self,
        utterances: Iterable[Any],
        predicts: Predicted
        | Callable[[np.ndarray, np.ndarray], np.ndarray] = "next_frame",
        scores: Sequence[str] | Mapping[str, Score] = tuple(SCORES),
        *,
        every: int = 1,
        number: int | None = None,
        features: Callable[[np.ndarray], np.ndarray] | None = None,
        sample_rate: int = 8000,
        batch_size: int = 16,
        processes: int | None = None,
    ) -> None:
        super().__init__()
        if not callable(predicts):
            check_choice("predicts", predicts, get_args(Predicted))
        self.predicts = predicts
        self.every = check_count("every", every)
        pairs = [(u.audio, u.audio) if hasattr(u, "audio") else u for u in utterances]
        pairs = [(to_float(x, "noisy"), to_float(y, "clean")) for x, y in pairs]
        check(pairs, "utterances", "not be empty", "none")
        number = len(pairs) if number is None else check_count("number", number)
        self.number = min(number, len(pairs))
        places = np.linspace(0, len(pairs) - 1, self.number).round().astype(int)
        processes = _process_number(processes, self.number, each=32)
        self.evaluator = Evaluator(scores, sample_rate, processes=processes)
        self._noisy, self._clean = zip(*(pairs[place] for place in places), strict=True)
        if predicts == "next_frame":
            self._clean = tuple(map(audio.resynthesize_reference, self._clean))
        if features is None:
            whole = predicts == "waveform"
            features = np.asarray if whole else lambda x: audio.log_power(audio.stft(x))
        size = check_count("batch_size", batch_size)
        padded = self._noisy
        if size > 1:
            longest = max(map(len, padded))
            padded = tuple(np.pad(x, (0, longest - len(x))) for x in padded)
        inputs = [np.asarray(features(x), np.float32) for x in padded]
        starts = range(0, len(inputs), size)
        self._batches = [np.stack(inputs[start : start + size]) for start in starts]
        self._last: dict[str, float] = {}

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Forgets the scores of another `fit`."""
        self._last = {}

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Scores the model if it is due, and adds the scores to `logs`."""
        is_last = epoch + 1 == self.params.get("epochs")
        if epoch % self.every == 0 or is_last or not self._last:
            self._last = self.score(self.model.predict_on_batch)
        if logs is not None:
            logs.update({f"val_{name}": score for name, score in self._last.items()})

    def score(self, predict: Callable[[np.ndarray], Any]) -> dict[str, float]:
        """Returns the mean scores of a function such as `model.predict_on_batch`."""
        outputs = [x for batch in self._batches for x in np.asarray(predict(batch))]
        # Strange outputs may overflow, which shows in the estimates.
        with np.errstate(all="ignore"):
            estimates = [
                self._resynthesize(output.astype(float), noisy)
                for output, noisy in zip(outputs, self._noisy, strict=True)
            ]
        if not all(np.isfinite(estimate).all() for estimate in estimates):
            return dict.fromkeys(self.evaluator.scores, math.nan)
        self.evaluator.reset()
        self.evaluator.update(estimates, self._clean)
        return self.evaluator.result()

    def _resynthesize(self, output: np.ndarray, noisy: np.ndarray) -> np.ndarray:
        if callable(self.predicts):
            return np.asarray(self.predicts(output, noisy))
        whole = self.predicts == "waveform"
        spectrum = noisy[:, None] if whole else audio.stft(noisy)
        output = output.reshape(len(output), -1)[: len(spectrum)]
        wanted = f"be what the model puts out; {self.predicts!r} is {spectrum.shape}"
        check(output.shape == spectrum.shape, "predicts", wanted, output.shape)
        if whole:
            return output[:, 0]
        if self.predicts != "mask":
            output = audio.magnitude(output)
            if self.predicts == "next_frame":
                output = np.concatenate([np.abs(spectrum[:1]), output[:-1]])
            spectrum = np.exp(1j * np.angle(spectrum))
        return audio.istft(output * spectrum, length=len(noisy))
