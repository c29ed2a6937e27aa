"""Conversion of samples to floats or 16-bit integers, and writing of WAV files."""

import numpy as np

from keras_ortho.checks import check, check_all_finite, check_count
from keras_ortho.extras import require
from keras_ortho.files import FilePath, replacing

FULL_SCALE = 32768


def to_float(samples: np.ndarray, name: str = "samples") -> np.ndarray:
    """Converts samples to float64, and scales 16-bit integers to a full scale of 1.

    Args:
        samples: `[samples]`, int16 or floating point.
        name: Name of the argument for error messages. Default: `"samples"`.

    Returns:
        float64 `[samples]`: int16 divided by 32768, or floating point as it is.

    Raises:
        ValueError: If `samples` is not a single finite channel of either type.

    Example:
    >>> to_float(np.array([-32768, 16384], "int16")).tolist()
    [-1.0, 0.5]
    """
    samples = np.asarray(samples)
    floating = np.issubdtype(samples.dtype, np.floating)
    fits = samples.ndim == 1 and (floating or samples.dtype == np.int16)
    wanted = "be int16 or floating point, of shape [samples]"
    check(fits, name, wanted, f"{samples.dtype} of shape {samples.shape}")
    check_all_finite(name, samples)
    floats = samples.astype(np.float64)
    return floats if floating else floats / FULL_SCALE


def signal_pair(
    estimate: np.ndarray, reference: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Converts two signals to float64, and cuts them to the length of the shorter."""
    estimate = to_float(estimate, "estimate")
    reference = to_float(reference, "reference")
    length = min(len(estimate), len(reference))
    return estimate[:length], reference[:length]


def to_int16(samples: np.ndarray) -> np.ndarray:
    """Converts samples, divided by a peak above 1, to 16 bits: 1 becomes 32767."""
    floats = to_float(samples)
    if np.asarray(samples).dtype == np.int16:
        return np.array(samples)
    peak = np.abs(floats).max(initial=1.0)
    return np.rint(floats / peak * (FULL_SCALE - 1)).astype(np.int16)


def write_wav(path: FilePath, samples: np.ndarray, sample_rate: int) -> None:
    """Writes a 16-bit WAV file; an existing file is replaced atomically.

    Args:
        path: File to write.
        samples: `[samples]`, int16, or floating point, divided by a peak above 1.
        sample_rate: Sampling rate in Hz.

    Raises:
        OSError: If the file cannot be written, as in a folder that does not exist.

    Example:
    ```python
    write_wav("prediction.wav", waveform, 8000)
    ```
    """
    integers = to_int16(samples)
    sample_rate = check_count("sample_rate", sample_rate)
    soundfile = require("soundfile", extra="speech")
    # Opened here, as soundfile's error is not an `OSError`.
    with replacing(path) as aside, aside.open("wb") as file:
        soundfile.write(file, integers, sample_rate, subtype="PCM_16", format="WAV")
