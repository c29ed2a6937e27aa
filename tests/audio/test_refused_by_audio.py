"""What is refused, and how the message begins and ends."""

import numpy as np
import pytest

from keras_ortho import audio

ONES = np.ones(3)
RANDOM = np.random.default_rng(0)
FRAMES = np.zeros((9, audio.NUM_BINS))
WHOLE = np.zeros(10, np.int16)
REFERENCE = np.zeros(1000)
CASES = [
    *(
        case
        for function in (audio.to_float, audio.to_int16, audio.stft, audio.wiener)
        for case in (
            (function, [np.zeros((2, 3))], {}, r"float64 of shape \(2, 3\)$"),
            (function, [np.zeros(3, complex)], {}, "Received: complex128"),
            (function, [np.zeros(3, "int32")], {}, "Received: int32"),
            (function, [np.array([np.inf])], {}, "must be finite"),
        )
    ),
    (audio.write_wav, ["a.wav", ONES, 0], {}, "`sample_rate`.*sample_rate=0$"),
    (audio.mix, [ONES, np.ones(4), 0.0], {}, "`noise` must have as.* Received: 4$"),
    (audio.mix, [ONES, 0 * ONES, 0.0], {}, "`noise` must not be silent"),
    (audio.mix, [0 * ONES, ONES, 0.0], {}, "`speech` must not be silent"),
    (audio.mix, [ONES, ONES, 1e5], {}, "`snr` must be from -200 .* snr=100000.0$"),
    (audio.mix, [ONES, ONES, "3"], {}, "`snr` must be .* Received: snr='3'$"),
    (audio.at_level, [0 * ONES, 0.0], {}, "silent. Received: 3 samples, all zero$"),
    (audio.at_level, [ONES, np.nan], {}, "`level` must be .* Received: level=nan$"),
    (audio.babble, [10, RANDOM, []], {}, "`voices` must contain .* Received: none$"),
    (audio.excerpt, [0 * ONES, 3, RANDOM], {}, "`sound` must not be silent. Received"),
    (audio.excerpt, [ONES[:0], 3, RANDOM], {}, "`sound` must not be silent. Received"),
    (audio.excerpt, [ONES, 0, RANDOM], {}, "`samples` must be .* samples=0$"),
    (audio.resample_to_int16, [np.zeros(10), 16000], {}, "must be int16"),
    (audio.resample_to_int16, [WHOLE, 0], {}, "`rate` must be a pos.*: rate=0$"),
    (audio.resample_to_int16, [WHOLE, 2**31], {}, "at most .* rate=2147483648$"),
    *(
        (audio.stft, [ONES], {"frame_length": n}, f"`frame_length`.* {n}$")
        for n in (0, 7, 2.0)
    ),
    *(
        (audio.istft, [FRAMES], {"length": 10, "hop_length": n}, f"`hop_length`.* {n}$")
        for n in (0, 100, 256)
    ),
    *(
        (audio.istft, [FRAMES], {"length": n}, f"`length` .* 0 .. 768 .*: {n}$")
        for n in (10.5, 769, None)
    ),
    (audio.istft, [FRAMES.T], {"length": 10}, r"\[frames, 129\].*\(129, 9\)"),
    (audio.resynthesize, [FRAMES, REFERENCE], {}, r"\[10, 129\], or \[11, 129\].*\(9,"),
    (audio.resynthesize, [0 * FRAMES + np.nan, REFERENCE[:800]], {}, "must be finite"),
    (audio.resynthesize, [FRAMES, FRAMES], {}, "`reference` must be int16 or"),
    (audio.resynthesize, [FRAMES, ONES], {"phase": "zero"}, "`phase` .* phase='zero'$"),
    (audio.resynthesize, [FRAMES, ONES], {"iterations": 0}, "`iter.* iterations=0$"),
]


@pytest.mark.parametrize("place", range(len(CASES)))
def test_message(place):
    function, arguments, options, message = CASES[place]
    with pytest.raises(ValueError, match=message):
        function(*arguments, **options)


def test_files_and_folders(tmp_path):
    samples = np.zeros((9, 2), np.int16)
    audio.write_wav(tmp_path / "mono.wav", samples[:, 0], 8000)
    soundfile = pytest.importorskip("soundfile")
    soundfile.write(tmp_path / "stereo.wav", samples, 8000)
    with pytest.raises(ValueError, match="one channel, not 2. Received: .*stereo.wav"):
        audio.read_audio(tmp_path / "stereo.wav", mono=True)
    with pytest.raises(FileNotFoundError, match="SX1.WAV"):
        audio.read_audio(tmp_path / "SX1.WAV")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        audio.write_wav(tmp_path / "nowhere" / "a.wav", ONES, 8000)
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        audio.write_wav(tmp_path, ONES, 8000)
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {"mono.wav", "stereo.wav"}
