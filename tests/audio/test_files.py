import io

import numpy as np
import pytest
import soundfile

from keras_ortho.audio import read_audio, write_wav
from keras_ortho.audio.files import decode_audio, resample_to_int16
from keras_ortho.audio.samples import to_int16

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
    other = data_dir / "sphere_other"  # By another writer.
    spheres = {r: f"timit_nltk_sample/{r.parent.name}/{r.name}" for r in pairs}
    for riff, sphere in (*spheres.items(), (other / "test.wav", other / "test.sph")):
        expected, expected_rate = soundfile.read(riff, dtype="int16")
        samples, rate = read_audio(data_dir / sphere)
        assert rate == expected_rate
        np.testing.assert_array_equal(samples, expected)


@pytest.mark.parametrize(
    ("container", "endian"),
    [
        *((name, endian) for name in ("NIST", "WAV") for endian in ("LITTLE", "BIG")),
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
    ("whole", "size"), [(2**32 - 1, 2**32 - 1), (0x7FFFF024, 0x7FFFF000), (0, 0)]
)
def test_a_writer_that_could_not_seek(whole, size):
    """ffmpeg, SoX, Kaldi."""
    data = bytearray(written("WAV", "PCM_16"))
    data[4:8], data[40:44] = whole.to_bytes(4, "little"), size.to_bytes(4, "little")
    np.testing.assert_array_equal(decoded(bytes(data)), SAMPLES)


def test_channels_and_floating_point():
    two = np.stack([SAMPLES, -SAMPLES // 2], axis=1)
    np.testing.assert_array_equal(decoded(written("WAV", samples=two)), SAMPLES)
    # Scaled to 16 bits, and clipped.
    samples = np.array([0.5, -1.0, 1.0, 1.5] + 96 * [0.25])
    found = decoded(written("WAV", "FLOAT", samples=samples))
    assert found[:5].tolist() == [16384, -32768, 32767, 32767, 8192]
    # libsndfile lets what passes full scale in Ogg files wrap around.
    tone = np.clip(3 * np.sin(np.arange(16000) / 8), -1, 1)
    data = written("OGG", "VORBIS", samples=tone)
    floats, _ = soundfile.read(io.BytesIO(data), dtype="float32")
    assert np.abs(floats).max() > 1
    np.testing.assert_allclose(decoded(data) / 32768, np.clip(floats, -1, 1), atol=1e-4)


def sphere(old=b"", new=b"", end=None):
    """A SPHERE file of `SAMPLES`, with a change to its header."""
    data = written("NIST")
    assert old in data[:1024]
    return data[:1024].replace(old, new, 1).ljust(1024)[:1024] + data[1024:end]


UNKNOWN_LENGTH = bytearray(written("FLAC"))
UNKNOWN_LENGTH[21:26] = bytes([UNKNOWN_LENGTH[21] & 0xF0, 0, 0, 0, 0])
SHORTEN = b"sample_coding -s26 pcm,embedded-shorten-v2.00\nend_head"
REFUSED = [
    (b"", "The file is empty"),
    (b"a letter, and no speech", "cannot be read as audio"),
    (bytes(UNKNOWN_LENGTH), r"states \d+ samples"),
    (written("WAV", "FLOAT", samples=np.full(9, 2.0)), "-1 and 1.* 9 of 9 samples"),
    (written("WAV", "FLOAT", samples=np.array([0.5, np.nan])), "finite.* 1 of 2"),
    (written("NIST", samples=np.zeros(0)), "contains no samples"),
    (written("NIST", samples=np.zeros((9, 2))), "one channel, not 2"),
    (sphere(end=-1), "states 1000 samples, but it holds 999"),
    (sphere() + b"more", "states 1000 samples, but it holds 1002"),
    (sphere(b"sample_count -i 1000\n"), "the number of samples once"),
    (sphere(b"end_head", SHORTEN), "compressed, with the coding shorten: .*sph2pipe"),
]


@pytest.mark.parametrize(("data", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(data, message):
    with pytest.raises(ValueError, match=f"{message}.*Received: SA1.WAV$"):
        decode_audio(data, name="SA1.WAV", mono=True)


@pytest.mark.parametrize("name", ["dr2-faem0_sx42", "dr2-marc0_sx108"])
def test_resampling_gives_the_published_clean_files(data_dir, name):
    folder, sentence = name.split("_")
    original = data_dir / "timit_nltk_sample" / folder / f"{sentence}.wav"
    clean = data_dir / "speech_quality" / "timit_8k" / f"{name}_clean.wav"
    found = resample_to_int16(*read_audio(original))
    np.testing.assert_array_equal(found, read_audio(clean)[0])


def test_resampling_clips_what_overshoots():
    square = np.repeat(np.array([32767, -32768] * 20, np.int16), 40)
    found = resample_to_int16(square, 16000)
    # 5 samples from an edge the signs are those of the square wave.
    signs = np.sign(found.reshape(40, 20)[:, 5:15])
    np.testing.assert_array_equal(signs, [10 * [1], 10 * [-1]] * 20)
    assert {found.max(), found.min()} == {32767, -32768}


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
