"""SI-SDR against torchmetrics' documented values, and by what it must be."""

import math

import numpy as np
import pytest

from keras_ortho.metrics import UnscoredWarning, si_sdr

# As torchmetrics 1.0 documents them, of SI-SDR and of SI-SNR.
TARGET, ESTIMATE = [3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]
DOCUMENTED = {False: 18.4030, True: 15.0918}


@pytest.mark.parametrize("zero_mean", [False, True])
def test_torchmetrics_values(zero_mean):
    value = si_sdr(np.array(ESTIMATE), np.array(TARGET), zero_mean=zero_mean)
    assert value == pytest.approx(DOCUMENTED[zero_mean], abs=5e-5)


def test_of_what_is_known():
    """Noise orthogonal to the reference, a tenth of its size: 20 dB, at any volume."""
    random = np.random.default_rng(0)
    reference = random.normal(size=800)
    noise = random.normal(size=800)
    noise -= reference * (noise @ reference) / (reference @ reference)
    noise *= 0.1 * np.linalg.norm(reference) / np.linalg.norm(noise)
    for volume, of_reference in ((1.0, 1.0), (-3.0, 1e-30), (1e-200, 1e100)):
        found = si_sdr(volume * (reference + noise), of_reference * reference)
        # A rounding of 800 products, in a ratio that is 1e-2.
        assert found == pytest.approx(20.0, abs=1e-9)


def test_a_constant_is_only_seen_with_the_mean():
    random = np.random.default_rng(1)
    reference, noise = random.normal(size=(2, 500))
    moved = si_sdr(reference + noise + 5.0, reference - 2.0, zero_mean=True)
    assert moved == pytest.approx(si_sdr(reference + noise, reference, zero_mean=True))
    seen = si_sdr(reference + noise + 5.0, reference - 2.0)
    assert seen != pytest.approx(moved, abs=1.0)


def test_limits():
    reference = np.array([1.0, 2.0, 2.0, 4.0])
    assert si_sdr(-2 * reference, reference) > 300  # To rounding.
    orthogonal = np.array([2.0, -1.0, 2.0, -1.0])
    assert si_sdr(orthogonal, reference) < -300
    for pair in ((0 * reference, reference), (reference, 0 * reference), ([], [])):
        with pytest.warns(UnscoredWarning, match="silent or empty"):
            assert math.isnan(si_sdr(*map(np.array, pair)))
    with pytest.warns(UnscoredWarning, match="silent"):
        assert math.isnan(si_sdr(reference, np.ones(4), zero_mean=True))
    noise = np.random.default_rng(0).normal(size=10_001)
    with pytest.warns(UnscoredWarning, match="silent"):  # Its mean is rounded.
        assert math.isnan(si_sdr(noise, np.full(10_001, 0.1), zero_mean=True))
    with pytest.raises(ValueError, match=r"`estimate`.*Received"):
        si_sdr(np.array([1.0, np.nan]), np.ones(2))
