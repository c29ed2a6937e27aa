"""Resynthesis of speech from predicted log power.

The network reads frame `t` and predicts frame `t + 1`: its output `y_hat[t]`, computed
from frames `0 .. t`, is frame `t + 1`. For an utterance of `L` frames, the outputs
`y_hat[0 .. L-2]` are frames `1 .. L-1`; the last output, `y_hat[L-1]`, predicts the
silence after the utterance and is dropped.
"""

import inspect
from typing import Literal

import numpy as np

from keras_ortho.audio.samples import to_float
from keras_ortho.audio.stft import (
    FRAME_LENGTH,
    HOP_LENGTH,
    istft,
    magnitude,
    stft,
)
from keras_ortho.checks import check_choice, check_count, check_seed
from keras_ortho.extras import require


def resynthesize(
    log_power: np.ndarray,
    reference: np.ndarray,
    *,
    phase: Literal["reference", "griffin_lim"] = "reference",
    iterations: int = 32,
    seed: int = 0,
) -> np.ndarray:
    """Converts the frames predicted for an utterance to a waveform.

    The first frame is that of the reference; the others have the predicted magnitude
    `sqrt(10^(dB / 10))`, from which the floor of the log power is not subtracted. A
    network that predicts log power predicts no phase. The phase is either copied from
    the same frame of the reference, which flatters every score, or reconstructed from
    the magnitudes alone.

    Args:
        log_power: `[frames - 1, 129]` or `[frames, 129]`, in dB. Row `t` is the
            prediction of frame `t + 1` of the reference, which has `frames =
            ceil(samples / 128) + 3` frames. With `frames` rows, the last is dropped.
        reference: The reference utterance at 8 kHz, `[samples]`, floating point with a
            full scale of 1, or int16.
        phase: `"reference"`, as Wisdom et al. score it, or `"griffin_lim"`. Default:
            `"reference"`.
        iterations: Number of iterations of Griffin-Lim. Default: 32.
        seed: Seed of the phases that Griffin-Lim starts from. Default: 0.

    Returns:
        float32 `[samples]`. To keep the fraction of a hop after the end, as Wisdom et
        al. do, pad the reference to a multiple of 128 samples.

    Raises:
        ValueError: If the shape of `log_power` does not fit the reference, an
            input is not finite, or `phase`, `iterations` or `seed` is not allowed.

    Example:
    >>> speech = np.sin(np.arange(1000) / 5)
    >>> predicted = log_power(stft(speech))[1:]  # a perfect prediction
    >>> resynthesize(predicted, speech).shape
    (1000,)

    Reference:

    - [Wisdom et al., 2016](https://arxiv.org/abs/1611.00035), section 5.4 and the
      authors' `recon_timitpred.py`
    - Griffin and Lim, "Signal Estimation from Modified Short-Time Fourier
      Transform", 1984
    """
    check_choice("phase", phase, ("reference", "griffin_lim"))
    iterations = check_count("iterations", iterations)
    seed = check_seed("seed", seed)
    signal = to_float(reference, "reference")
    true = stft(signal)
    log_power = np.asarray(log_power)
    frames, bins = true.shape
    if log_power.shape not in ((frames - 1, bins), (frames, bins)):
        raise ValueError(
            f"`log_power` must have the shape [{frames - 1}, {bins}], or "
            f"[{frames}, {bins}], for a reference of {len(signal)} samples. "
            f"Received: shape {log_power.shape}"
        )
    if not np.isfinite(log_power).all():
        raise ValueError("`log_power` must be finite. Received: NaN or infinite values")
    predicted = magnitude(log_power[: frames - 1])
    magnitudes = np.concatenate([np.abs(true[:1]), predicted])
    if phase == "reference":
        spectrum = magnitudes * np.exp(1j * np.angle(true))
        return istft(spectrum, length=len(signal))
    griffinlim = require("librosa", extra="speech").griffinlim
    # The argument `random_state` of librosa 0.11 is called `rng` from 1.0 on.
    renamed = "rng" in inspect.signature(griffinlim).parameters
    padded = griffinlim(
        magnitudes.T,
        n_iter=iterations,
        hop_length=HOP_LENGTH,
        n_fft=FRAME_LENGTH,
        center=False,
        **{"rng" if renamed else "random_state": seed},
    )
    return padded[FRAME_LENGTH : FRAME_LENGTH + len(signal)]


def resynthesize_reference(reference: np.ndarray) -> np.ndarray:
    """Passes the reference through the transform and back, like its estimates.

    Wisdom et al. score their predictions against this signal, not the original.

    Args:
        reference: `[samples]` at 8 kHz, floating point with a full scale of 1, or
            int16.

    Returns:
        float32 `[samples]`, equal to the reference up to rounding.

    Raises:
        ValueError: If `reference` is not a single finite channel of either type.

    Example:
    >>> speech = np.sin(np.arange(1000) / 5)
    >>> bool(np.allclose(resynthesize_reference(speech), speech, atol=1e-5))
    True
    """
    signal = to_float(reference, "reference")
    return istft(stft(signal), length=len(signal))
