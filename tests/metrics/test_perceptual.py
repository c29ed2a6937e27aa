"""PESQ and STOI against scores of other programs, and what has no score."""

import numpy as np
import pytest

from keras_ortho.metrics import UnscoredWarning, pesq, stoi
from keras_ortho.metrics.perceptual import mos_lqo_to_raw


def test_real_speech(scored_pairs):
    for pair in scored_pairs:
        signals = pair["signals"]
        # The C code works in single precision.
        for mode in ("nb", "wb") if pair["fs"] == 16000 else ("nb",):
            expected = pytest.approx(pair[f"pesq_{mode}_mos_lqo"], abs=1e-5)
            assert pesq(*signals, mode=mode) == expected
        expected = pair["pesq_nb_raw_p862_by_inverting_p862_1"]
        assert pesq(*signals, scale="raw") == pytest.approx(expected, abs=1e-4)
        assert stoi(*signals) == pytest.approx(pair["stoi"], abs=1e-9)
        # The extended measure adds noise of 1e-16 to its inputs.
        extended = pytest.approx(pair["estoi"], abs=1e-9)
        assert stoi(*signals, extended=True) == extended


def test_raw_scores():
    """ITU-T P.862.1, equation 1."""
    for raw in (-0.5, 2.75, 4.5):
        mos_lqo = 0.999 + 4 / (1 + np.exp(-1.4945 * raw + 4.6607))
        assert mos_lqo_to_raw(mos_lqo) == pytest.approx(raw, abs=1e-12)


@pytest.mark.parametrize(
    ("estimate", "reference", "samples", "reason"),
    [
        (0.0, 1.0, 16000, "silent"),
        (1e-30, 1.0, 16000, "faint"),
        (1.0, 1e-30, 16000, "no utterance"),
        (1.0, 1.0, 1000, "short"),
    ],
)
def test_no_pesq(estimate, reference, samples, reason, speech):
    signal = speech(2)[:samples]
    with pytest.warns(UnscoredWarning, match=reason) as caught:
        assert np.isnan(pesq(estimate * signal, reference * signal, 8000))
    assert caught[0].filename == __file__


def test_more_utterances_than_there_is_room_for(speech):
    """Beyond it the C code writes past its arrays."""
    once = np.concatenate([speech(1)[:6000], np.zeros(5000)])
    few, many = np.tile(once, 25), np.tile(once, 60)
    assert pesq(few, few, 8000) == pytest.approx(pesq(once, once, 8000), abs=1e-3)
    with pytest.warns(UnscoredWarning, match="60 utterances.* score it in parts"):
        assert np.isnan(pesq(many, many, 8000))


@pytest.mark.parametrize("samples", [0, 2, 1000, 4096])
def test_too_short_for_stoi(samples):
    reference = np.random.default_rng(1).normal(size=4097)
    assert np.isfinite(stoi(reference, reference, 10_000))
    with pytest.warns(UnscoredWarning, match="0.41 s|empty"):
        assert np.isnan(stoi(reference[:samples], reference[:samples], 10_000))
