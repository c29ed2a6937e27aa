"""Tests of the metrics' signals."""

import numpy as np
import pytest

from keras_ortho.metrics import (
    pesq,
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


@pytest.mark.parametrize(
    ("estimates", "lengths", "message"),
    [
        (np.zeros((3, 4)), None, "the same length.* Received: 3 and 2"),
        (np.zeros((2, 4)), [4, 1.0], "`lengths` must be an integer .* Received: 1.0"),
        (
            np.zeros((2, 4)),
            [4],
            "`lengths` and `estimates` .* Received: 1 and 2",
        ),
        (np.zeros((2, 4)), [4, 5], "in 0 .. 4.* Received: 5"),
        (np.zeros((2, 4)), [4, -1], "Received: -1"),
        (np.zeros((2, 4, 1)), None, "`estimate` must"),
    ],
)
def test_bad_batches(estimates, lengths, message):
    with pytest.raises(ValueError, match=message):
        signal_pairs(estimates, np.zeros((2, 4)), 8000, lengths)
