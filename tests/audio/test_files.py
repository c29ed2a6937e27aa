import io
import struct
import tracemalloc

import numpy as np
import pytest
import scipy.signal
import soundfile

from keras_ortho.audio.files import decode_audio, read_audio, resample_to_int16

SAMPLES = np.random.default_rng(0).integers(-32768, 32768, 1000).astype(np.int16)


@pytest.fixture
def sphere(tmp_path):
    path = tmp_path / "SA1.WAV"
    soundfile.write(path, SAMPLES, 16000, format="NIST", subtype="PCM_16")
    return path


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


def test_another_writers_sphere_file(data_dir):
    samples, rate = read_audio(data_dir / "sphere_other" / "test.sph")
    expected, expected_rate = soundfile.read(
        data_dir / "sphere_other" / "test.wav", dtype="int16"
    )
    assert rate == expected_rate == 48000
    np.testing.assert_array_equal(samples, expected)


def test_first_channel_unless_mono_is_asked_for(tmp_path):
    path = tmp_path / "stereo.wav"
    soundfile.write(path, np.stack([SAMPLES, -SAMPLES // 2], axis=1), 16000)
    np.testing.assert_array_equal(read_audio(path)[0], SAMPLES)
    with pytest.raises(ValueError, match=f"must have one channel, not 2.*{path}"):
        read_audio(path, mono=True)


def test_floating_point_is_scaled_and_clipped(tmp_path):
    path = tmp_path / "float.wav"
    samples = np.array([0.5, -1.0, 1.0, 1.5] + 96 * [0.25])
    soundfile.write(path, samples, 8000, "FLOAT")
    assert read_audio(path)[0][:5].tolist() == [16384, -32768, 32767, 32767, 8192]
    soundfile.write(path, 20_000 * samples, 8000, "FLOAT")
    with pytest.raises(ValueError, match="between -1 and 1.* 100 of 100 samples"):
        read_audio(path)
    soundfile.write(path, np.array([0.5, np.nan]), 8000, "FLOAT")
    with pytest.raises(ValueError, match="NaN or infinite"):
        read_audio(path)


@pytest.mark.parametrize("length", [3, 500, 1023])
def test_sphere_header_cut_short(sphere, length):
    data = sphere.read_bytes()[:length]
    match = "truncated|cannot be read as audio"
    with pytest.raises(ValueError, match=match) as error:
        decode_audio(data, name="SA1.WAV")
    assert "Received: SA1.WAV" in str(error.value)


@pytest.mark.parametrize("missing", [1, 2, 999, 2000])
def test_sphere_data_cut_short(sphere, missing):
    sphere.write_bytes(sphere.read_bytes()[:-missing])
    left = 1000 - -(-missing // 2)
    with pytest.raises(ValueError, match=f"states 1000 samples, but it holds {left}"):
        read_audio(sphere)


def test_sphere_data_beyond_the_header(sphere):
    sphere.write_bytes(sphere.read_bytes() + b"more")
    with pytest.raises(ValueError, match="states 1000 samples, but it holds 1002"):
        read_audio(sphere)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"channel_count -i 1", b"channel_count -i 0"),
        (b"channel_count -i 1", b"channel_count -i 2"),
        (b"sample_rate -i 16000", b"sample_rate -i 00000"),
        (b"sample_n_bytes -i 2", b"sample_n_bytes -i 9"),
    ],
)
def test_sphere_header_that_cannot_be_right(sphere, old, new):
    data = sphere.read_bytes()
    assert old in data
    with pytest.raises(ValueError, match=r"Received: SA1\.WAV"):
        decode_audio(data.replace(old, new), name="SA1.WAV")


@pytest.mark.parametrize(
    "count",
    [
        "-i abc",
        "-i -5",
        "-s4 1000",
        "-i 1000.5",
        "-i",
        "-r 1000",
        "-i 1000\nsample_count -i 9",
    ],
)
@pytest.mark.parametrize("part", [1.0, 0.5])
def test_sphere_must_say_how_many_samples(sphere, count, part):
    data = sphere.read_bytes()
    line = b"sample_count -i 1000\n"
    assert line in data[:1024]
    for new in (b"sample_count " + count.encode() + b"\n", b""):
        header = data[:1024].replace(line, new).ljust(1024)[:1024]
        end = 1024 + int(part * (len(data) - 1024))
        with pytest.raises(ValueError, match=r"the number of samples once.*SA1\.WAV"):
            decode_audio(header + data[1024:end], name="SA1.WAV")


def test_sphere_fields_may_be_spaced_otherwise(sphere):
    data = sphere.read_bytes()
    line = b"sample_count -i 1000\n"
    header = data[:1024].replace(line, b"sample_count   -i  1000 \n")[:1024]
    np.testing.assert_array_equal(
        decode_audio(header + data[1024:], name="x")[0], SAMPLES
    )


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


def test_a_header_that_promises_nothing(tmp_path):
    """As of FLAC that was written to a pipe."""
    path = tmp_path / "speech.flac"
    soundfile.write(path, SAMPLES, 16000)
    data = bytearray(path.read_bytes())
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    with pytest.raises(ValueError, match="does not state the number .*Received: x"):
        decode_audio(bytes(data), name="x")


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


@pytest.mark.parametrize(
    ("length", "data_size", "message"),
    [
        (2036, 0, "contains no samples"),
        (0x7FFF0024, 0x7FFF0000, "'data' chunk should have 2147418112 bytes"),
        (0, 3000, "'data' chunk should have 3000 bytes, but has 2000"),
    ],
)
def test_sizes_that_are_meant(length, data_size, message):
    with pytest.raises(ValueError, match=message):
        decode_audio(riff(length, data_size), name="x")


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


@pytest.mark.parametrize(
    "coding", ["pcm,embedded-shorten-v2.00", "pcm,embedded-wavpack-v1.0", "shortpack"]
)
def test_compressed_sphere_names_its_coding(sphere, coding):
    line = f"sample_coding -s{len(coding)} {coding}\n".encode()
    header = sphere.read_bytes()[:1024].replace(b"end_head", line + b"end_head")
    message = f"compressed, with the coding {coding}: .*sph2pipe.*w_decode.*: x"
    with pytest.raises(ValueError, match=message):
        decode_audio(header[:1024] + bytes(500), name="x")


def written(container, subtype=None, endian=None):
    file = io.BytesIO()
    # Integers would be written as they are, 32 768 times full scale.
    is_float = subtype in ("FLOAT", "DOUBLE")
    samples = SAMPLES / 32768 if is_float else SAMPLES
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


@pytest.mark.parametrize("samples", [np.zeros(0), np.zeros((0, 2))])
@pytest.mark.parametrize("container", ["NIST", "WAV"])
def test_no_samples(tmp_path, samples, container):
    path = tmp_path / "empty.wav"
    soundfile.write(path, samples, 16000, format=container)
    with pytest.raises(ValueError, match="contains no samples"):
        read_audio(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "The file is empty"),
        (b"a letter, and no speech", "The file cannot be read as audio"),
        (b"RIFF", "The file cannot be read as audio"),
        (b"NIST_1A\n   1024\n" + b" " * 1100, "The file cannot be read as audio"),
        (bytes(5000), "The file cannot be read as audio"),
    ],
)
def test_no_audio(tmp_path, data, message):
    path = tmp_path / "SX1.WAV"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"{message}.*Received: {path}"):
        read_audio(path)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"SX1\.WAV"):
        read_audio(tmp_path / "SX1.WAV")


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


