"""Tests of samples and WAV files."""

import os
from pathlib import Path

import numpy as np
import pytest

from keras_ortho.audio import to_float, to_int16, write_wav

soundfile = pytest.importorskip("soundfile")


def test_to_float():
    integers = np.array([-32768, -1, 0, 32767], np.int16)
    np.testing.assert_array_equal(to_float(integers), integers / 32768)
    floats = np.array([-2.0, 0.5], np.float32)
    np.testing.assert_array_equal(to_float(floats), floats)
    assert to_float(floats).dtype == np.float64


def test_to_int16():
    for samples, expected in [
        ([-1.0, 0.25, 1.0], [-32767, 8192, 32767]),  # Left as it is,
        ([-4.0, 1.0, 0.0], [-32767, 8192, 0]),  # brought to full scale.
        ([], []),
    ]:
        np.testing.assert_array_equal(to_int16(np.array(samples)), expected)
    integers = np.array([-32768, 3], np.int16)
    np.testing.assert_array_equal(to_int16(integers), integers)
    assert not np.shares_memory(to_int16(integers), integers)


def test_round_trip():
    integers = np.arange(-32767, 32768, 97).astype(np.int16)
    # 32767 against 32768: less than one step, and half a step of rounding.
    assert np.abs(to_int16(to_float(integers)) - integers.astype(int)).max() <= 1


def test_wav(tmp_path):
    path = tmp_path / "tone.wav"
    samples = np.sin(np.arange(800) / 5)
    write_wav(path, samples, 8000)
    read, rate = soundfile.read(path, dtype="int16")
    np.testing.assert_array_equal(read, to_int16(samples))
    assert rate == 8000
    assert soundfile.info(path).subtype == "PCM_16"
    write_wav(path, samples[:10], 16000)
    assert soundfile.info(path).frames == 10
    assert os.listdir(tmp_path) == ["tone.wav"]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "tone.wav"
    write_wav(path, np.ones(10), 8000)
    before = path.read_bytes()

    def fail_half_way(self, data):
        with open(self, "wb") as half:
            half.write(data[:4])
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", fail_half_way)
    with pytest.raises(OSError, match="no space"):
        write_wav(path, np.zeros(10), 8000)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["tone.wav"]
