"""Tests of scoring many utterances."""

import numpy as np
import pytest

from keras_ortho.metrics import (
    UnscoredWarning,
    mean_scores,
    pesq,
    score_speech,
    segmental_snr,
    si_sdr,
    stoi,
)

pytest.importorskip("pesq")
pytest.importorskip("pystoi")
pytest.importorskip("tqdm")


@pytest.fixture
def utterances(speech):
    references = [speech(1 + 0.2 * seed, seed=seed) for seed in range(6)]
    rng = np.random.default_rng(9)
    return [r + 0.03 * rng.standard_normal(len(r)) for r in references], references


def test_scores(utterances):
    scores = score_speech(*utterances, processes=1, progress=False)
    pairs = list(zip(*utterances, strict=True))
    snr = [segmental_snr(*pair, 8000) for pair in pairs]
    expected = {
        "segmental_snr": [s.segmental for s in snr],
        "global_snr": [s.overall for s in snr],
        "si_sdr": [si_sdr(*pair) for pair in pairs],
        "stoi": [stoi(*pair, 8000) for pair in pairs],
        "pesq_mos_lqo": [pesq(*pair, 8000) for pair in pairs],
        "pesq_raw": [pesq(*pair, 8000, scale="raw") for pair in pairs],
    }
    assert scores.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(scores[name], values)


@pytest.mark.slow
def test_processes_give_the_same_in_the_same_order(utterances):
    estimates, references = utterances
    estimates[4] = np.zeros_like(estimates[4])
    with pytest.warns(UnscoredWarning, match="Utterance 4: .*estimate is silent"):
        alone = score_speech(estimates, references, processes=1, progress=False)
    with pytest.warns(UnscoredWarning, match="Utterance 4: .*estimate is silent"):
        together = score_speech(estimates, references, processes=2, progress=False)
    assert np.isnan(alone["pesq_raw"][4])
    assert np.isfinite(alone["stoi"]).all()
    for name, values in alone.items():
        # Sums of some hundred squares, in the order that their place in memory gives.
        np.testing.assert_allclose(together[name], values, rtol=1e-13)


def test_progress(utterances, capfd):
    estimates, references = utterances
    score_speech(estimates[:2], references[:2])
    assert "Scoring: 100%" in capfd.readouterr().err


def test_no_utterances():
    scores = score_speech([], [], progress=False)
    assert all(values.shape == (0,) for values in scores.values())


def test_bad_input(utterances):
    estimates, references = utterances
    with pytest.raises(ValueError, match="the same length"):
        score_speech(estimates[1:], references)
    with pytest.raises(ValueError, match="`sample_rate`"):
        score_speech(estimates, references, 11025)
    with pytest.raises(ValueError, match=r"`processes` .* Received: processes=0"):
        score_speech(estimates, references, processes=0)


def test_means_say_what_is_not_in_them():
    scores = {"a": np.array([1.0, np.nan, 4.0]), "b": np.full(2, np.nan)}
    means = mean_scores(scores | {"c": np.zeros(0)})
    assert means["a"] == (2.5, 1, 3)
    assert np.isnan(means["b"].mean)
    assert means["b"][1:] == (2, 2)
    assert means["c"][1:] == (0, 0)
