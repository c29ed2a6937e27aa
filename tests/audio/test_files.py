import io
import struct
import tracemalloc

import numpy as np
import pytest
import scipy.signal
import soundfile

from keras_ortho.audio.files import decode_audio, read_audio, resample_to_int16

SAMPLES = np.random.default_rng(0).integers(-32768, 32768, 1000).astype(np.int16)


@pytest.mark.parametrize(
    ("container", "endian"),
    [("NIST", "LITTLE"), ("NIST", "BIG"), ("WAV", None), ("FLAC", None)],
)
def test_16_bit_files_read_sample_for_sample(tmp_path, container, endian):
    path = tmp_path / "speech.wav"
    soundfile.write(path, SAMPLES, 16000, "PCM_16", endian, container)
    samples, rate = read_audio(path)
    assert rate == 16000
    assert samples.dtype == np.int16
    assert samples.flags.c_contiguous
    np.testing.assert_array_equal(samples, SAMPLES)


def test_channels_and_floating_point(tmp_path):
    path = tmp_path / "speech.wav"
    soundfile.write(path, np.stack([SAMPLES, -SAMPLES // 2], axis=1), 16000)
    np.testing.assert_array_equal(read_audio(path)[0], SAMPLES)
    # Scaled to 16 bits, and clipped.
    samples = np.array([0.5, -1.0, 1.0, 1.5] + 96 * [0.25])
    soundfile.write(path, samples, 8000, "FLOAT")
    assert read_audio(path)[0][:5].tolist() == [16384, -32768, 32767, 32767, 8192]


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


@pytest.mark.parametrize("container", ["FLAC", "MP3"])
def test_a_header_that_promises_too_much_costs_no_memory(tmp_path, container):
    path = tmp_path / "speech"
    soundfile.write(path, np.repeat(SAMPLES, 9), 16000, format=container)
    data = bytearray(path.read_bytes())
    if container == "FLAC":
        data[21] |= 0x0F  # all of the 36 bits of total_samples
        data[22:26] = b"\xff" * 4
    else:
        place = data.index(b"Xing" if b"Xing" in data else b"Info")
        data[place + 8 : place + 12] = b"\x7f\xff\xff\xff"  # number of frames
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"states \d{10,} samples.*Received: x"):
            decode_audio(bytes(data), name="x")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_compressed_file_of_silence_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_ortho.audio.files.DECODED", 2**17)
    path = tmp_path / "silence.flac"
    soundfile.write(path, np.zeros(2**16, np.int16), 16000, format="FLAC")
    assert path.stat().st_size < 2**14
    assert len(read_audio(path)[0]) == 2**16
    soundfile.write(path, np.zeros(2**16 + 1, np.int16), 16000, format="FLAC")
    with pytest.raises(ValueError, match="at most 65536 samples are read"):
        read_audio(path)


def riff(length, data_size, before=b"", channels=1):
    """A WAV file of `SAMPLES` with these sizes in its header, byte by byte."""
    form = struct.pack("<HHIIHH", 1, channels, 16000, 32000, 2 * channels, 16)
    chunks = b"fmt " + struct.pack("<I", 16) + form + before
    chunks += b"data" + struct.pack("<I", data_size) + SAMPLES.astype("<i2").tobytes()
    return b"RIFF" + struct.pack("<I", length) + b"WAVE" + chunks


@pytest.mark.parametrize(
    ("length", "data_size"),
    [
        (0xFFFFFFFF, 0xFFFFFFFF),
        (0x7FFFFFFF, 0x7FFFFFFF),
        (0x80000024, 0x80000000),  # arecord
        (0x7FFFF024, 0x7FFFF000),  # SoX
        (0x7FFFF020, 0x7FFFEFFC),  # SoX, in whole frames of several channels
        (0, 0),
    ],
)
def test_a_writer_that_could_not_seek(length, data_size):
    found, rate = decode_audio(riff(length, data_size), name="x")
    np.testing.assert_array_equal(found, SAMPLES)
    assert rate == 16000
    # Half a sample at the end is none.
    found, _ = decode_audio(riff(length, data_size)[:-1], name="x")
    np.testing.assert_array_equal(found, SAMPLES[:-1])


@pytest.mark.parametrize("text", [b"INFO1", b"INFOISFT\1\0\0\0a", b""])
@pytest.mark.parametrize("padding", [b"", b"\0", b"d"])
def test_chunks_of_odd_length(text, padding):
    chunk = b"LIST" + struct.pack("<I", len(text)) + text
    if text:
        chunk += padding
    found, _ = decode_audio(riff(2036 + len(chunk), 2000, chunk), name="x")
    np.testing.assert_array_equal(found, SAMPLES)
    behind = riff(2036, 2000) + chunk
    np.testing.assert_array_equal(decode_audio(behind, name="x")[0], SAMPLES)


def written(container, subtype=None, endian=None, samples=SAMPLES):
    file = io.BytesIO()
    # Integers would be written as they are, 32 768 times full scale.
    if subtype in ("FLOAT", "DOUBLE") and samples is SAMPLES:
        samples = SAMPLES / 32768
    soundfile.write(file, samples, 16000, subtype, endian, container)
    return file.getvalue()


# All that libsndfile writes in memory, but for MP3, and what has no header.
CONTAINERS = [
    (container, endian)
    for container in sorted(soundfile.available_formats())
    for endian in ("FILE", *(["BIG"] if container == "WAV" else []))
    if container not in ("HTK", "MP3", "RAW", "SD2")
]


@pytest.mark.parametrize(("container", "endian"), CONTAINERS)
def test_no_container_cut_short_is_read(container, endian):
    """Those of which that cannot be told are not read when they are whole, either."""
    for subtype in soundfile.available_subtypes(container):
        try:
            data = written(container, subtype, endian)
            soundfile.read(io.BytesIO(data))
        except (soundfile.LibsndfileError, TypeError):
            continue  # Not with this subtype, or not at 16 kHz.
        try:
            samples, _ = decode_audio(data, name="x")
        except ValueError as error:
            message = "cannot be recognized: convert it to WAV or FLAC. Received: x"
            assert message in str(error)  # noqa: PT017
            continue
        assert len(samples) >= len(SAMPLES)
        for missing in (1, 3, 40, len(data) // 2):
            with pytest.raises(ValueError, match="Received: x"):
                decode_audio(data[:-missing], name="x")


@pytest.mark.parametrize("container", ["AIFF", "AU", "CAF", "RF64", "WAV"])
def test_other_containers_are_read_with_what_is_behind(container):
    endian = "BIG" if container == "WAV" else None
    for behind in (b"", b"more"):
        data = written(container, "PCM_16", endian) + behind
        np.testing.assert_array_equal(decode_audio(data, name="x")[0], SAMPLES)


@pytest.mark.parametrize("name", ["dr2-faem0_sx42", "dr2-marc0_sx108"])
def test_resampling_gives_the_published_clean_files(data_dir, name):
    folder, sentence = name.split("_")
    samples, rate = read_audio(
        data_dir / "timit_nltk_sample" / folder / f"{sentence}.wav"
    )
    expected, _ = read_audio(
        data_dir / "speech_quality" / "timit_8k" / f"{name}_clean.wav"
    )
    np.testing.assert_array_equal(resample_to_int16(samples, rate), expected)


def test_resampling_clips_what_overshoots():
    square = np.repeat(np.array([32767, -32768] * 20, np.int16), 40)
    overshooting = scipy.signal.resample_poly(square.astype(float), 1, 2)
    assert overshooting.max() > 32767
    assert overshooting.min() < -32768
    expected = np.clip(np.rint(overshooting), -32768, 32767)
    np.testing.assert_array_equal(resample_to_int16(square, 16000), expected)


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_loud_compressed_audio_is_clipped(subtype):
    """libsndfile lets what passes full scale wrap around."""
    tone = np.clip(3 * np.sin(2 * np.pi * 300 * np.arange(16000) / 16000), -1, 1)
    file = io.BytesIO()
    soundfile.write(file, tone, 16000, format="OGG", subtype=subtype)
    floats, _ = soundfile.read(io.BytesIO(file.getvalue()), dtype="float32")
    assert np.abs(floats).max() > 1
    found, _ = decode_audio(file.getvalue(), name="x")
    # Rounded to 16 bits, of which the greatest is 32767.
    np.testing.assert_allclose(found / 32768, np.clip(floats, -1, 1), atol=1e-4)


def sphere(old=b"", new=b"", end=None):
    """A SPHERE file of `SAMPLES`, with a change to its header."""
    data = written("NIST")
    assert old in data[:1024]
    return data[:1024].replace(old, new, 1).ljust(1024)[:1024] + data[1024:end]


COUNT = b"sample_count -i 1000\n"
# A header of FLAC that was written to a pipe.
PIPED = bytearray(written("FLAC"))
PIPED[21] &= 0xF0
PIPED[22:26] = bytes(4)
REFUSED = [
    (b"", "The file is empty"),
    (b"a letter, and no speech", "cannot be read as audio"),
    (b"RIFF", "cannot be read as audio"),
    (bytes(5000), "cannot be read as audio"),
    (bytes(PIPED), "does not state the number"),
    (riff(2036, 0), "contains no samples"),
    (riff(0x7FFF0024, 0x7FFF0000), "'data' chunk should have 2147418112 bytes"),
    (riff(0, 3000), "'data' chunk should have 3000 bytes, but has 2000"),
    (written("WAV", "FLOAT", samples=np.full(9, 2.0)), "-1 and 1.* 9 of 9 samples"),
    (written("WAV", "FLOAT", samples=np.array([0.5, np.nan])), "NaN or infinite"),
    (written("NIST", samples=np.zeros(0)), "contains no samples"),
    *((sphere()[:n], "truncated|cannot be read as audio") for n in (3, 500, 1023)),
    (sphere(end=-1), "states 1000 samples, but it holds 999"),
    (sphere(end=-1999), "states 1000 samples, but it holds 0"),
    (sphere() + b"more", "states 1000 samples, but it holds 1002"),
    (sphere(b"channel_count -i 1", b"channel_count -i 0"), ""),
    (sphere(b"channel_count -i 1", b"channel_count -i 2"), ""),
    (sphere(b"sample_n_bytes -i 2", b"sample_n_bytes -i 9"), ""),
    *(
        (sphere(COUNT, new), "the number of samples once")
        for new in (
            b"",
            COUNT + COUNT,
            *(
                b"sample_count %s\n" % x
                for x in (
                    b"-i abc",
                    b"-i -5",
                    b"-s4 1000",
                    b"-i 1000.5",
                    b"-i",
                    b"-r 1000",
                )
            ),
        )
    ),
    *(
        (
            sphere(b"end_head", b"sample_coding -s1 " + coding + b"\nend_head"),
            f"compressed, with the coding {coding.decode()}: .*sph2pipe.*w_decode",
        )
        for coding in (b"pcm,embedded-shorten-v2.00", b"wavpack", b"shortpack")
    ),
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_what_is_refused(place):
    data, message = REFUSED[place]
    with pytest.raises(ValueError, match=f"{message}.*Received: SA1.WAV$"):
        decode_audio(data, name="SA1.WAV")


def test_sphere_fields_may_be_spaced_otherwise():
    data = sphere(COUNT, b"sample_count   -i  1000 \n")
    np.testing.assert_array_equal(decode_audio(data, name="x")[0], SAMPLES)
