"""Files of every kind, whole and cut short, and resampling."""

import io

import numpy as np
import pytest
import scipy.signal
import soundfile

from keras_ortho.audio import read_audio, to_int16, write_wav
from keras_ortho.audio.files import decode_audio, resample_to_int16

SAMPLES = np.random.default_rng(0).integers(-32768, 32768, 1000).astype(np.int16)


def written(container, subtype=None, endian=None, samples=SAMPLES):
    file = io.BytesIO()
    # Integers would be written as they are, 32 768 times full scale.
    if subtype in ("FLOAT", "DOUBLE") and samples is SAMPLES:
        samples = SAMPLES / 32768
    soundfile.write(file, samples, 16000, subtype, endian, container)
    return file.getvalue()


def decoded(data):
    samples, rate = decode_audio(data, name="x")
    assert samples.dtype == np.int16
    assert rate == 16000
    return samples


def test_sphere_equals_riff_of_the_same_recordings(data_dir):
    pairs = sorted((data_dir / "timit_riff_pairs").glob("*/*.wav"))
    assert len(pairs) == 10
    for riff in pairs:
        sphere = data_dir / "timit_nltk_sample" / riff.parent.name / riff.name
        assert sphere.read_bytes()[:7] == b"NIST_1A"
        samples, rate = read_audio(sphere)
        expected, expected_rate = soundfile.read(riff, dtype="int16")
        assert rate == expected_rate == 16000
        np.testing.assert_array_equal(samples, expected)
    other = data_dir / "sphere_other"  # By another writer.
    expected, _ = soundfile.read(other / "test.wav", dtype="int16")
    np.testing.assert_array_equal(read_audio(other / "test.sph")[0], expected)


