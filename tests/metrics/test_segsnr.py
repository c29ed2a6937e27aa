"""Tests of the segmental SNR."""

import numpy as np
import pytest

from keras_ortho.metrics.segsnr import segmental_snr, segmental_snr_loizou
from keras_ortho.metrics.signals import UnscoredWarning
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


def test_loizou_published(scored_pairs):
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


def frame_snr(estimate, reference, start, size):
    """The definition of one frame, with the shift found by trying 10 001 of them."""
    r, s = reference[start : start + size], estimate[start : start + size]
    errors = []
    for shift in (-1, 1):
        shifted = estimate[start + shift : start + shift + size]
        parts = np.linspace(0, 1, 10001)[:, None]
        errors.append(np.sum((r - (1 - parts) * s - parts * shifted) ** 2, axis=1))
    return 10 * np.log10(np.sum(r**2) / np.min(errors))


def test_shift_against_search(speech):
    reference = speech(0.3) + 1e-3
    estimate = reference + 0.02 * np.random.default_rng(1).standard_normal(2400)
    frames = [
        frame_snr(estimate, reference, start, 80) for start in range(1, 2400 - 80, 80)
    ]
    scores = segmental_snr(estimate, reference, 8000, activity="all")
    assert scores.frames_used == len(frames) == 29
    # The best of the shifts tried is 1e-4 / 2 from the best, the error quadratic.
    assert scores.segmental == pytest.approx(np.mean(frames), abs=1e-6)


def test_clamp(speech):
    reference, noise = speech(2) + 1e-3, 0.01 * speech(2, seed=1) + 1e-5
    energies = [np.sum(x.reshape(-1, 80) ** 2, axis=1) for x in (reference, noise)]
    ratios = 10 * np.log10(energies[0] / energies[1])
    assert ratios.max() > 35
    options = {"activity": "all", "interpolate": False, "clamp": (-10, 35)}
    clamped = segmental_snr(reference + noise, reference, 8000, **options)
    assert clamped.segmental == pytest.approx(ratios.clip(-10, 35).mean())


def test_a_delay_below_a_sample_is_forgiven():
    signal = np.random.default_rng(0).standard_normal(8001)
    reference = 0.7 * signal[1:] + 0.3 * signal[:-1]
    # Exact but for rounding, 16 digits: more than 200 dB.
    assert segmental_snr(signal[1:], reference, 8000).segmental > 200
    assert segmental_snr(signal[1:], reference, 8000, interpolate=False).segmental < 20


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


def test_silent_estimate_is_0_db(speech):
    reference = speech(2)
    scores = segmental_snr(np.zeros_like(reference), reference, 8000)
    assert scores.overall == pytest.approx(0, abs=1e-12)


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"activity": "vad"}, "`activity` .* Received: activity='vad'"),
        ({"clamp": (35, -10)}, "`clamp`"),
        ({"clamp": (3,)}, r"`clamp` .* Received: clamp=\(3,\)"),
        ({"clamp": 5}, "`clamp` .* Received: clamp=5"),
        ({"clamp": ("a", "b")}, "`clamp` .* Received: clamp=.'a', 'b'"),
        ({"voicebox": "2020"}, "`voicebox` .* Received: voicebox='2020'"),
        ({"sample_rate": 10}, "`sample_rate` .* Received: sample_rate=10"),
        ({"sample_rate": "8000"}, "`sample_rate` .* Received: sample_rate='8000'"),
        ({"sample_rate": float("inf")}, "`sample_rate` .* Received: sample_rate=inf"),
        ({"estimate": np.zeros((1, 800))}, "`estimate` must"),
        ({"reference": np.zeros(800, np.int32)}, "`reference` .* Received: int32"),
        ({"estimate": np.full(800, np.inf)}, "`estimate` must be finite"),
    ],
)
def test_bad_input(changes, message):
    arguments = {
        "estimate": np.ones(800),
        "reference": np.ones(800),
        "sample_rate": 8000,
    }
    with pytest.raises(ValueError, match=message):
        segmental_snr(**arguments | changes)


def test_loizou_bad_clamp():
    with pytest.raises(ValueError, match="`clamp`"):
        segmental_snr_loizou(np.ones(800), np.ones(800), 8000, clamp=(1, 1))
