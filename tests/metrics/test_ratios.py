"""Segmental ratios, active level, SI-SDR: by definition, and of other programs."""

import numpy as np
import pytest

from keras_ortho import metrics
from keras_ortho.metrics import segmental_snr
from keras_ortho.metrics.active_level import active_level
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
        scores = segmental_snr(*pair["signals"], **MODES[mode])
        assert scores.frames_used == expected["frames_used"]
        assert scores.frames == expected["frames"]
        # Half of the sixth decimal, to which they were rounded; and rounding here.
        assert scores.segmental == pytest.approx(expected["seg_db"], abs=5.1e-7)
        assert scores.overall == pytest.approx(expected["glo_db"], abs=5.1e-7)


def test_loizou_real_speech(scored_pairs):
    for pair in scored_pairs:
        expected = pytest.approx(pair["snrseg_loizou_db"], rel=0, abs=1e-10)
        assert metrics.segmental_snr_loizou(*pair["signals"]) == expected


@pytest.mark.parametrize(
    ("rate", "version"), [(8000, "2019"), (11500, "2022"), (22050, "2019")]
)
def test_definition(rate, version):
    """Tones with pauses that are exactly zero, late by a part of a sample and noisy."""
    times = np.arange(int(1.2 * rate)) / rate
    rhythm = np.clip(np.sin(2 * np.pi * 2.3 * times), 0, None) ** 2
    loud = np.where(times < 0.55, 0.3, 0.05)
    tones = np.sin(2 * np.pi * 470 * times) + 0.5 * np.sin(2 * np.pi * 1730 * times)
    reference = rhythm * loud * tones
    estimate = 0.6 * reference + 0.4 * np.roll(reference, 1)
    estimate += 0.004 * np.sin(2 * np.pi * 3100 * times) * (times > 0.3)
    if version == "2022":  # Later than by the one sample that is allowed for.
        estimate = np.roll(estimate, 2)
    for mode in MODES.values():
        how = version, "activity" not in mode, "interpolate" not in mode
        expected = p56.segmental(estimate, reference, rate, *how)
        scores = segmental_snr(estimate, reference, rate, **mode, voicebox=version)
        assert scores[2:] == expected[2:]
        # Sums of 200 squares in another order, and an error that is a difference of
        # estimates 40 dB above it.
        np.testing.assert_allclose(scores[:2], expected[:2], atol=1e-8)
    found = active_level(reference, rate, voicebox=version)
    level, is_active = p56.active(reference, rate, version)
    # Recurrences of 30 000 steps, in another order of operations.
    assert found.level == pytest.approx(level, abs=1e-9)
    np.testing.assert_array_equal(found.active, is_active)


def test_limits(speech):
    reference = speech(2) + 0.1
    options = {"activity": "all", "interpolate": False}
    # Silence that is silent is perfect; sound where there should be none is not.
    reference[:800] = 0
    assert segmental_snr(reference, reference, 8000, **options)[:2] == (100, np.inf)
    estimate = reference.copy()
    estimate[:800] = 1e-9
    for clamp, (least, most) in ((None, (-100, 100)), ((-10, 35), (-10, 35))):
        scores = segmental_snr(estimate, reference, 8000, **options, clamp=clamp)
        assert scores.segmental == pytest.approx((10 * least + 190 * most) / 200)


RATIOS = (segmental_snr, metrics.segmental_snr_loizou, metrics.si_sdr)


@pytest.mark.parametrize("score", RATIOS)
@pytest.mark.parametrize("samples", [8000, 60, 0])
def test_unscored(score, samples):
    with pytest.warns(metrics.UnscoredWarning, match="silent") as caught:
        scores = score(np.ones(samples), np.zeros(samples), 8000)
    assert np.isnan(np.ravel(scores)[0])
    assert caught[0].filename == __file__


# As torchmetrics 1.0 documents them, of SI-SDR and of SI-SNR.
@pytest.mark.parametrize(("zero_mean", "value"), [(False, 18.4030), (True, 15.0918)])
def test_torchmetrics_values(zero_mean, value):
    target, estimate = np.array([3.0, -0.5, 2.0, 7.0]), np.array([2.5, 0.0, 2.0, 8.0])
    for volume in (1.0, -1e-30):
        found = metrics.si_sdr(estimate, volume * target, zero_mean=zero_mean)
        assert found == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize("score", [*RATIOS, metrics.stoi, metrics.pesq])
def test_every_score_takes_integers_and_other_lengths(score, speech):
    estimate, reference = (
        np.rint(32768 * speech(2, seed=seed)).astype("int16") for seed in (1, 0)
    )
    expected = score(estimate / 32768, reference / 32768, 8000)
    # float32 holds 16-bit samples exactly.
    estimate = (estimate / 32768).astype("f4")
    assert score(estimate, np.append(reference, reference), 8000.0) == expected
