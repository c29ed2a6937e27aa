"""Evaluates denoisers: scores by kind of noise and SNR, tables, and pictures."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from experiments.speech import draw_spectrograms, save_sounds
from experiments.tables import table
from keras_ortho import metrics
from keras_ortho.audio import SAMPLE_RATE
from keras_ortho.tasks.mixtures import UNHEARD, Mixture

# Titles and numbers of decimals.
SCORES = {
    "si_sdr": ("SI-SDR, dB", 1),
    # Clamped, as is usual: with clicks, whole frames have no error at all.
    "segmental_snr": ("SegSNR, dB", 1),
    "stoi": ("STOI", 3),
    "pesq_mos_lqo": ("PESQ MOS-LQO", 2),
}
# Denoises waveforms of equal length, `[mixtures, samples]`.
Denoiser = Callable[[np.ndarray], np.ndarray]
# What `score` returns, with a system and a seed, which is empty without training.
Row = Mapping[str, Any]


def score(
    denoise: Denoiser, mixtures: Sequence[Mixture], title: str
) -> list[dict[str, Any]]:
    """Scores a causal denoiser: a row of means for each kind of noise and SNR."""
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
        warnings.simplefilter("ignore", metrics.UnscoredWarning)
        scores = metrics.score_speech(estimates, clean, progress=title)
        scores["segmental_snr"] = np.array(
            [
                metrics.segmental_snr_loizou(*pair, SAMPLE_RATE)
                for pair in zip(estimates, clean, strict=True)
            ]
        )
    places = [(mixture.noise, mixture.snr) for mixture in mixtures]
    rows = []
    for noise, snr in sorted(set(places), key=places.index):
        at = [place == (noise, snr) for place in places]
        means = metrics.mean_scores({name: scores[name][at] for name in SCORES})
        rows.append(
            {"noise": noise, "snr": snr}
            | {name: mean.mean for name, mean in means.items()}
            | {"mixtures": sum(at)}
            | {f"{name}_unscored": mean.unscored for name, mean in means.items()}
        )
    return rows


def tables(rows: Sequence[Row]) -> str:
    """Lays out all scores as tables: together, by SNR, and by kind of noise."""
    systems, noises, snrs, seeds = (
        list(dict.fromkeys(row[key] for row in rows))
        for key in ("system", "noise", "snr", "seed")
    )
    middle = min(snrs, key=abs)
    at = f"at {middle:g} dB"

    def lay_out(titles: Sequence[str], columns: Sequence[tuple]) -> list[str]:
        cells = [[s, *(_cell(rows, s, *column) for column in columns)] for s in systems]
        return table(titles, cells, right=True)

    number = len({*seeds} - {""})
    spread = f", ± over {number} seeds" if number > 1 else ""
    lines = lay_out(
        [f"{at}, mean over noises{spread}", *(title for title, _ in SCORES.values())],
        [(name, middle, noises) for name in SCORES],
    )
    for name, (title, _) in SCORES.items():
        lines += ["", f"{title}, by ratio and, {at}, by noise:", ""]
        lines += lay_out(
            ["mean over noises", *(f"{snr:g} dB" for snr in snrs)],
            [(name, snr, noises) for snr in snrs],
        )
        marked = [f"{n} (\\*)" if n in UNHEARD else n for n in noises]
        lines += ["", *lay_out([at, *marked], [(name, middle, [n]) for n in noises])]
    if set(noises) & set(UNHEARD):
        lines += ["", "(\\*) No network heard this kind of noise in its training."]
    return "\n".join(lines) + "\n"


def _cell(
    rows: Sequence[Row], system: str, name: str, snr: float, noises: Sequence[str]
) -> str:
    """Averages a score over kinds of noise, with its deviation over seeds."""
    own = [
        row
        for row in rows
        if row["system"] == system and row["snr"] == snr and row["noise"] in noises
    ]
    by_seed = groupby(own, key=lambda row: row["seed"])
    means = [np.mean([row[name] for row in of_seed]) for _, of_seed in by_seed]
    digits = SCORES[name][1]
    cell = f"{np.mean(means):.{digits}f}"
    if len(means) > 1:
        cell += f" ± {np.std(means, ddof=1):.{digits}f}"
    if missing := sum(row[f"{name}_unscored"] for row in own):
        # Silent or short, and not in the means.
        cell += f" ({missing} of {sum(row['mixtures'] for row in own)} not scored)"
    return cell


def show(
    out: Path,
    systems: Mapping[str, Denoiser],
    mixtures: Sequence[Mixture],
    pictured: str,
) -> None:
    """Writes mixtures before and after denoising as sounds, and spectrograms of one."""
    for mixture in mixtures:
        sounds = {name: f(mixture.noisy[None])[0] for name, f in systems.items()}
        sounds["clean"] = mixture.clean
        stem = f"{mixture.utterance[:60]}_{mixture.noise}_{mixture.snr:+g}dB"
        save_sounds(out, stem, sounds)
        if mixture.noise == pictured:
            draw_spectrograms(out, sounds)
