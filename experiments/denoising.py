"""Evaluates denoisers: scores by kind of noise and SNR, tables, and pictures."""

import csv
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.speech import short
from experiments.tables import table
from keras_ortho.audio import SAMPLE_RATE, log_power, stft, to_int16, write_wav
from keras_ortho.diagnostics import plot_spectrograms
from keras_ortho.files import replacing
from keras_ortho.metrics import (
    UnscoredWarning,
    mean_scores,
    score_speech,
    segmental_snr_loizou,
)
from keras_ortho.tasks.mixtures import UNHEARD, Mixture

NOISY = "noisy"
WIENER = "Wiener filter"
UNTRAINED = (NOISY, WIENER)


class Score(NamedTuple):
    """How a score is printed: its title with unit, and its number of decimals."""

    title: str
    digits: int


SCORES = {
    "si_sdr": Score("SI-SDR, dB", 1),
    # Clamped, as is usual: with clicks, whole frames have no error at all.
    "segmental_snr": Score("SegSNR, dB", 1),
    "stoi": Score("STOI", 3),
    "pesq_mos_lqo": Score("PESQ MOS-LQO", 2),
}

# Denoises waveforms of equal length, `[mixtures, samples]`.
Denoiser = Callable[[np.ndarray], np.ndarray]
# Scores by kind of noise, SNR in dB, and name.
Scores = dict[str, dict[str, dict[str, float]]]


def score(denoise: Denoiser, mixtures: Sequence[Mixture], title: str) -> Scores:
    """Scores a causal denoiser on mixtures, those of an utterance side by side."""
    # Pad all to one length, or a network would be traced for each.
    longest = max(len(mixture.noisy) for mixture in mixtures)
    estimates: list[np.ndarray] = []
    for _, several in groupby(mixtures, key=lambda mixture: mixture.utterance):
        waveforms = [mixture.noisy for mixture in several]
        padded = [np.pad(x, (0, longest - len(x))) for x in waveforms]
        cleaned = denoise(np.stack(padded))
        estimates += [x[: len(y)] for x, y in zip(cleaned, waveforms, strict=True)]
    clean = [mixture.clean for mixture in mixtures]
    with warnings.catch_warnings():
        # Mixtures without a score are counted instead.
        warnings.simplefilter("ignore", UnscoredWarning)
        scores = score_speech(estimates, clean, progress=title)
        ratios = map(
            partial(segmental_snr_loizou, sample_rate=SAMPLE_RATE), estimates, clean
        )
        scores["segmental_snr"] = np.array(list(ratios))
    places: dict[str, dict[str, list[int]]] = {}
    for index, mixture in enumerate(mixtures):
        kind = places.setdefault(mixture.noise, {})
        kind.setdefault(f"{mixture.snr:g}", []).append(index)
    return {
        noise: {snr: _means(scores, at) for snr, at in ratios.items()}
        for noise, ratios in places.items()
    }


def _means(scores: Mapping[str, np.ndarray], at: list[int]) -> dict[str, float]:
    means = mean_scores({name: scores[name][at] for name in SCORES})
    figures: dict[str, float] = {"mixtures": len(at)}
    for name, mean in means.items():
        figures |= {name: mean.mean, _missing(name): mean.unscored}
    return figures


def _missing(name: str) -> str:
    return f"{name}_unscored"


def mean_over(
    runs: Sequence[Scores], name: str, snr: str, noises: Sequence[str]
) -> tuple[float, float | None]:
    """Averages a score over kinds of noise, and over runs from several seeds."""
    values = [np.mean([run[noise][snr][name] for noise in noises]) for run in runs]
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return float(np.mean(values)), spread


