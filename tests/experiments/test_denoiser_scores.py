"""Scores of denoisers by noise and ratio, their means, and their tables."""

import numpy as np
import pytest

from experiments.denoising import score, show, tables
from keras_ortho.audio import read_audio
from keras_ortho.metrics import pesq, segmental_snr_loizou, si_sdr, stoi
from keras_ortho.tasks.mixtures import Mixture

NAMES = ("si_sdr", "segmental_snr", "stoi", "pesq_mos_lqo")
MISSING = [f"{name}_unscored" for name in NAMES]


@pytest.fixture(scope="module")
def mixtures():
    """Two utterances of different length, each in two noises at two ratios."""
    random = np.random.default_rng(0)
    found = []
    for name, samples in (("a", 8000), ("b", 12000)):
        time = np.arange(samples) / 8000
        clean = np.sin(2 * np.pi * 300 * time) * (np.sin(2 * np.pi * 3 * time) > -0.5)
        clean = 0.1 * (clean + 0.01 * random.normal(size=samples))
        for noise in ("white", "wind"):
            for snr in (0.0, 10.0):
                added = 0.07 * 10 ** (-snr / 20) * random.normal(size=samples)
                found.append(Mixture(name, noise, snr, clean + added, clean))
    return found


def test_scores_are_the_means_over_utterances(mixtures):
    def louder(noisy):
        assert noisy.shape == (4, 12000)  # Padded to one length.
        return 2 * noisy

    rows = score(louder, mixtures, "Scoring")
    places = [("white", 0.0), ("white", 10.0), ("wind", 0.0), ("wind", 10.0)]
    assert [(row.pop("noise"), row.pop("snr")) for row in rows] == places
    for row, place in zip(rows, places, strict=True):
        pairs = [(2 * m.noisy, m.clean) for m in mixtures if (m.noise, m.snr) == place]
        expected = {
            "si_sdr": np.mean([si_sdr(*pair) for pair in pairs]),
            "segmental_snr": np.mean(
                [segmental_snr_loizou(*pair, 8000) for pair in pairs]
            ),
            "stoi": np.mean([stoi(*pair, 8000) for pair in pairs]),
            "pesq_mos_lqo": np.mean([pesq(*pair, 8000) for pair in pairs]),
            "mixtures": 2,
            **dict.fromkeys(MISSING, 0),
        }
        assert row == pytest.approx(expected, rel=1e-12)


def test_silent_estimates_are_counted(mixtures):
    for row in score(np.zeros_like, mixtures, "Scoring"):
        assert np.isnan(row["si_sdr"])
        assert row["si_sdr_unscored"] == row["mixtures"] == 2
        assert row["segmental_snr_unscored"] == 0


def run(system, seed, *values):
    """Scores at -5, 0 and 5 dB that are those of white noise, and one more of wind."""
    counts = {"mixtures": 9} | dict.fromkeys(MISSING, 0)
    return [
        {"system": system, "seed": seed, "noise": noise, "snr": snr}
        | dict.fromkeys(NAMES, value + more)
        | counts
        for noise, more in (("white", 0.0), ("wind", 1.0))
        for snr, value in zip((-5.0, 0.0, 5.0), values, strict=True)
    ]


def test_tables():
    noisy = run("noisy", "", 1.0, 2.0, 3.0)
    rows = noisy + run("LSTM", 0, 2.0, 3.0, 4.0) + run("LSTM", 1, 2, 5, 6)
    text = tables(rows)
    lines = text.splitlines()
    assert lines[:4] == [
        "| at 0 dB, mean over noises, ± over 2 seeds | SI-SDR, dB | SegSNR, dB | STOI "
        "| PESQ MOS-LQO |",
        "|---|--:|--:|--:|--:|",
        "| noisy | 2.5 | 2.5 | 2.500 | 2.50 |",
        "| LSTM | 4.5 ± 1.4 | 4.5 ± 1.4 | 4.500 ± 1.414 | 4.50 ± 1.41 |",
    ]
    at = lines.index("SI-SDR, dB, by ratio and, at 0 dB, by noise:")
    assert lines[at + 2 : at + 6] == [
        "| mean over noises | -5 dB | 0 dB | 5 dB |",
        "|---|--:|--:|--:|",
        "| noisy | 1.5 | 2.5 | 3.5 |",
        "| LSTM | 2.5 ± 0.0 | 4.5 ± 1.4 | 5.5 ± 1.4 |",
    ]
    assert lines[at + 7 : at + 11] == [
        r"| at 0 dB | white | wind (\*) |",
        "|---|--:|--:|",
        "| noisy | 2.0 | 3.0 |",
        "| LSTM | 4.0 ± 1.4 | 5.0 ± 1.4 |",
    ]
    assert lines[-1].startswith(r"(\*) No network heard")
    assert sum("by ratio and" in line for line in lines) == 4
    assert "seeds" not in tables(noisy)
    assert "not scored" not in text
    rows[-1]["stoi_unscored"] = 3
    # At 5 dB, of two kinds of noise and two seeds.
    (line,) = (line for line in tables(rows).splitlines() if "not scored" in line)
    assert line.endswith("| 5.500 ± 1.414 (3 of 36 not scored) |")


@pytest.mark.slow
def test_sounds_and_pictures(mixtures, tmp_path):
    systems = {"noisy": lambda x: x, "half": lambda x: x / 2}
    show(tmp_path, systems, mixtures[:4], "wind")
    names = {path.name for path in (tmp_path / "wav").iterdir()}
    assert len(names) == 4 * 3
    before, after = (
        read_audio(tmp_path / "wav" / f"a_wind_+10dB_{name}.wav")[0]
        for name in ("noisy", "half")
    )
    # All by one factor.
    np.testing.assert_allclose(2.0 * after, before, atol=2)
    assert (tmp_path / "spectrograms.png").stat().st_size > 10_000
