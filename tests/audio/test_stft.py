import numpy as np
import pytest

from keras_ortho.audio.stft import (
    FRAME_LENGTH,
    HOP_LENGTH,
    NUM_BINS,
    SILENCE_DB,
    istft,
    log_power,
    magnitude,
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
    assert not spectrum[0].any()
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


def test_a_sinusoid_in_the_middle_of_a_bin():
    signal = np.cos(2 * np.pi * 10 * np.arange(2560) / FRAME_LENGTH)
    middle = np.abs(stft(signal)[10])
    # Half the sum of the window, 128, and half of that on both sides.
    expected = np.zeros(NUM_BINS)
    expected[9:12] = [32, 64, 32]
    np.testing.assert_allclose(middle, expected, atol=FRAME_LENGTH * EPS)


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


def test_istft_is_the_least_squares_signal():
    frame_length, hop_length, samples = 8, 4, 20
    rng = np.random.default_rng(0)
    count = samples // hop_length + 3
    spectrum = rng.standard_normal((count, 5)) + 1j * rng.standard_normal((count, 5))
    frames = np.fft.irfft(spectrum, frame_length)
    padded = samples + 2 * frame_length
    windowing = np.zeros((count, frame_length, padded))
    for frame in range(count):
        for n, weight in enumerate(hann(frame_length)):
            windowing[frame, n, frame * hop_length + n] = weight
    best = np.linalg.lstsq(windowing.reshape(-1, padded), frames.ravel(), rcond=None)[0]
    signal = istft(
        spectrum, length=samples, frame_length=frame_length, hop_length=hop_length
    )
    expected = best[frame_length : frame_length + samples]
    np.testing.assert_allclose(signal, expected, rtol=0, atol=8 * frame_length * EPS)


def test_stft_of_16_bit_integers_is_of_full_scale_1():
    whole = (1000 * noise(1000)).astype("int16")
    np.testing.assert_array_equal(stft(whole), stft(whole / 32768))


def test_log_power_of_silence_is_the_padding_of_the_task():
    assert (log_power(stft(np.zeros(1000))) == SILENCE_DB).all()


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


@pytest.mark.parametrize(
    ("signal", "message"),
    [
        (
            np.zeros((10, 2)),
            r"`signal` must be int16 or floating point, of shape \[samples\]",
        ),
        (np.zeros(10, complex), "Received: complex128"),
        (np.array([0.0, np.nan]), "`signal` must be finite"),
        (np.array([0.0, np.inf]), "`signal` must be finite"),
        (np.array([0.0, -1e31]), "`signal` must not exceed 1e.30.* Received: .*1e.31"),
        (np.zeros(10, "int32"), "Received: int32"),
    ],
)
def test_stft_rejects_what_is_no_signal(signal, message):
    with pytest.raises(ValueError, match=message):
        stft(signal)


@pytest.mark.parametrize("frame_length", [0, -2, 7])
def test_frame_length_must_be_even_and_positive(frame_length):
    with pytest.raises(ValueError, match=f"frame_length.*Received: {frame_length}"):
        stft(np.zeros(10), frame_length=frame_length)


@pytest.mark.parametrize("hop_length", [0, -1, 100, FRAME_LENGTH, 512])
def test_hop_length_must_divide_and_frames_overlap(hop_length):
    with pytest.raises(ValueError, match=f"hop_length.*Received: {hop_length}"):
        istft(np.zeros((9, NUM_BINS)), length=10, hop_length=hop_length)


def test_istft_rejects_what_does_not_fit():
    for length in (10.5, "ten", None):
        with pytest.raises(ValueError, match="`length` must be an .* Received: "):
            istft(np.zeros((9, NUM_BINS)), length=length)
    with pytest.raises(ValueError, match=r"shape \[frames, 129\].*\(129, 9\)"):
        istft(np.zeros((NUM_BINS, 9)), length=10)
    with pytest.raises(ValueError, match=r"in 0 .. 768 for 9 frames. Received: 769"):
        istft(np.zeros((9, NUM_BINS)), length=769)
    assert not istft(np.zeros((9, NUM_BINS)), length=768).any()
