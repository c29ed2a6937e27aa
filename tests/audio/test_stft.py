import numpy as np
import pytest

from keras_ortho import audio

EPS = np.finfo(np.float32).eps


def transform_by_definition(signal, frame_length, hop_length):
    """Frame by frame, with the DFT as a matrix, in float64."""
    hops = -(-len(signal) // hop_length)
    padded = np.zeros(2 * frame_length + hops * hop_length)
    padded[frame_length : frame_length + len(signal)] = signal
    starts = range(0, len(padded) - frame_length + 1, hop_length)
    frames = np.stack([padded[s : s + frame_length] for s in starts])
    n, k = np.arange(frame_length), np.arange(frame_length // 2 + 1)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * n / frame_length)
    return (frames * window) @ np.exp(-2j * np.pi * np.outer(n, k) / frame_length)


@pytest.mark.parametrize(
    ("samples", "frame_length", "hop_length"),
    [(0, 256, 128), (1000, 256, 128), (77, 8, 2), (50, 6, 3)],
)
def test_there_and_back(samples, frame_length, hop_length):
    lengths = {"frame_length": frame_length, "hop_length": hop_length}
    signal = np.random.default_rng(0).uniform(-1, 1, samples).astype(np.float32)
    expected = transform_by_definition(signal, frame_length, hop_length)
    spectrum = audio.stft(signal, **lengths)
    # A sum of frame_length terms below 1, each rounded, in any order.
    np.testing.assert_allclose(spectrum, expected, rtol=0, atol=frame_length * EPS)
    # The squared windows that divide sum to 0.5 or more, so errors at most double.
    back = audio.istft(spectrum, length=samples, **lengths)
    np.testing.assert_allclose(back, signal, rtol=0, atol=2 * frame_length * EPS)


def test_log_power_and_magnitude():
    spectrum = np.array([[1, 10j, -0.1, 1e-4]], np.complex64)
    expected = [[10 * np.log10(1 + 1e-5), 20.0, -20 + 10 * np.log10(1.001), -49.995659]]
    # Rounding of |X|^2 is a relative error, which the logarithm makes absolute.
    found = audio.log_power(spectrum)
    np.testing.assert_allclose(found, expected, rtol=EPS, atol=20 * EPS)
    assert audio.log_power(0 * spectrum).max() == -50
    power = np.abs(spectrum.astype(np.complex128)) ** 2
    squared = audio.magnitude(found).astype(np.float64) ** 2
    # 10^(dB/20) amplifies the rounding of up to 50 dB: ln(10)/20 * 50 * eps, doubled.
    np.testing.assert_allclose(squared, power + 1e-5, rtol=20 * EPS)


TIMES = np.arange(5001) / 8000
NOISE = np.random.default_rng(0).standard_normal(5001)
SPEECH = 0.1 * NOISE * (1.2 + np.sin(2 * np.pi * 4 * TIMES))


def test_perfect_prediction_is_the_reference_but_for_the_floor():
    # Two transforms of 256 points in float32, of samples below 1.
    rounding = 2 * 256 * EPS
    again = audio.resynthesize_reference(SPEECH)
    np.testing.assert_allclose(again, SPEECH, atol=rounding)
    # The floor adds up to sqrt(1e-5) to the magnitude of each of 256 bins (129 and
    # their mirror images); the inverse divides by 256, overlap-add by at least 1/2.
    floor = 2 * np.sqrt(1e-5)
    features = audio.log_power(audio.stft(SPEECH))[1:]
    result = audio.resynthesize(features, SPEECH)
    np.testing.assert_allclose(result, SPEECH, atol=floor + rounding)
    # The last output, after the end, is dropped.
    more = np.concatenate([features, np.full((1, 129), 60.0)])
    np.testing.assert_array_equal(audio.resynthesize(more, SPEECH), result)


def test_griffin_lim_converges_from_its_seed():
    true = np.abs(audio.stft(SPEECH))

    def found(iterations, seed):
        options = {"phase": "griffin_lim", "iterations": iterations, "seed": seed}
        return audio.resynthesize(audio.log_power(true)[1:], SPEECH, **options)

    def error(signal):
        return 10 * np.log10(np.sum((np.abs(audio.stft(signal)) - true) ** 2))

    assert error(found(60, 1)) < error(found(1, 1)) - 3
    one = found(3, 0)
    np.testing.assert_array_equal(found(3, 0), one)
    # Other phases, other samples: of the order of the signal, which is 0.1.
    assert np.abs(found(3, 1) - one).max() > 0.01