def tables(systems: Mapping[str, Sequence[Scores]]) -> str:
    """Lays out all scores as tables: together, by SNR, and by kind of noise."""
    first = next(iter(systems.values()))[0]
    noises, snrs = list(first), list(next(iter(first.values())))
    middle = min(snrs, key=lambda snr: abs(float(snr)))

    def rows(cells: Iterable[tuple[str, str, list[str]]]) -> list[list[str]]:
        cells = list(cells)
        return [
            [system]
            + [
                _figure(*mean_over(runs, name, snr, kinds), SCORES[name].digits)
                for name, snr, kinds in cells
            ]
            for system, runs in systems.items()
        ]

    most = max(map(len, systems.values()))
    spread = f", ± over {most} seeds" if most > 1 else ""
    lines = table(
        [f"at {_ratio(middle)}, mean over noises{spread}"]
        + [each.title for each in SCORES.values()],
        rows((name, middle, noises) for name in SCORES),
        right=True,
    )
    for name, (title, _) in SCORES.items():
        lines += ["", f"{title}, by ratio and, at {_ratio(middle)}, by noise:", ""]
        lines += table(
            ["mean over noises", *map(_ratio, snrs)],
            rows((name, snr, noises) for snr in snrs),
            right=True,
        )
        lines.append("")
        lines += table(
            [f"at {_ratio(middle)}", *map(_marked, noises)],
            rows((name, middle, [noise]) for noise in noises),
            right=True,
        )
    if any(noise in UNHEARD for noise in noises):
        lines += ["", "(\\*) No network heard this kind of noise in its training."]
    missing = [
        f"{title.split(',')[0]} of {system}: {count} of {total}"
        for name, (title, _) in SCORES.items()
        for system, runs in systems.items()
        for count, total in [(_sum(runs, _missing(name)), _sum(runs, "mixtures"))]
        if count
    ]
    if missing:
        counts = "; ".join(missing)
        lines += ["", f"Silent or short, without a score, not in the means: {counts}."]
    return "\n".join(lines) + "\n"


def _sum(runs: Sequence[Scores], name: str) -> int:
    ratios = [ratio for run in runs for kind in run.values() for ratio in kind.values()]
    return sum(int(figures[name]) for figures in ratios)


def write_scores(
    path: Path, systems: Mapping[str, Sequence[Scores]], seed: int
) -> None:
    """Writes all scores as CSV, one line for each system, seed, noise and SNR."""
    with replacing(path) as new, new.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        counts = ["mixtures", *map(_missing, SCORES)]
        writer.writerow(["system", "seed", "noise", "snr", *SCORES, *counts])
        for system, runs in systems.items():
            for number, scores in enumerate(runs):
                own = seed + number if system not in UNTRAINED else ""
                for noise, ratios in scores.items():
                    for snr, figures in ratios.items():
                        values = [f"{figures[name]:.5g}" for name in SCORES]
                        place = [system, own, noise, snr]
                        missing = [figures[name] for name in counts]
                        writer.writerow([*place, *values, *missing])


def _ratio(snr: str) -> str:
    return f"{float(snr):g} dB"


def _marked(noise: str) -> str:
    return f"{noise} (\\*)" if noise in UNHEARD else noise


def _figure(mean: float, spread: float | None, digits: int) -> str:
    return f"{mean:.{digits}f}" + ("" if spread is None else f" ± {spread:.{digits}f}")


def show(
    out: Path,
    systems: Mapping[str, Denoiser],
    mixtures: Sequence[Mixture],
    pictured: str,
) -> None:
    """Writes mixtures before and after denoising as sounds, and spectrograms of one."""
    (out / "wav").mkdir(exist_ok=True)
    for mixture in mixtures:
        sounds = {NOISY: mixture.noisy}
        for name, denoise in systems.items():
            sounds[name] = denoise(mixture.noisy[None])[0]
        sounds["clean"] = mixture.clean
        # Scale all by one factor, to keep the ratios of their levels.
        peak = max(1.0, *(float(np.abs(sound).max()) for sound in sounds.values()))
        for name, sound in sounds.items():
            stem = f"{mixture.noise}_{mixture.snr:+g}dB_{name}".replace(" ", "-")
            path = out / "wav" / f"{short(mixture.utterance)}_{stem}.wav"
            write_wav(path, to_int16(sound / peak), SAMPLE_RATE)
        if mixture.noise == pictured:
            pictures = {name: log_power(stft(sound)) for name, sound in sounds.items()}
            plot_spectrograms(out / "spectrograms.png", pictures)
