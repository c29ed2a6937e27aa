"""PESQ and STOI against scores of other programs, and what has no score."""

import warnings
from functools import partial

import numpy as np
import pytest

from keras_ortho.metrics import (
    UnscoredWarning,
    mos_lqo_to_raw,
    pesq,
    raw_to_mos_lqo,
    stoi,
)
from keras_ortho.metrics.perceptual import count_utterances

pytest.importorskip("pystoi")
pytest.importorskip("pesq")


@pytest.mark.parametrize("mode", ["nb", "wb"])
def test_pesq_of_real_speech(scored_pairs, mode):
    for pair in scored_pairs:
        if mode == "wb" and pair["fs"] == 8000:
            continue
        signals = pair["estimate"], pair["reference"], pair["fs"]
        # The C code works in single precision.
        score = pesq(*signals, mode=mode)
        assert score == pytest.approx(pair[f"pesq_{mode}_mos_lqo"], abs=1e-5)
        if mode == "nb":
            expected = pair["pesq_nb_raw_p862_by_inverting_p862_1"]
            assert pesq(*signals, scale="raw") == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("score", "published", "atol"),
    [
        # As the packages pesq and pysepm publish them, and torchmetrics and pysepm.
        (
            partial(pesq, mode="wb"),
            [1.0832337141036987, 1.1624178886413574, 1.0594704151153564],
            1e-5,
        ),
        (stoi, [0.6739177, 0.8389211808320151, 0.661152205056174], 1e-7),
    ],
)
def test_published(scored_pairs, score, published, atol):
    scores = [
        score(pair["estimate"], pair["reference"], pair["fs"])
        for pair in scored_pairs[:3]
    ]
    np.testing.assert_allclose(scores, published, atol=atol)


@pytest.mark.parametrize("raw", [-0.5, 1.0, 2.75, 4.5])
def test_scales_are_inverse(raw):
    assert mos_lqo_to_raw(raw_to_mos_lqo(raw)) == pytest.approx(raw, abs=1e-12)


def test_perfect(speech):
    reference = speech(3)
    assert pesq(reference, reference, 8000, scale="raw") == pytest.approx(4.5, abs=1e-5)


@pytest.mark.parametrize(
    ("estimate", "reference", "reason"),
    [
        (1.0, 0.0, "the reference is silent"),
        (0.0, 1.0, "the estimate is silent"),
        (0.0, 0.0, "the estimate is silent"),
        (1e-30, 1.0, "too faint"),
        (1.0, 1e-30, "No utterances"),
    ],
)
def test_unscored(estimate, reference, reason, speech):
    with pytest.warns(UnscoredWarning, match=reason) as caught:
        score = pesq(estimate * speech(2), reference * speech(2), 8000)
    assert np.isnan(score)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("sample_rate", [8000, 16000])
def test_utterances_are_counted(sample_rate):
    """Bursts of a tone, of a length and with pauses that P.862 tells apart."""
    time = np.arange(sample_rate) / sample_rate

    def bursts(number, seconds, pause):
        tone = 0.1 * np.sin(2 * np.pi * 1000 * time[: int(seconds * sample_rate)])
        once = np.concatenate([tone, np.zeros(int(pause * sample_rate))])
        return np.concatenate([np.zeros(800), np.tile(once, number)])

    assert count_utterances(bursts(7, 0.5, 0.5), sample_rate) == 7
    assert count_utterances(bursts(7, 0.5, 0.1), sample_rate) == 1
    assert count_utterances(bursts(7, 0.1, 0.5), sample_rate) == 0
    assert count_utterances(np.zeros(10), sample_rate) == 0


def test_more_utterances_than_there_is_room_for(speech):
    """Beyond it the C code writes past its arrays."""
    once = np.concatenate([speech(1)[:6000], np.zeros(5000)])
    few, many = np.tile(once, 25), np.tile(once, 60)
    assert pesq(few, few, 8000) == pytest.approx(pesq(once, once, 8000), abs=1e-3)
    with pytest.warns(UnscoredWarning, match="60 utterances.* score it in parts"):
        assert np.isnan(pesq(many, many, 8000))


@pytest.mark.parametrize(("extended", "key"), [(False, "stoi"), (True, "estoi")])
def test_stoi_of_real_speech(scored_pairs, extended, key):
    for pair in scored_pairs:
        score = stoi(pair["estimate"], pair["reference"], pair["fs"], extended=extended)
        # The extended measure adds noise of 1e-16 to its inputs.
        assert score == pytest.approx(pair[key], abs=1e-9)


@pytest.mark.parametrize(("samples", "scored"), [(4096, False), (4097, True)])
def test_the_least_that_is_scored(samples, scored):
    """Of what is sound throughout, 0.41 s."""
    reference = np.random.default_rng(1).normal(size=samples)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnscoredWarning)
        assert np.isfinite(stoi(reference, reference, 10_000)) == scored
    assert len(caught) == (not scored)


@pytest.mark.parametrize("samples", [0, 2, 1000, 3200])
def test_too_short(samples, speech):
    reference = speech(3, seed=2)[8000 : 8000 + samples]
    with pytest.warns(UnscoredWarning, match="0.41 s|empty"):
        assert np.isnan(stoi(reference, reference, 8000))