@pytest.mark.parametrize(
    ("container", "endian"),
    [
        ("NIST", "LITTLE"),
        ("NIST", "BIG"),
        ("WAV", "LITTLE"),
        ("WAV", "BIG"),
        *((name, None) for name in ("AIFF", "AU", "CAF", "FLAC", "OGG", "RF64")),
    ],
)
def test_whole_files_are_read_and_no_others(container, endian):
    encodings = "PCM_16 PCM_24 PCM_32 FLOAT DOUBLE ULAW ALAW ALAC_16 VORBIS OPUS"
    for subtype in {*encodings.split()} & {*soundfile.available_subtypes(container)}:
        data = written(container, subtype, endian)
        samples = decoded(data)
        if subtype in ("PCM_16", "PCM_32", "FLOAT"):
            np.testing.assert_array_equal(samples, SAMPLES)
            if container not in ("FLAC", "NIST"):
                np.testing.assert_array_equal(decoded(data + b"more"), SAMPLES)
        for missing in (1, 3, 40, len(data) // 2):
            with pytest.raises(ValueError, match="Received: x"):
                decode_audio(data[:-missing], name="x")


@pytest.mark.parametrize(
    ("whole", "size"),
    [
        (2**32 - 1, 2**32 - 1),
        (0x7FFFF024, 0x7FFFF000),
        (0x7FFFF020, 0x7FFFEFFC),
        (0, 0),
    ],
)
def test_a_writer_that_could_not_seek(whole, size):
    """ffmpeg, SoX with one channel and several, Kaldi."""
    data = bytearray(written("WAV", "PCM_16"))
    data[4:8], data[40:44] = whole.to_bytes(4, "little"), size.to_bytes(4, "little")
    np.testing.assert_array_equal(decoded(bytes(data)), SAMPLES)


def test_channels_and_floating_point():
    two = np.stack([SAMPLES, -SAMPLES // 2], axis=1)
    np.testing.assert_array_equal(decoded(written("WAV", samples=two)), SAMPLES)
    with pytest.raises(ValueError, match="one channel, not 2. Received: x"):
        decode_audio(written("WAV", samples=two), name="x", mono=True)
    # Scaled to 16 bits, and clipped.
    samples = np.array([0.5, -1.0, 1.0, 1.5] + 96 * [0.25])
    found = decoded(written("WAV", "FLOAT", samples=samples))
    assert found[:5].tolist() == [16384, -32768, 32767, 32767, 8192]

    # libsndfile lets what passes full scale in Ogg files wrap around.
    tone = np.clip(3 * np.sin(np.arange(16000) / 8), -1, 1)
    data = written("OGG", "VORBIS", samples=tone)
    floats, _ = soundfile.read(io.BytesIO(data), dtype="float32")
    assert np.abs(floats).max() > 1
    clipped = np.clip(floats, -1, 1)
    np.testing.assert_allclose(decoded(data) / 32768, clipped, atol=1e-4)


def sphere(old=b"", new=b"", end=None):
    """A SPHERE file of `SAMPLES`, with a change to its header."""
    data = written("NIST")
    assert old in data[:1024]
    return data[:1024].replace(old, new, 1).ljust(1024)[:1024] + data[1024:end]


def flac(*total):
    """A FLAC file with another number of samples in its header, of 36 bits."""
    data = bytearray(written("FLAC"))
    data[21] = data[21] & 0xF0 | total[0]
    data[22:26] = bytes(total[1:])
    return bytes(data)


COUNT = b"sample_count -i 1000\n"
SHORTEN = b"sample_coding -s26 pcm,embedded-shorten-v2.00\nend_head"
REFUSED = [
    (b"", "The file is empty"),
    (b"a letter, and no speech", "cannot be read as audio"),
    (sphere()[:900], "cannot be read as audio"),
    (flac(15, 255, 255, 255, 255), "states 68719476735 samples"),
    (flac(0, 0, 0, 0, 0), r"states \d+ samples"),
    (written("WAV", "FLOAT", samples=np.full(9, 2.0)), "-1 and 1.* 9 of 9 samples"),
    (written("WAV", "FLOAT", samples=np.array([0.5, np.nan])), "NaN or infinite"),
    (written("NIST", samples=np.zeros(0)), "contains no samples"),
    (sphere(end=-1), "states 1000 samples, but it holds 999"),
    (sphere() + b"more", "states 1000 samples, but it holds 1002"),
    (sphere(COUNT), "the number of samples once"),
    (sphere(b"end_head", SHORTEN), "compressed, with the coding shorten: .*sph2pipe"),
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_what_is_refused(place):
    data, message = REFUSED[place]
    with pytest.raises(ValueError, match=f"{message}.*Received: SA1.WAV$"):
        decode_audio(data, name="SA1.WAV")


@pytest.mark.parametrize("name", ["dr2-faem0_sx42", "dr2-marc0_sx108"])
def test_resampling_gives_the_published_clean_files(data_dir, name):
    folder, sentence = name.split("_")
    original = data_dir / "timit_nltk_sample" / folder / f"{sentence}.wav"
    clean = data_dir / "speech_quality" / "timit_8k" / f"{name}_clean.wav"
    found = resample_to_int16(*read_audio(original))
    np.testing.assert_array_equal(found, read_audio(clean)[0])


def test_resampling_clips_what_overshoots():
    square = np.repeat(np.array([32767, -32768] * 20, np.int16), 40)
    overshooting = scipy.signal.resample_poly(square.astype(float), 1, 2)
    assert overshooting.max() > 32767
    assert overshooting.min() < -32768
    expected = np.clip(np.rint(overshooting), -32768, 32767)
    np.testing.assert_array_equal(resample_to_int16(square, 16000), expected)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([-1.0, 0.25, 1.0], [-32767, 8192, 32767]),  # Left as it is,
        ([-4.0, 1.0, 0.0], [-32767, 8192, 0]),  # brought to full scale,
        (np.array([-32768, 3], np.int16), [-32768, 3]),
        ([], []),
    ],
)
def test_written_samples(samples, expected, tmp_path):
    np.testing.assert_array_equal(to_int16(np.array(samples)), expected)
    path = tmp_path / "tone.wav"
    path.write_text("Replaced, unless the new file cannot be written.")
    write_wav(path, np.array(samples), 16000)
    found, rate = soundfile.read(path, dtype="int16")
    np.testing.assert_array_equal(found, expected)
    assert rate == 16000
    with pytest.raises(OSError, match="nowhere"):
        write_wav(tmp_path / "nowhere" / "tone.wav", np.array(samples), 16000)
    assert [file.name for file in tmp_path.iterdir()] == ["tone.wav"]
