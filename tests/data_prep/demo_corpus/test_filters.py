"""Resonators, and the filter that changes."""

import numpy as np
import pytest

from keras_ortho.data_prep.demo_corpus.filters import (
    FFT,
    FRAME,
    NASAL_POLE,
    RATE,
    band_pass,
    filter_frames,
    nasal_section,
    resonator,
    response,
)

signal = pytest.importorskip("scipy.signal")


def gains(section):
    b, a = section
    frequencies = np.linspace(0, RATE / 2, 16001)
    _, gain = signal.freqz(b[0], a[0], worN=frequencies, fs=RATE)
    return frequencies, np.abs(gain)


@pytest.mark.parametrize(("center", "width"), [(500, 60), (1500, 90), (3500, 250)])
@pytest.mark.parametrize("make", [resonator, band_pass])
def test_peaks_where_asked_as_wide_as_asked(make, center, width):
    frequencies, gain = gains(make(np.array([float(center)]), float(width)))
    assert frequencies[gain.argmax()] == pytest.approx(center, rel=0.01)
    loud = frequencies[gain > gain.max() / np.sqrt(2)]
    # The skirts of two poles are not quite symmetric.
    assert loud[-1] - loud[0] == pytest.approx(width, rel=0.05)


def test_resonator_has_unit_gain_at_zero():
    _, gain = gains(resonator(np.array([500.0]), 60.0))
    # Ten roundings, of terms as large as b's reciprocal.
    assert gain[0] == pytest.approx(1, abs=1e-12)


def test_band_pass_has_unit_gain_at_its_center_and_none_at_the_ends():
    _, gain = gains(band_pass(np.array([3000.0]), 500.0))
    assert gain.max() == pytest.approx(1, abs=0.01)
    assert gain[0] < 1e-12
    assert gain[-1] < 1e-12


def test_nasal_pole_and_zero_cancel_in_oral_sounds():
    b, a = nasal_section(np.array([NASAL_POLE]))
    np.testing.assert_allclose(b, a, rtol=4 * np.finfo(float).eps)


def test_nasal_zero_takes_away_its_frequency():
    frequencies, gain = gains(nasal_section(np.array([450.0])))
    assert gain[0] == pytest.approx(1, abs=1e-12)
    dip = np.abs(frequencies - 450).argmin()
    assert gain[dip] < 0.25 * gain[np.abs(frequencies - NASAL_POLE).argmin()]


def test_response_is_that_of_the_coefficients():
    b, a = resonator(np.array([500.0, 1500.0]), np.array([60.0, 90.0]))
    responses = response(b, a)
    assert responses.shape == (2, FFT // 2 + 1)
    for row in range(2):
        _, expected = signal.freqz(
            b[row], a[row], worN=np.arange(481) * 2 * np.pi / 960
        )
        # The narrowest resonance is 100 times stronger than its neighborhood.
        tolerance = 1000 * np.finfo(float).eps * np.abs(expected).max()
        np.testing.assert_allclose(responses[row], expected, atol=tolerance)


def test_filter_frames_with_one_response_is_one_filter():
    noise = np.random.default_rng(0).standard_normal(7 * FRAME)
    b, a = resonator(np.full(7, 700.0), 200.0)
    expected = signal.lfilter(b[0], a[0], noise)
    filtered = filter_frames(noise, response(b, a))
    assert filtered.shape == noise.shape
    # What rings on after 50 ms, exp(-10 pi) = 2e-14 of it, wraps around.
    np.testing.assert_allclose(filtered[:-FRAME], expected[:-FRAME], atol=1e-11)


def test_filter_frames_fades_from_one_response_to_the_next():
    noise = np.random.default_rng(1).standard_normal(3 * FRAME)
    gains = np.array([1.0, 3.0, -2.0])
    flat = np.repeat(gains[:, None].astype(complex), FFT // 2 + 1, axis=1)
    ratio = filter_frames(noise, flat) / noise
    # Transforms of 960 samples, divided by samples as small as 1e-3.
    np.testing.assert_allclose(ratio[[0, FRAME, 2 * FRAME]], gains, rtol=1e-10)
    np.testing.assert_allclose(ratio[FRAME // 2], 2.0, rtol=1e-10)
    assert (np.diff(ratio[:FRAME]) > 0).all()


def test_filter_frames_makes_no_clicks():
    frames = 60
    tone = np.sin(2 * np.pi * 120 / RATE * np.arange(frames * FRAME))
    centers = 500 + 300 * np.sin(np.arange(frames) / 4)
    moving = filter_frames(tone, response(*resonator(centers, 90.0)))[:-FRAME]
    frequencies, power = signal.welch(moving, RATE, nperseg=1024)
    # Coefficients that jump at each frame, the state carried over, leave 8e-8.
    assert power[frequencies > 3000].sum() < 1e-9 * power.sum()
