"""Segmental ratios and SI-SDR, against definitions and scores of other programs."""

import math

import numpy as np
import pytest

from keras_ortho.metrics import (
    UnscoredWarning,
    segmental_snr,
    segmental_snr_loizou,
    si_sdr,
)
from tests.metrics import p56

MODES = {
    "Vq": {},
    "Vz": {"interpolate": False},
    "wq": {"activity": "all"},
    "wz": {"activity": "all", "interpolate": False},
}


@pytest.mark.parametrize("mode", MODES)
def test_real_speech(scored_pairs, mode):
    for pair in scored_pairs:
        expected = pair[f"snrseg_voicebox_{mode}"]
        scores = segmental_snr(
            pair["estimate"], pair["reference"], pair["fs"], **MODES[mode]
        )
        assert scores.frames_used == expected["frames_used"]
        assert scores.frames == expected["frames"]
        # Half of the sixth decimal, to which they were rounded; and rounding here.
        assert scores.segmental == pytest.approx(expected["seg_db"], abs=5.1e-7)
        assert scores.overall == pytest.approx(expected["glo_db"], abs=5.1e-7)


def test_loizou_real_speech(scored_pairs):
    for pair in scored_pairs:
        score = segmental_snr_loizou(pair["estimate"], pair["reference"], pair["fs"])
        assert score == pytest.approx(pair["snrseg_loizou_db"], abs=1e-10)
    # MATLAB's, of the book's example files, as the pysepm package publishes them.
    published = [-0.21686174881958412, -1.2033705198493232]
    scores = [
        segmental_snr_loizou(pair["estimate"], pair["reference"], pair["fs"])
        for pair in scored_pairs[1:3]
    ]
    np.testing.assert_allclose(scores, published, atol=1e-10)


def syllables(rate, seconds=1.2):
    """Tones with pauses that are exactly zero, late by a part of a sample and noisy."""
    times = np.arange(int(seconds * rate)) / rate
    rhythm = np.clip(np.sin(2 * np.pi * 2.3 * times), 0, None) ** 2
    loud = np.where(times < 0.55, 0.3, 0.05)
    tones = np.sin(2 * np.pi * 470 * times) + 0.5 * np.sin(2 * np.pi * 1730 * times)
    reference = rhythm * loud * tones
    estimate = 0.6 * reference + 0.4 * np.roll(reference, 1)
    estimate += 0.004 * np.sin(2 * np.pi * 3100 * times) * (times > 0.3)
    return estimate, reference


@pytest.mark.parametrize("rate", [8000, 11500, 16000, 22050])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", ["2019", "2022"])
def test_definition(rate, mode, version):
    estimate, reference = syllables(rate)
    expected = p56.segmental(
        estimate,
        reference,
        rate,
        version,
        vad="activity" not in MODES[mode],
        shift="interpolate" not in MODES[mode],
    )
    scores = segmental_snr(estimate, reference, rate, **MODES[mode], voicebox=version)
    assert scores[2:] == expected[2:]
    # Sums of 200 squares in another order, and an error that is a difference of
    # estimates 40 dB above it.
    np.testing.assert_allclose(scores[:2], expected[:2], atol=1e-8)


def test_the_estimate_is_shifted_by_a_sample_at_most():
    _, reference = syllables(8000)
    late = np.roll(reference, 2)
    scores = segmental_snr(late, reference, 8000, activity="all")
    expected = p56.segmental(late, reference, 8000, vad=False)
    np.testing.assert_allclose(scores[:2], expected[:2], atol=1e-8)


def test_clamp(speech):
    reference, noise = speech(2) + 1e-3, 0.01 * speech(2, seed=1) + 1e-5
    energies = [np.sum(x.reshape(-1, 80) ** 2, axis=1) for x in (reference, noise)]
    ratios = 10 * np.log10(energies[0] / energies[1])
    assert ratios.max() > 35
    options = {"activity": "all", "interpolate": False, "clamp": (-10, 35)}
    clamped = segmental_snr(reference + noise, reference, 8000, **options)
    assert clamped.segmental == pytest.approx(ratios.clip(-10, 35).mean())


def test_limits(speech):
    reference = speech(2) + 0.1
    same = segmental_snr(reference, reference, 8000, activity="all")
    assert same.segmental == 100
    assert same.overall == np.inf
    # Silence that is silent is perfect; sound where there should be none is not.
    options = {"activity": "all", "interpolate": False}
    reference[:800] = 0
    assert segmental_snr(reference, reference, 8000, **options).segmental == 100
    estimate = reference.copy()
    estimate[:800] = 1e-9
    scores = segmental_snr(estimate, reference, 8000, **options)
    assert scores.segmental == pytest.approx((10 * -100 + 190 * 100) / 200)
    clamped = segmental_snr(estimate, reference, 8000, **options, clamp=(-10, 35))
    assert clamped.segmental == pytest.approx((10 * -10 + 190 * 35) / 200)


@pytest.mark.parametrize(
    ("rate", "size"), [(8000, 80), (11025, 110), (22050, 221), (44100, 441)]
)
def test_frames_of_10_ms_are_rounded_with_halves_up(rate, size):
    signal = np.ones(20 * size)
    options = {"activity": "all", "interpolate": False}
    assert segmental_snr(signal, signal, rate, **options).frames == 20
    assert segmental_snr(signal[1:], signal[1:], rate, **options).frames == 19


@pytest.mark.parametrize("score", [segmental_snr, segmental_snr_loizou])
@pytest.mark.parametrize(
    ("samples", "reason"), [(8000, "silent"), (60, "shorter"), (0, "shorter")]
)
def test_unscored(score, samples, reason):
    with pytest.warns(UnscoredWarning, match=reason) as caught:
        scores = score(np.ones(samples), np.zeros(samples), 8000)
    assert np.isnan(np.ravel(scores)[0])
    assert caught[0].filename == __file__


def test_loizou_needs_a_frame_and_a_step():
    signal = np.sin(np.arange(400.0))
    # 240 samples and 60 at 8 kHz.
    assert segmental_snr_loizou(signal[:300], signal[:300], 8000) == 35
    # Without a bound what is equal has the ratio of the energy to one rounding.
    assert segmental_snr_loizou(signal, signal, 8000, clamp=None) > 100
    with pytest.warns(UnscoredWarning, match="a frame and a step, 37.5 ms"):
        assert np.isnan(segmental_snr_loizou(signal[:299], signal[:299], 8000))


def test_never_active():
    reference = np.zeros(8000)
    reference[-1] = 1  # active, but not for half a frame
    with pytest.warns(UnscoredWarning, match="no frame"):
        scores = segmental_snr(reference, reference, 8000, interpolate=False)
    assert np.isnan(scores.segmental)
    assert scores.frames == 100


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


def test_limits_of_si_sdr():
    reference = np.array([1.0, 2.0, 2.0, 4.0])
    assert si_sdr(-2 * reference, reference) > 300  # To rounding.
    orthogonal = np.array([2.0, -1.0, 2.0, -1.0])
    assert si_sdr(orthogonal, reference) < -300
    for pair in ((0 * reference, reference), (reference, 0 * reference), ([], [])):
        with pytest.warns(UnscoredWarning, match="silent or empty"):
            assert math.isnan(si_sdr(*map(np.array, pair)))
    with pytest.warns(UnscoredWarning, match="silent"):
        assert math.isnan(si_sdr(reference, np.ones(4), zero_mean=True))
    with pytest.raises(ValueError, match=r"`estimate`.*Received"):
        si_sdr(np.array([1.0, np.nan]), np.ones(2))
