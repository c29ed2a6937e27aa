"""Resonators, and a filter whose response changes once per frame of 5 ms.

Sources:
    Klatt (1980), "Software for a cascade/parallel formant synthesizer", JASA 67(3),
    971-995, section II: resonators and antiresonators.
    Allen and Rabiner (1977), "A unified approach to short-time Fourier analysis and
    synthesis", Proceedings of the IEEE 65(11): time-varying filters by overlap-add.
"""

import numpy as np

RATE = 16000  # samples per second
FRAME = 80  # samples, 5 ms
FFT = 12 * FRAME  # two frames of input, and 50 ms in which it rings out
NASAL_POLE = 270.0  # Hz; in oral sounds a zero there cancels it
NASAL_BANDWIDTH = 100.0  # of the nasal pole and zero, in Hz

# Numerators and denominators in powers of 1/z, each of shape `(frames, 3)`.
Sections = tuple[np.ndarray, np.ndarray]


def resonator(frequency: np.ndarray, bandwidth: np.ndarray | float) -> Sections:
    """Two poles, with a gain of 1 at 0 Hz (Klatt 1980, equations 1 and 2)."""
    radius = np.exp(-np.pi * bandwidth / RATE)
    turn = np.cos(2 * np.pi * frequency / RATE)
    one, zero = np.ones_like(frequency), np.zeros_like(frequency)
    a = np.stack([one, -2 * radius * turn, one * radius**2], axis=-1)
    b = np.stack([a.sum(axis=-1), zero, zero], axis=-1)
    return b, a


def band_pass(frequency: np.ndarray, bandwidth: np.ndarray | float) -> Sections:
    """A `resonator` with a gain of about 1 at its center and 0 at 0 Hz and at 8 kHz."""
    _, a = resonator(frequency, bandwidth)
    gain = (1 - a[:, 2]) / 2
    return np.stack([gain, np.zeros_like(gain), -gain], axis=-1), a


def nasal_section(zero: np.ndarray) -> Sections:
    """The nasal pole and a zero, in Hz; they cancel where it lies at `NASAL_POLE`."""
    pole_gain, pole = resonator(np.full_like(zero, NASAL_POLE), NASAL_BANDWIDTH)
    zero_gain, numerator = resonator(zero, NASAL_BANDWIDTH)
    return numerator * (pole_gain[:, :1] / zero_gain[:, :1]), pole


def response(b: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Frequency responses of sections, complex, of shape `(frames, FFT // 2 + 1)`."""
    return np.fft.rfft(b, FFT) / np.fft.rfft(a, FFT)


def filter_frames(signal: np.ndarray, responses: np.ndarray) -> np.ndarray:
    """Filters a signal by a response that changes from frame to frame.

    The signal is cut into overlapping pieces that fade into each other, each piece
    is filtered by the response of its frame, and the results are added: a change of
    the response makes no click, however strong the filter. The last frame fades out.
    """
    frames = len(responses)
    padded = np.concatenate([np.zeros(FRAME), signal])
    pieces = np.lib.stride_tricks.sliding_window_view(padded, 2 * FRAME)[::FRAME]
    fade = 0.5 - 0.5 * np.cos(np.pi * np.arange(2 * FRAME) / FRAME)
    filtered = np.fft.irfft(np.fft.rfft(fade * pieces, FFT) * responses, FFT)
    blocks = filtered.reshape(frames, -1, FRAME)
    result = np.zeros((frames + FFT // FRAME, FRAME))
    for i in range(FFT // FRAME):
        result[i : i + frames] += blocks[:, i]
    return result[1 : frames + 1].ravel()
