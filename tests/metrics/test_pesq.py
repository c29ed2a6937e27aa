"""Tests of PESQ."""

import numpy as np
import pytest

from keras_ortho.metrics.pesq import (
    count_utterances,
    mos_lqo_to_raw,
    pesq,
    raw_to_mos_lqo,
)
from keras_ortho.metrics.signals import UnscoredWarning

pytest.importorskip("pesq")


@pytest.mark.parametrize("mode", ["nb", "wb"])
def test_real_speech(scored_pairs, mode):
    for pair in scored_pairs:
        if mode == "wb" and pair["fs"] == 8000:
            continue
        score = pesq(pair["estimate"], pair["reference"], pair["fs"], mode=mode)
        # The C code works in single precision.
        assert score == pytest.approx(pair[f"pesq_{mode}_mos_lqo"], abs=1e-5)


def test_published(scored_pairs):
    # As the packages pesq and pysepm publish them.
    published = [1.0832337141036987, 1.1624178886413574, 1.0594704151153564]
    scores = [
        pesq(pair["estimate"], pair["reference"], pair["fs"], mode="wb")
        for pair in scored_pairs[:3]
    ]
    np.testing.assert_allclose(scores, published, atol=1e-5)


def test_raw_real_speech(scored_pairs):
    for pair in scored_pairs:
        score = pesq(pair["estimate"], pair["reference"], pair["fs"], scale="raw")
        expected = pair["pesq_nb_raw_p862_by_inverting_p862_1"]
        assert score == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("raw", [-0.5, 1.0, 2.75, 4.5])
def test_scales_are_inverse(raw):
    assert mos_lqo_to_raw(raw_to_mos_lqo(raw)) == pytest.approx(raw, abs=1e-12)


def test_argument_order(speech):
    package = pytest.importorskip("pesq")
    reference = speech(3)
    estimate = reference + 0.003 * np.random.default_rng(1).standard_normal(24000)
    score = pesq(estimate, reference, 8000)
    assert score == package.pesq(8000, reference, estimate, "nb")
    assert score != package.pesq(8000, estimate, reference, "nb")


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


def test_raw_scores_far_from_the_scale():
    assert raw_to_mos_lqo(-1e6) == 0.999
    assert raw_to_mos_lqo(1e6) == pytest.approx(4.999)
    with pytest.raises(ValueError, match="Received: raw=nan"):
        raw_to_mos_lqo(float("nan"))
    with pytest.raises(ValueError, match="Received: mos_lqo=None"):
        mos_lqo_to_raw(None)


@pytest.mark.parametrize("mos", [0.999, 5.0, float("inf")])
def test_a_listening_quality_that_is_none(mos):
    with pytest.raises(ValueError, match=f"Received: mos_lqo={mos}"):
        mos_lqo_to_raw(mos)
    assert np.isnan(mos_lqo_to_raw(float("nan")))


@pytest.mark.parametrize(("samples", "reason"), [(0, "empty"), (1000, "1/4 of a sec")])
def test_too_short(samples, reason, speech):
    signal = speech(2)[:samples]
    with pytest.warns(UnscoredWarning, match=reason):
        assert np.isnan(pesq(signal, signal, 8000))


@pytest.mark.parametrize(
    ("sample_rate", "options", "message"),
    [
        (10000, {}, "one of .8000, 16000. .* Received: 10000"),
        (8000, {"mode": "wb"}, "At 8 kHz only"),
        (16000, {"mode": "swb"}, "`mode` .* Received: mode='swb'"),
        (16000, {"scale": "mos"}, "`scale` .* Received: scale='mos'"),
        (16000, {"mode": "wb", "scale": "raw"}, "requires `mode='nb'`"),
    ],
)
def test_bad_options(sample_rate, options, message):
    with pytest.raises(ValueError, match=message):
        pesq(np.ones(16000), np.ones(16000), sample_rate, **options)
