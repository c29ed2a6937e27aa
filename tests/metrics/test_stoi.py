"""Tests of STOI."""

import warnings

import numpy as np
import pytest

from keras_ortho.metrics.signals import UnscoredWarning
from keras_ortho.metrics.stoi import stoi

pytest.importorskip("pystoi")


@pytest.mark.parametrize(("extended", "key"), [(False, "stoi"), (True, "estoi")])
def test_real_speech(scored_pairs, extended, key):
    for pair in scored_pairs:
        score = stoi(pair["estimate"], pair["reference"], pair["fs"], extended=extended)
        # The extended measure adds noise of 1e-16 to its inputs.
        assert score == pytest.approx(pair[key], abs=1e-9)


def test_published(scored_pairs):
    # As torchmetrics and pysepm publish them.
    published = [0.6739177, 0.8389211808320151, 0.661152205056174]
    scores = [
        stoi(pair["estimate"], pair["reference"], pair["fs"])
        for pair in scored_pairs[:3]
    ]
    np.testing.assert_allclose(scores, published, atol=1e-7)


def test_argument_order(speech):
    pystoi = pytest.importorskip("pystoi")
    reference = speech(2)
    estimate = reference + 0.05 * np.random.default_rng(1).standard_normal(16000)
    assert stoi(estimate, reference, 8000) == pystoi.stoi(reference, estimate, 8000)
    assert stoi(estimate, reference, 8000) != stoi(reference, estimate, 8000)


def test_silent_estimate(speech):
    reference = speech(2)
    assert stoi(np.zeros_like(reference), reference, 8000) == pytest.approx(0)


@pytest.mark.parametrize(("samples", "scored"), [(4096, False), (4097, True)])
def test_the_least_that_is_scored(samples, scored):
    """Of what is sound throughout, 0.41 s."""
    reference = np.random.default_rng(1).normal(size=samples)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnscoredWarning)
        assert np.isfinite(stoi(reference, reference, 10_000)) == scored
    assert len(caught) == (not scored)


@pytest.mark.parametrize("samples", [0, 2, 500, 3000, 3200])
def test_too_short(samples, speech):
    reference = speech(3, seed=2)[8000 : 8000 + samples]
    with pytest.warns(UnscoredWarning, match="0.41 s|empty"):
        assert np.isnan(stoi(reference, reference, 8000))


def test_too_little_speech():
    reference = np.zeros(16000)
    reference[4000:6000] = np.random.default_rng(0).standard_normal(2000)
    with pytest.warns(UnscoredWarning, match="0.41 s"):
        assert np.isnan(stoi(reference, reference, 8000))


def test_silent_reference(speech):
    with pytest.warns(UnscoredWarning, match="silent") as caught:
        assert np.isnan(stoi(speech(2), np.zeros(16000), 8000))
    assert caught[0].filename == __file__


def test_bad_input():
    with pytest.raises(ValueError, match="`reference` must be finite"):
        stoi(np.zeros(8000), np.full(8000, np.nan), 8000)
    with pytest.raises(ValueError, match="`sample_rate`"):
        stoi(np.zeros(8000), np.zeros(8000), 0)
    with pytest.raises(ValueError, match="whole number .*Received: sample_rate=8000.5"):
        stoi(np.zeros(8000), np.zeros(8000), 8000.5)
