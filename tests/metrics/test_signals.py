"""Pairs of signals, and what is refused, with how the message begins and ends."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from keras_ortho.metrics import (
    Evaluator,
    SpeechScores,
    active_level,
    mos_lqo_to_raw,
    pesq,
    raw_to_mos_lqo,
    score_speech,
    segmental_snr,
    segmental_snr_loizou,
    si_sdr,
    stoi,
)
from keras_ortho.metrics.signals import signal_pair, signal_pairs


def test_pair_is_cut_to_the_shorter():
    estimate, reference = signal_pair(np.arange(5.0), np.ones(3, np.int16), 8000)
    np.testing.assert_array_equal(estimate, [0, 1, 2])
    np.testing.assert_array_equal(reference, np.ones(3) / 32768)
    assert estimate.dtype == reference.dtype == np.float64


@pytest.mark.parametrize(
    "score", [segmental_snr, segmental_snr_loizou, si_sdr, stoi, pesq]
)
def test_every_score_takes_integers_and_other_lengths(score, speech):
    pytest.importorskip("pesq")
    pytest.importorskip("pystoi")
    estimate, reference = (
        np.rint(32768 * speech(2, seed=seed)).astype("int16") for seed in (1, 0)
    )
    expected = score(estimate / 32768, reference / 32768, 8000)
    longer = np.append(reference, reference)
    assert score(estimate, longer, 8000.0) == expected
    # float32 holds 16-bit samples exactly.
    assert score((estimate / 32768).astype("f4"), reference, 8000) == expected


def test_pairs_without_padding():
    estimates = np.arange(8.0).reshape(2, 4)
    references = [np.arange(4.0), np.arange(6.0)]
    pairs = signal_pairs(estimates, references, 8000, lengths=np.array([4, 1]))
    np.testing.assert_array_equal(pairs[0][0], [0, 1, 2, 3])
    np.testing.assert_array_equal(pairs[1][0], [4])
    np.testing.assert_array_equal(pairs[1][1], [0])


ONES, TWO = np.ones(800), np.zeros((2, 4))
PAIR = (ONES, ONES)
RECORD = SimpleNamespace(audio=ONES)
segsnr = partial(segmental_snr, *PAIR, 8000)
callback = partial(SpeechScores, [PAIR], "mask")
CASES = [
    *(
        (lambda f=function, s=signal: f(s, ONES, 8000), f"`estimate` must {said}")
        for function in (segmental_snr, segmental_snr_loizou, si_sdr, stoi, pesq)
        for signal, said in (
            (ONES[None], ".*Received: float64 of shape"),
            (ONES.astype("int32"), ".* Received: int32"),
            (ONES * np.inf, "be finite"),
        )
    ),
    (lambda: active_level(ONES[None], 8000), "`signal` must .* float64 of shape"),
    *(
        (partial(function, *PAIR, rate), f"`sample_rate` .* sample_rate={rate!r}$")
        for function in (segmental_snr, segmental_snr_loizou, stoi)
        for rate in (10, "8000", float("inf"))
    ),
    (lambda: stoi(*PAIR, 8000.5), "whole number .* sample_rate=8000.5$"),
    (lambda: active_level(ONES, 8000, voicebox="2018"), "voicebox='2018'$"),
    (lambda: segsnr(voicebox="2020"), "`voicebox` .* Received: voicebox='2020'$"),
    (lambda: segsnr(activity="vad"), "`activity` .* Received: activity='vad'$"),
    (lambda: segsnr(clamp=(35, -10)), r"`clamp` .* Received: clamp=\(35, -10\)$"),
    (lambda: segsnr(clamp=(3,)), r"`clamp` .* Received: clamp=\(3,\)$"),
    (lambda: segmental_snr_loizou(*PAIR, 8000, clamp=(1, 1)), "`clamp`"),
    (lambda: pesq(*PAIR, 10000), "one of .8000, 16000. .* Received: 10000$"),
    (lambda: pesq(*PAIR, 8000, mode="wb"), "At 8 kHz only"),
    (lambda: pesq(*PAIR, 16000, mode="swb"), "`mode` .* Received: mode='swb'$"),
    (lambda: pesq(*PAIR, 16000, scale="mos"), "`scale` .* Received: scale='mos'$"),
    (lambda: pesq(*PAIR, 16000, mode="wb", scale="raw"), "requires `mode='nb'`"),
    (lambda: raw_to_mos_lqo(np.nan), "Received: raw=nan$"),
    *((partial(mos_lqo_to_raw, x), f"Received: mos_lqo={x}$") for x in (0.999, 5.0)),
    (lambda: signal_pairs(np.zeros((3, 4)), TWO, 8000), r"length. .*: \[3, 2\]$"),
    (lambda: signal_pairs(TWO, TWO, 8000, [4]), r"length. Received: \[2, 2, 1\]$"),
    *(
        (partial(signal_pairs, TWO, TWO, 8000, [4, n]), f"`lengths` .* 0 .. 4.* {n}$")
        for n in (1.0, 5, -1)
    ),
    (lambda: score_speech([ONES], [ONES], 11025), "`sample_rate`"),
    (lambda: score_speech([ONES], [ONES], processes=0), "`processes` .* processes=0$"),
    (lambda: Evaluator("stoi"), "`scores` .* Received: scores='stoi'$"),
    (lambda: Evaluator(["mos"]), r"`scores` .* Received: scores=\['mos'\]$"),
    (lambda: Evaluator({}), "`scores` .* Received: scores={}$"),
    (lambda: callback(sample_rate=11025), "`sample_rate` .*PESQ. Received: 11025$"),
    *(
        (partial(callback, **{name: 0}), f"`{name}` .* Received: {name}=0$")
        for name in ("every", "number", "batch_size", "processes")
    ),
    (lambda: SpeechScores([PAIR], "phase"), "`predicts` .* predicts='phase'$"),
    (lambda: SpeechScores([]), "`utterances` must not be empty. Received: none$"),
    (lambda: SpeechScores([PAIR[:1]]), "`utterances` must be pairs .*tuple"),
    (lambda: SpeechScores([RECORD], "mask"), "Received: .*predicts='mask'$"),
    (
        lambda: callback().score(lambda x: x[:, :3]),
        r"`predicts` .*\(10, 129\). .*: \(3",
    ),
]


@pytest.mark.parametrize("place", range(len(CASES)))
def test_message(place):
    call, message = CASES[place]
    with pytest.raises(ValueError, match=message):
        call()
