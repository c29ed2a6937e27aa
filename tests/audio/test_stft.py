import numpy as np
import pytest

from keras_ortho.audio.stft import (
    HOP_LENGTH,
    NUM_BINS,
    istft,
    log_power,
    magnitude,
    resynthesize,
    resynthesize_reference,
    stft,
)

EPS = np.finfo(np.float32).eps


def noise(samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, samples).astype(np.float32)


def hann(length: int) -> np.ndarray:
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)


def transform_by_definition(
    signal: np.ndarray, frame_length: int, hop_length: int
) -> np.ndarray:
    """Frame by frame, with the DFT as a matrix, in float64."""
    hops = -(-len(signal) // hop_length)
    padded = np.zeros(2 * frame_length + hops * hop_length)
    padded[frame_length : frame_length + len(signal)] = signal
    starts = range(0, len(padded) - frame_length + 1, hop_length)
    frames = np.stack([padded[s : s + frame_length] for s in starts])
    n, k = np.arange(frame_length), np.arange(frame_length // 2 + 1)
    dft = np.exp(-2j * np.pi * np.outer(n, k) / frame_length)
    return (frames * hann(frame_length)) @ dft


@pytest.mark.parametrize("samples", [0, 1, 127, 128, 129, 256, 1000, 8001])
def test_frames_come_first_and_cover_the_silence_on_both_sides(samples):
    spectrum = stft(noise(samples))
    assert spectrum.shape == (-(-samples // HOP_LENGTH) + 3, NUM_BINS)
    assert spectrum.dtype == np.complex64
    np.testing.assert_array_equal(spectrum[0], np.zeros(NUM_BINS))
    assert not spectrum[-1].any()


@pytest.mark.parametrize(
    ("samples", "frame_length", "hop_length"),
    [(1000, 256, 128), (77, 8, 2), (100, 16, 16), (5, 256, 64), (50, 6, 3)],
)
def test_stft_is_the_definition(samples, frame_length, hop_length):
    signal = noise(samples)
    expected = transform_by_definition(signal, frame_length, hop_length)
    spectrum = stft(signal, frame_length=frame_length, hop_length=hop_length)
    # A sum of frame_length terms below 1, each rounded, in any order.
    np.testing.assert_allclose(spectrum, expected, rtol=0, atol=frame_length * EPS)


@pytest.mark.parametrize("samples", [1, 128, 1000, 4321])
@pytest.mark.parametrize("lengths", [(256, 128), (256, 64), (8, 2)])
def test_istft_gives_the_signal_back(samples, lengths):
    frame_length, hop_length = lengths
    signal = noise(samples)
    spectrum = stft(signal, frame_length=frame_length, hop_length=hop_length)
    back = istft(
        spectrum, length=samples, frame_length=frame_length, hop_length=hop_length
    )
    assert back.dtype == np.float32
    assert back.shape == (samples,)
    # The squared windows that divide sum to 0.5 or more, so errors at most double.
    np.testing.assert_allclose(back, signal, rtol=0, atol=2 * frame_length * EPS)


def test_log_power_values():
    spectrum = np.array([[1, 10j, -0.1, 1e-4]], np.complex64)
    expected = [[10 * np.log10(1 + 1e-5), 20.0, -20 + 10 * np.log10(1.001), -49.995659]]
    # Rounding of |X|^2 is a relative error, which the logarithm makes absolute.
    np.testing.assert_allclose(log_power(spectrum), expected, rtol=EPS, atol=20 * EPS)
    assert log_power(spectrum).dtype == np.float32


def test_magnitude_keeps_the_floor():
    spectrum = stft(noise(1000))
    power = np.abs(spectrum.astype(np.complex128)) ** 2
    squared = magnitude(log_power(spectrum)).astype(np.float64) ** 2
    # 10^(dB/20) amplifies the rounding of up to 50 dB: ln(10)/20 * 50 * eps, doubled.
    np.testing.assert_allclose(squared, power + 1e-5, rtol=20 * EPS)
    assert magnitude(log_power(spectrum)).dtype == np.float32


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


def test_perfect_prediction_is_the_reference_but_for_the_floor(speech):
    again = resynthesize_reference(speech)
    np.testing.assert_allclose(again, speech, atol=ATOL)
    result = resynthesize(log_power(stft(speech))[1:], speech)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, speech, atol=FLOOR_ATOL)


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
