"""The textbook Wiener filter, a baseline for trained denoisers."""

import numpy as np

from keras_ortho.audio.stft import FRAME_LENGTH, HOP_LENGTH, SAMPLE_RATE, istft, stft

FIRST = 0.1  # s at the beginning that are assumed to be noise alone
SMOOTHING = 0.8  # factor of the recursive average of the noise power
SPEECH_SNR = 10**1.5  # a priori SNR of frames with speech, 15 dB
STUCK = 0.99  # limit of the speech probability once its average exceeds this
DECISION = 0.98  # weight of the last frame's estimate in the a priori SNR
LEAST_SNR = 10**-1.5  # lower limit of the a priori SNR, -15 dB, and so of the gain
# Power that counts as zero. Dividing by the smallest float64 would overflow.
NO_POWER = 1e-100


def wiener(noisy: np.ndarray) -> np.ndarray:
    """Removes noise with a Wiener filter, frame by frame and causally.

    In each bin of `stft`, the noise power is tracked as by Gerkmann and Hendriks, and
    the a priori SNR as by Ephraim and Malah.

    Args:
        noisy: `[samples]` at 8 kHz, int16 or floating point, 0.1 s of noise at first.

    Returns:
        float32 `[samples]`.

    Example:
    >>> speech = np.sin(np.arange(8000) / 5)
    >>> wiener(speech + 0.1).shape
    (8000,)

    Reference:
    - Gerkmann and Hendriks, "Unbiased MMSE-Based Noise Power Estimation with Low
      Complexity and Low Tracking Delay", 2012, section V
    - Ephraim and Malah, "Speech Enhancement Using a Minimum Mean-Square Error
      Short-Time Spectral Amplitude Estimator", 1984, equation 51
    """
    spectrum = stft(noisy)
    power = np.square(np.abs(spectrum), dtype=np.float64)
    # The frames before `begin` contain zeros from before the signal.
    begin = FRAME_LENGTH // HOP_LENGTH
    end = begin + round(FIRST * SAMPLE_RATE / HOP_LENGTH)
    gains = wiener_gains(power, power[begin:end].mean(axis=0))
    return istft(gains * spectrum, length=len(noisy))


def wiener_gains(power: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Computes the gains of `wiener`."""
    presence, clean = np.zeros_like(noise), np.zeros_like(noise)
    gains = np.empty_like(power)
    for t, observed in enumerate(power):
        ratio = observed / np.maximum(noise, NO_POWER)
        likelihood = np.exp(-np.minimum(ratio, 200.0) * SPEECH_SNR / (1 + SPEECH_SNR))
        speech = 1 / (1 + (1 + SPEECH_SNR) * likelihood)
        presence = 0.9 * presence + 0.1 * speech
        speech = np.where(presence > STUCK, np.minimum(speech, STUCK), speech)
        expected = speech * noise + (1 - speech) * observed
        noise = SMOOTHING * noise + (1 - SMOOTHING) * expected
        # Uses the noise of this frame and the speech of the frame before.
        floor = np.maximum(noise, NO_POWER)
        instant = np.maximum(observed / floor - 1, 0)
        prior = DECISION * clean / floor + (1 - DECISION) * instant
        prior = np.maximum(prior, LEAST_SNR)
        gains[t] = prior / (1 + prior)
        clean = np.square(gains[t]) * observed
    return gains