@pytest.mark.parametrize(
    ("rate", "samples", "expected"),
    [(16000, 999, 500), (8000, 7, 7), (44100, 441, 80), (4000, 10, 20), (48000, 7, 2)],
)
def test_length_after_resampling(rate, samples, expected):
    resampled = resample_to_int16(SAMPLES[:samples], rate)
    assert resampled.dtype == np.int16
    assert len(resampled) == expected


def test_resampling_keeps_a_tone_and_removes_what_would_alias():
    time = np.arange(16000) / 16000
    low = np.rint(10000 * np.sin(2 * np.pi * 1000 * time)).astype(np.int16)
    high = np.rint(10000 * np.sin(2 * np.pi * 7000 * time)).astype(np.int16)
    middle = slice(1000, 7000)
    expected = 10000 * np.sin(2 * np.pi * 1000 * np.arange(8000) / 8000)
    # The Kaiser window's ripple in the pass band and its stop band: 0.5 %.
    np.testing.assert_allclose(
        resample_to_int16(low, 16000)[middle], expected[middle], atol=50
    )
    assert np.abs(resample_to_int16(high, 16000)[middle]).max() < 50


def test_resampling_clips_what_overshoots():
    square = np.repeat(np.array([32767, -32768] * 20, np.int16), 40)
    overshooting = scipy.signal.resample_poly(square.astype(float), 1, 2)
    assert overshooting.max() > 32767
    assert overshooting.min() < -32768
    expected = np.clip(np.rint(overshooting), -32768, 32767)
    np.testing.assert_array_equal(resample_to_int16(square, 16000), expected)


def test_resampling_to_the_same_rate_copies():
    resampled = resample_to_int16(SAMPLES, 8000)
    np.testing.assert_array_equal(resampled, SAMPLES)
    assert not np.shares_memory(resampled, SAMPLES)


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        (np.zeros(10), 16000, "must be int16"),
        (np.zeros((10, 2), np.int16), 16000, r"shape \(10, 2\)"),
        ([1, 2], 16000, "must be int16"),
        (np.zeros(10, np.int16), 0, "`rate` must be a positive .* Received: rate=0$"),
        (
            np.zeros(10, np.int16),
            2**31 - 1,
            "`rate` must be at most .* rate=2147483647$",
        ),
    ],
)
def test_resampling_rejects(samples, rate, message):
    with pytest.raises(ValueError, match=message):
        resample_to_int16(samples, rate)


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
