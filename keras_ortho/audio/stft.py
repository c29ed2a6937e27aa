"""The short-time Fourier transform of the TIMIT experiments, and back to waveforms."""

from typing import Literal

import numpy as np

from keras_ortho.audio.samples import to_float
from keras_ortho.checks import (
    check,
    check_all_finite,
    check_choice,
    check_lengths,
    check_shape,
)
from keras_ortho.extras import require

SAMPLE_RATE = 8000
FRAME_LENGTH, HOP_LENGTH = 256, 128
NUM_BINS = FRAME_LENGTH // 2 + 1
POWER_FLOOR = 1e-5
SILENCE_DB = -50.0  # 10 log10(POWER_FLOOR)


def stft(
    signal: np.ndarray,
    *,
    frame_length: int = FRAME_LENGTH,
    hop_length: int = HOP_LENGTH,
) -> np.ndarray:
    """Computes a short-time Fourier transform, with periodic Hann windows.

    The signal is padded with zeros to a multiple of `hop_length`, then on both sides by
    `frame_length`.

    Args:
        signal: `[samples]`, int16, or floating point with a full scale of 1.
        frame_length: Even number of samples under the window. Default: 256.
        hop_length: Samples from frame to frame, a divisor of it. Default: 128.

    Returns:
        complex64 `[ceil(samples / hop_length) + 3, frame_length // 2 + 1]` by default.

    Raises:
        ValueError: If `signal` is not a single finite channel, or a length is invalid.

    Example:
    >>> stft(np.zeros(1000, "float32")).shape
    (11, 129)
    """
    check_lengths(frame_length, hop_length)
    signal = to_float(signal, "signal")
    end = frame_length + -len(signal) % hop_length
    padded = np.pad(signal.astype(np.float32), (frame_length, end))
    transform = require("librosa", extra="speech").stft
    return transform(padded, n_fft=frame_length, hop_length=hop_length, center=False).T


def istft(
    spectrum: np.ndarray,
    *,
    length: int,
    frame_length: int = FRAME_LENGTH,
    hop_length: int = HOP_LENGTH,
) -> np.ndarray:
    """Inverts `stft`, in the least-squares sense of Griffin and Lim (1984).

    Args:
        spectrum: `[frames, frame_length // 2 + 1]`, complex, as from `stft`.
        length: Number of samples of the signal.
        frame_length: As for `stft`. Default: 256.
        hop_length: As for `stft`, but less than `frame_length`. Default: 128.

    Returns:
        float32 `[length]`.

    Raises:
        ValueError: If a length or the shape of `spectrum` does not fit.

    Example:
    >>> signal = np.sin(np.arange(1000, dtype="float32"))
    >>> bool(np.allclose(istft(stft(signal), length=1000), signal, atol=1e-5))
    True
    """
    check_lengths(frame_length, hop_length, overlap=True)
    spectrum = np.asarray(spectrum)
    check_shape("spectrum", spectrum, (len(spectrum), frame_length // 2 + 1))
    longest = (len(spectrum) - 1) * hop_length - frame_length
    wanted = f"lie in 0 .. {longest} for {len(spectrum)} frames"
    check(0 <= length <= longest, "length", wanted, length)
    lengths = {"n_fft": frame_length, "hop_length": hop_length, "center": False}
    spectrum = spectrum.astype(np.complex64, copy=False)
    padded = require("librosa", extra="speech").istft(spectrum.T, **lengths)
    return padded[frame_length : frame_length + length]


def log_power(spectrum: np.ndarray) -> np.ndarray:
    """Computes the log power `10 log10(1e-5 + |X|^2)` in dB.

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

    Args:
        log_power: `[frames, bins]`, in dB; its floor is not subtracted.

    Returns:
        float32 `[frames, bins]`.

    Example:
    >>> magnitude(np.array([[-50.0, 0.0, 20.0]])).round(4).tolist()
    [[0.0031999999191612005, 1.0, 10.0]]
    """
    return np.power(10.0, np.asarray(log_power, np.float32) / np.float32(20))


def resynthesize(
    log_power: np.ndarray,
    reference: np.ndarray,
    *,
    phase: Literal["reference", "griffin_lim"] = "reference",
    iterations: int = 32,
    seed: int = 0,
) -> np.ndarray:
    """Converts the frames predicted for an utterance to a waveform.

    The first frame is the reference's; the others have the predicted magnitude, and the
    reference's phase, which flatters every score, or one reconstructed.

    Args:
        log_power: `[frames - 1, 129]`, in dB, row `t` predicting frame `t + 1` of the
            reference's; or `[frames, 129]`, of which the last is dropped.
        reference: The reference utterance at 8 kHz, `[samples]`, as for `stft`.
        phase: `"reference"`, as in the papers and by default, or `"griffin_lim"`.
        iterations: Number of iterations of Griffin and Lim (1984). Default: 32.
        seed: Seed of the phases that they start from. Default: 0.

    Returns:
        float32 `[samples]`.

    Raises:
        ValueError: If an argument is not as described, or not finite.

    Example:
    >>> speech = np.sin(np.arange(1000) / 5)
    >>> predicted = log_power(stft(speech))[1:]  # a perfect prediction
    >>> resynthesize(predicted, speech).shape
    (1000,)

    Reference:
    - [Wisdom et al., 2016](https://arxiv.org/abs/1611.00035), section 5.4
    """
    check_choice("phase", phase, ("reference", "griffin_lim"))
    true = stft(reference)
    predicted = np.asarray(log_power)
    if len(predicted) == len(true):
        predicted = predicted[:-1]
    check_shape("log_power", predicted, (len(true) - 1, NUM_BINS))
    check_all_finite("log_power", predicted)
    magnitudes = np.concatenate([np.abs(true[:1]), magnitude(predicted)])
    if phase == "reference":
        spectrum = magnitudes * np.exp(1j * np.angle(true))
        return istft(spectrum, length=len(reference))
    lengths = {"n_fft": FRAME_LENGTH, "hop_length": HOP_LENGTH, "center": False}
    padded = require("librosa", extra="speech").griffinlim(
        magnitudes.T, n_iter=iterations, random_state=seed, **lengths
    )
    return padded[FRAME_LENGTH : FRAME_LENGTH + len(reference)]


def resynthesize_reference(reference: np.ndarray) -> np.ndarray:
    """Passes the reference through the transform and back, as Wisdom et al. score it.

    Args:
        reference: `[samples]` at 8 kHz, as for `stft`.

    Returns:
        float32 `[samples]`, equal to the reference up to rounding.

    Example:
    >>> speech = np.sin(np.arange(1000) / 5)
    >>> bool(np.allclose(resynthesize_reference(speech), speech, atol=1e-5))
    True
    """
    return istft(stft(reference), length=len(reference))
