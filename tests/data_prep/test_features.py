import io

import numpy as np
import pytest
import soundfile

from keras_ortho.audio.files import resample_to_int16
from keras_ortho.audio.stft import log_power, stft
from keras_ortho.data_prep.features import extract
from tests.data_prep.corpora import noise


def sphere(samples: np.ndarray, rate: int = 16000) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="NIST", subtype="PCM_16")
    return file.getvalue()


def test_features_of_a_recording():
    samples = noise(0, 5000)
    features = extract(sphere(samples), name="x")
    audio = resample_to_int16(samples, 16000)
    np.testing.assert_array_equal(features.audio, audio)
    expected = log_power(stft(audio.astype(np.float32) / 32768))
    np.testing.assert_array_equal(features.log_power, expected)
    assert features.log_power.dtype == np.float32
    assert features.log_power.shape == (-(-2500 // 128) + 3, 129)


@pytest.mark.parametrize(
    ("samples", "rate", "reason"),
    [
        (np.zeros(5000, np.int16), 16000, "Silent: all samples are 0."),
        (np.full(5000, -3, np.int16), 16000, "Silent: all samples are -3."),
        (noise(0, 510), 16000, "Too short: 255 samples at 8000 Hz"),
        (noise(0, 600 * 8000 + 1), 8000, "Too long: 4800001 samples at 8000 Hz"),
        (noise(0, 5000).reshape(-1, 2), 16000, "must have one channel, not 2"),
        (noise(0, 5000), 7999, r"must lie in 8000 \.\. 192000 Hz, not 7999"),
        (noise(0, 5000), 192001, "not 192001"),
    ],
)
def test_what_cannot_be_used_is_named(samples, rate, reason):
    with pytest.raises(ValueError, match=rf"{reason}.* Received: SX1\.WAV"):
        extract(sphere(samples, rate), name="SX1.WAV")
