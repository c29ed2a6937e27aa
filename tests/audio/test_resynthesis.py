"""Tests of resynthesis."""

import numpy as np
import pytest

from keras_ortho.audio import (
    istft,
    log_power,
    magnitude,
    resynthesize,
    resynthesize_reference,
    stft,
)

pytest.importorskip("librosa")


@pytest.fixture
def speech():
    times = np.arange(5001) / 8000
    noise = np.random.default_rng(0).standard_normal(5001)
    return 0.1 * noise * (1.2 + np.sin(2 * np.pi * 4 * times))


# Two transforms of 256 points in float32, of samples below 1.
ATOL = 2 * 256 * np.finfo(np.float32).eps
# The floor adds up to sqrt(1e-5) to the magnitude of each of 256 bins (129 and their
# mirror images); the inverse transform divides by 256, overlap-add by at least 1/2,
# the least sum of two squared Hann windows.
FLOOR_ATOL = 2 * np.sqrt(1e-5) + ATOL


def test_reference_comes_back(speech):
    result = resynthesize_reference(speech)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, speech, atol=ATOL)


def test_perfect_prediction_is_the_reference_but_for_the_floor(speech):
    result = resynthesize(log_power(stft(speech))[1:], speech)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, speech, atol=FLOOR_ATOL)


def test_the_floor_is_not_subtracted(speech):
    features = log_power(stft(speech))
    spectrum = magnitude(features) * np.exp(1j * np.angle(stft(speech)))
    spectrum[0] = stft(speech)[0]
    expected = istft(spectrum, length=len(speech))
    np.testing.assert_allclose(resynthesize(features[1:], speech), expected, atol=ATOL)


def test_row_t_is_frame_t_plus_1(speech):
    """Frames made loud one by one are heard where they lie."""
    frames = len(stft(speech))
    for frame in (3, 20):
        predicted = np.full((frames - 1, 129), -200.0)
        predicted[frame - 1] = 0
        result = resynthesize(predicted, speech)
        # The signal starts 256 samples, two hops, after the first frame.
        loud = np.flatnonzero(np.abs(result) > 1e-6)
        start = (frame - 2) * 128
        assert start <= loud[0] < start + 10
        assert start + 246 < loud[-1] < start + 256


def test_the_last_output_is_dropped(speech):
    features = log_power(stft(speech))[1:]
    with_pad_frame = np.concatenate([features, np.full((1, 129), 60.0)])
    np.testing.assert_array_equal(
        resynthesize(with_pad_frame, speech), resynthesize(features, speech)
    )


def test_first_frame_is_the_reference():
    # Loud from the very first sample, which the first frames lie over.
    reference = np.ones(1000)
    silent = np.full((len(stft(reference)) - 1, 129), -400.0)
    assert np.abs(resynthesize(silent, reference)).max() < 1e-6


def spectral_error(signal, reference):
    """Error of the magnitudes in dB, relative to the reference."""
    true = np.abs(stft(reference))
    error = np.abs(stft(signal)) - true
    return 10 * np.log10(np.sum(error**2) / np.sum(true**2))


def test_griffin_lim(speech):
    features = log_power(stft(speech))[1:]
    options = {"phase": "griffin_lim", "seed": 1}
    few = resynthesize(features, speech, **options, iterations=1)
    many = resynthesize(features, speech, **options, iterations=60)
    assert many.shape == speech.shape
    assert spectral_error(many, speech) < spectral_error(few, speech) - 3
    np.testing.assert_array_equal(
        resynthesize(features, speech, **options, iterations=60), many
    )


def test_griffin_lim_starts_from_the_seed(speech):
    features = log_power(stft(speech))[1:]
    options = {"phase": "griffin_lim", "iterations": 3}
    results = [resynthesize(features, speech, **options, seed=n) for n in (0, 0, 1, 2)]
    np.testing.assert_array_equal(results[0], results[1])
    # Other phases, other samples: of the order of the signal, which is 0.1.
    for one, other in ((0, 2), (0, 3), (2, 3)):
        assert np.abs(results[one] - results[other]).max() > 0.01
    default = resynthesize(features, speech, **options)
    np.testing.assert_array_equal(default, results[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"phase": "zero"}, "`phase` .* Received: phase='zero'"),
        ({"iterations": 0}, "`iterations` .* Received: iterations=0"),
        ({"log_power": np.zeros((9, 129))}, r"\[10, 129\], or \[11, 129\].*\(9, 129"),
        ({"log_power": np.zeros((10, 128))}, r"Received: shape \(10, 128\)"),
        ({"log_power": np.full((10, 129), np.nan)}, "`log_power` must be finite"),
        ({"reference": np.zeros((1, 1000))}, "`reference` must be int16 or"),
        ({"reference": np.full(1000, np.inf)}, "`reference` must be finite"),
    ],
)
def test_bad_input(changes, message):
    arguments = {"log_power": np.zeros((10, 129)), "reference": np.zeros(1000)}
    with pytest.raises(ValueError, match=message):
        resynthesize(**arguments | changes)
