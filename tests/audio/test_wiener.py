"""The Wiener filter against its equations, and on noise that it can remove."""

import numpy as np
import pytest

from keras_ortho.audio import SAMPLE_RATE, istft, mix, stft, wiener
from keras_ortho.audio.wiener import wiener_gains
from keras_ortho.metrics import si_sdr


def by_the_papers(power, noise):
    """Gerkmann and Hendriks, equations 18, 22 to 24, 8; Ephraim and Malah, 51."""
    gains = np.zeros_like(power)
    xi_h1 = 10 ** (15 / 10)
    for k, sigma2 in enumerate(noise):
        p_bar = a2 = 0.0
        for t, y2 in enumerate(power[:, k]):
            p = 1 / (1 + (1 + xi_h1) * np.exp(-y2 / sigma2 * xi_h1 / (1 + xi_h1)))
            p_bar = 0.9 * p_bar + 0.1 * p
            if p_bar > 0.99:
                p = min(p, 0.99)
            sigma2 = 0.8 * sigma2 + 0.2 * ((1 - p) * y2 + p * sigma2)
            xi = 0.98 * a2 / sigma2 + 0.02 * max(y2 / sigma2 - 1, 0)
            xi = max(xi, 10 ** (-15 / 10))
            gains[t, k] = xi / (1 + xi)
            a2 = gains[t, k] ** 2 * y2
    return gains


def test_gains_are_the_papers():
    random = np.random.default_rng(0)
    # Some bins with speech all along, for the guard against a stuck estimate.
    power = random.exponential(size=(200, 6)) * [1, 1, 1, 300, 300, 1e4]
    found = wiener_gains(power, np.ones(6))
    np.testing.assert_allclose(found, by_the_papers(power, np.ones(6)), rtol=1e-10)


def test_removes_steady_noise():
    random = np.random.default_rng(1)
    time = np.arange(3 * SAMPLE_RATE) / SAMPLE_RATE
    speech = np.sin(2 * np.pi * 440 * time) * (np.sin(2 * np.pi * 1.5 * time) > 0)
    speech[: SAMPLE_RATE // 4] = 0
    noisy = mix(speech, random.normal(size=len(speech)), 0.0)
    cleaned = wiener(noisy)
    assert si_sdr(cleaned, speech) > si_sdr(noisy, speech) + 6
    # The filter is what its gains say, and causal.
    spectrum = stft(noisy)
    power = np.abs(spectrum.astype("complex128")) ** 2
    gains = by_the_papers(power, power[2:8].mean(axis=0))
    expected = istft(gains * spectrum, length=len(noisy))
    np.testing.assert_allclose(cleaned, expected, atol=1e3 * 2.0**-23)
    np.testing.assert_array_equal(wiener(noisy[:9000])[:8600], cleaned[:8600])


@pytest.mark.parametrize("samples", [1, 5000])
def test_silence_and_short_signals(samples):
    np.testing.assert_array_equal(wiener(np.zeros(samples)), np.zeros(samples))
    assert np.isfinite(wiener(np.pad(np.ones(samples), (2000, 0)))).all()
