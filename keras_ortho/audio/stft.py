"""The short-time Fourier transform of the TIMIT experiments, and its inverse.

Wisdom et al., "Full-Capacity Unitary Recurrent Neural Networks" (NeurIPS 2016),
and Helfrich et al., "Orthogonal Recurrent Neural Networks with Scaled Cayley
Transform" (ICML 2018), predict the next frame of 8 kHz speech: Hann windows of
256 samples with 50% overlap, as log power in 129 bins.
"""

import numpy as np

from keras_ortho.audio.samples import to_float
from keras_ortho.checks import is_integer
from keras_ortho.extras import require
from keras_ortho.frames import (
    FRAME_LENGTH,
    HOP_LENGTH,
    check_inverse_lengths,
    check_lengths,
)

SAMPLE_RATE = 8000
NUM_BINS = FRAME_LENGTH // 2 + 1
POWER_FLOOR = 1e-5
SILENCE_DB = -50.0  # 10 log10(POWER_FLOOR)
# Sums of such samples over a window are finite in float32.
LARGEST_SAMPLE = 1e30


def stft(
    signal: np.ndarray,
    *,
    frame_length: int = FRAME_LENGTH,
    hop_length: int = HOP_LENGTH,
) -> np.ndarray:
    """Computes a short-time Fourier transform, with silence on both sides.

    The signal is zero-padded at its end to a multiple of `hop_length`, and then by
    `frame_length` zeros on both sides, so that every sample is covered by the same
    number of windows. The window is the periodic Hann window, without normalization.

    Args:
        signal: `[samples]`, int16, or floating point with a full scale of 1; converted
            to float32.
        frame_length: Even number of samples under the window. Default: 256.
        hop_length: Number of samples from one frame to the next; a divisor of
            `frame_length`. If the two are equal, the transform has no inverse, because
            the window begins with zero. Default: 128.

    Returns:
        complex64 `[frames, frame_length // 2 + 1]`, frames first. With the
        default lengths there are `ceil(samples / 128) + 3` frames.

    Raises:
        ValueError: If `signal` is not a single finite channel of either type, or has a
            sample above 1e30, or a length does not fit.
        ImportError: If librosa is not installed.

    Example:
    >>> stft(np.zeros(1000, "float32")).shape
    (11, 129)
    """
    check_lengths(frame_length, hop_length)
    signal = to_float(signal, "signal")
    largest = np.abs(signal).max(initial=0.0)
    if largest > LARGEST_SAMPLE:
        raise ValueError(
            f"`signal` must not exceed {LARGEST_SAMPLE:g}: its transform would "
            f"overflow float32. Received: a sample of {largest:g}"
        )
    end = frame_length + -len(signal) % hop_length
    padded = np.pad(signal.astype(np.float32), (frame_length, end))
    return (
        require("librosa", extra="speech")
        .stft(padded, n_fft=frame_length, hop_length=hop_length, center=False)
        .T
    )


def istft(
    spectrum: np.ndarray,
    *,
    length: int,
    frame_length: int = FRAME_LENGTH,
    hop_length: int = HOP_LENGTH,
) -> np.ndarray:
    """Inverts `stft`, by windowed overlap-add divided by the sum of squared windows.

    For a spectrum that no signal has, such as a predicted one, it returns the signal
    whose transform is closest in the least-squares sense (Griffin and Lim, 1984).

    Args:
        spectrum: `[frames, frame_length // 2 + 1]`, complex, as from `stft`.
        length: Number of samples of the signal, without the silence on both sides.
        frame_length: As for `stft`. Default: 256.
        hop_length: As for `stft`, but less than `frame_length`. Default: 128.

    Returns:
        float32 `[length]`.

    Raises:
        ValueError: If a length does not fit, the shape of `spectrum` does not fit
            `frame_length`, or there are too few frames for `length`.

    Example:
    >>> signal = np.sin(np.arange(1000, dtype="float32"))
    >>> bool(np.allclose(istft(stft(signal), length=1000), signal, atol=1e-5))
    True
    """
    check_inverse_lengths(frame_length, hop_length)
    spectrum = np.asarray(spectrum)
    bins = frame_length // 2 + 1
    if spectrum.ndim != 2 or spectrum.shape[1] != bins:
        raise ValueError(
            f"`spectrum` must have the shape [frames, {bins}]. "
            f"Received: shape {spectrum.shape}"
        )
    longest = (len(spectrum) - 1) * hop_length - frame_length
    if not is_integer(length) or not 0 <= length <= longest:
        raise ValueError(
            f"`length` must be an integer in 0 .. {longest} for {len(spectrum)} "
            f"frames. Received: {length!r}"
        )
    padded = require("librosa", extra="speech").istft(
        spectrum.astype(np.complex64, copy=False).T,
        n_fft=frame_length,
        hop_length=hop_length,
        center=False,
    )
    return padded[frame_length : frame_length + length]


def log_power(spectrum: np.ndarray) -> np.ndarray:
    """Computes the log power `10 log10(1e-5 + |X|^2)` in dB, the experiments' feature.

    Args:
        spectrum: `[frames, bins]`, complex.

    Returns:
        float32 `[frames, bins]`; `SILENCE_DB` where the spectrum is zero.

    Example:
    >>> log_power(np.array([[0.0, 1.0, 10.0j]], "complex64")).round(2).tolist()
    [[-50.0, 0.0, 20.0]]
    """
    # In float64, because float32's log10 rounds silence to below SILENCE_DB.
    power = np.square(np.abs(spectrum), dtype=np.float64)
    return (10 * np.log10(POWER_FLOOR + power)).astype(np.float32)


def magnitude(log_power: np.ndarray) -> np.ndarray:
    """Computes the magnitude `sqrt(10^(dB / 10))` of a log power.

    The floor of `log_power` is not subtracted, as in Wisdom et al.: -50 dB becomes
    0.003.

    Args:
        log_power: `[frames, bins]`, in dB.

    Returns:
        float32 `[frames, bins]`.

    Example:
    >>> magnitude(np.array([[-50.0, 0.0, 20.0]])).round(4).tolist()
    [[0.0031999999191612005, 1.0, 10.0]]
    """
    return np.power(10.0, np.asarray(log_power, np.float32) / np.float32(20))
