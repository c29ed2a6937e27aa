"""Mixtures: who is heard in them, at which ratio, and that a seed says all."""

import numpy as np
import pytest

from keras_ortho.audio import write_wav
from keras_ortho.tasks.denoising import padded_batches, training_passes
from keras_ortho.tasks.mixtures import (
    LEVEL,
    RECORDED,
    TRAINED,
    UNHEARD,
    mixtures,
    read_recordings,
)
from keras_ortho.tasks.timit_records import Record

PITCHES = {"a": 220, "b": 330, "c": 440}  # Hz


def records(samples=(12000, 9000)):
    """Utterances that can be told apart: a tone for each speaker."""
    found = []
    for speaker, pitch in PITCHES.items():
        for number, size in enumerate(samples):
            tone = 3000 * np.sin(2 * np.pi * pitch * np.arange(size) / 8000 + number)
            name = f"{speaker}_{number}"
            found.append(
                Record(name, speaker, np.zeros((1, 129)), tone.astype("int16"))
            )
    return found


def power_at(signal, pitch):
    """Share of a signal's power within 20 Hz of a pitch."""
    spectrum = np.abs(np.fft.rfft(signal * np.hanning(len(signal)))) ** 2
    frequencies = np.fft.rfftfreq(len(signal), 1 / 8000)
    return spectrum[np.abs(frequencies - pitch) < 20].sum() / spectrum.sum()


def ratio(mixture):
    noise = mixture.noisy.astype("f8") - mixture.clean
    return 10 * np.log10(np.sum(mixture.clean.astype("f8") ** 2) / np.sum(noise**2))


def test_each_utterance_in_each_noise_at_each_ratio():
    kinds, snrs = (*TRAINED, *UNHEARD), (-5.0, 10.0)
    found = list(mixtures(records(), kinds, snrs))
    assert len(found) == 6 * 8 * 2
    assert len({(m.utterance, m.noise, m.snr) for m in found}) == len(found)
    for mixture in found:
        assert mixture.noisy.dtype == mixture.clean.dtype == "float32"
        # Two roundings to float32 of values below 1, beside a noise of 1e-2.
        assert ratio(mixture) == pytest.approx(mixture.snr, abs=1e-3)
        level = 10 * np.log10(np.mean(mixture.clean.astype("f8") ** 2))
        assert level == pytest.approx(LEVEL, abs=1e-4)
        pitch = PITCHES[mixture.utterance[0]]
        assert power_at(mixture.clean, pitch) > 0.99
    # The noise is the same at both ratios but for its size.
    for first, second in zip(found[::2], found[1::2], strict=True):
        a, b = (m.noisy.astype("f8") - m.clean for m in (first, second))
        assert np.corrcoef(a, b)[0, 1] > 0.9999


def test_a_seed_says_all_whatever_else_is_mixed():
    every = {
        (m.utterance, m.noise): m.noisy for m in mixtures(records(), TRAINED, [0.0])
    }
    for mixture in mixtures(records()[::-1], ["hum", "clicks"], [0.0]):
        key = mixture.utterance, mixture.noise
        np.testing.assert_array_equal(mixture.noisy, every[key])
    for mixture in mixtures(records(), ["hum"], [0.0], seed=1):
        assert (mixture.noisy != every[mixture.utterance, "hum"]).any()


def test_babble_is_of_others():
    for mixture in mixtures(records(), ["babble"], [0.0]):
        noise = mixture.noisy - mixture.clean
        shares = {s: power_at(noise, pitch) for s, pitch in PITCHES.items()}
        assert shares.pop(mixture.utterance[0]) < 0.01
        assert sum(shares.values()) > 0.99


def test_recordings_are_a_kind():
    recorded = np.sin(2 * np.pi * 1000 * np.arange(4000) / 8000)
    found = mixtures(records(), [RECORDED], [0.0], recordings=[recorded])
    for mixture in found:
        assert power_at(mixture.noisy - mixture.clean, 1000) > 0.99


def test_training_passes():
    tf = pytest.importorskip("tensorflow")
    passes = training_passes(records(), batch_size=3, batches=4, seconds=0.5, seed=7)

    def one(number):
        return [
            (x.numpy(), y.numpy()) for x, y in passes(tf.constant(number, tf.int64))
        ]

    first, again, second = one(0), one(0), one(1)
    assert int(passes(tf.constant(0, tf.int64)).cardinality()) == 4
    assert len(first) == 4
    for (noisy, clean), (x, y), (other, _) in zip(first, again, second, strict=True):
        assert noisy.shape == clean.shape == (3, 4000)
        assert noisy.dtype == clean.dtype == "float32"
        np.testing.assert_array_equal(noisy, x)
        np.testing.assert_array_equal(clean, y)
        assert (noisy != other).any()
    assert (first[0][0] != first[1][0]).any()
    # The ends of the ranges are not met by a dozen, but nothing is beyond them.
    noisy, clean = (np.concatenate(x).astype("f8") for x in zip(*first, strict=True))
    snrs = 10 * np.log10(np.sum(clean**2, 1) / np.sum((noisy - clean) ** 2, 1))
    assert -5.01 < snrs.min() < 2 < 8 < snrs.max() < 15.01
    levels = 10 * np.log10(np.mean(clean**2, 1))
    assert -36.01 < levels.min() < -28 < -24 < levels.max() < -15.99
    # Each is of one speaker.
    shares = [[power_at(x, pitch) for pitch in PITCHES.values()] for x in clean]
    assert (np.max(shares, axis=1) > 0.95).all()
    seeded = training_passes(records(), batch_size=3, batches=4, seconds=0.5, seed=8)
    x, _ = next(iter(seeded(tf.constant(0, tf.int64))))
    assert (x.numpy() != first[0][0]).any()


def test_pauses_are_not_trained_on():
    tf = pytest.importorskip("tensorflow")
    long = []
    for record in records((4000,)):
        hiss = np.random.default_rng(0).integers(-3, 3, 60_000).astype("int16")
        hiss[30_000:34_000] += record.audio
        long.append(record._replace(audio=hiss))
    passes = training_passes(
        long, ["white"], batch_size=8, batches=4, seconds=0.5, snrs=(90.0, 90.0)
    )
    for _, clean in passes(tf.constant(0, tf.int64)):
        shares = [
            max(power_at(x, pitch) for pitch in PITCHES.values()) for x in clean.numpy()
        ]
        # Of hiss it would be about a hundredth; a tone of a tenth of the piece is wide.
        assert min(shares) > 0.1


def test_padded_batches():
    pytest.importorskip("tensorflow")
    found = list(mixtures(records(), ["white"], [0.0]))
    batches = list(padded_batches(found, 4).as_numpy_iterator())
    assert [x.shape for x, _, _ in batches] == [(4, 12000), (2, 12000)]
    sizes = np.concatenate([weight.sum(axis=1) for _, _, weight in batches])
    np.testing.assert_array_equal(sizes, [9000] * 3 + [12000] * 3)
    noisy = {m.utterance: m.noisy for m in found}
    seen = 0
    for x, y, weight in batches:
        assert not x[weight == 0].any()
        assert not y[weight == 0].any()
        for row, size in zip(x, weight.sum(axis=1).astype(int), strict=True):
            seen += any(np.array_equal(row[:size], value) for value in noisy.values())
    assert seen == 6


def write_noises(folder, count):
    (folder / "deeper").mkdir(parents=True)
    for number in range(count):
        where = folder / "deeper" if number % 2 else folder
        tone = np.sin(np.arange(2000) * (number + 1) / 20)
        write_wav(where / f"{number:02}.wav", 0.5 * tone, 16000)


def test_recordings_are_held_out_by_file(tmp_path):
    write_noises(tmp_path / "noises", 12)
    (tmp_path / "noises" / "._00.wav").write_bytes(b"of macOS")
    (tmp_path / "noises" / "folder.wav").mkdir()
    train, test = read_recordings(tmp_path / "noises")
    assert (len(train), len(test)) == (9, 3)
    assert all(x.dtype == np.int16 and len(x) == 1000 for x in (*train, *test))
    distinct = {x.tobytes() for x in (*train, *test)}
    assert len(distinct) == 12
    again = read_recordings(tmp_path / "noises")
    np.testing.assert_array_equal(again[1], test)


def test_what_begins_too_late_to_reverberate_is_not_trained_on():
    """Of a click of 10 ms in digital silence, half a second of it."""
    pytest.importorskip("tensorflow")
    click = np.zeros(9000)
    click[7000:7080] = 20_000
    spoken = [
        Record(f"{s}_0", s, np.zeros((1, 129)), click.astype("int16")) for s in "ab"
    ]
    passes = training_passes(
        spoken, ["reverberation"], batch_size=40, batches=1, seconds=0.5, seed=1
    )
    ((noisy, clean),) = passes(0).as_numpy_iterator()
    begins = np.argmax(clean != 0, axis=1)
    assert begins.max() < 4000 - 400
    late = np.argmax(np.abs(noisy - clean) > 1e-6, axis=1) - begins
    # 50 ms, and at most a sample or two of the noise are too small to be seen.
    assert late.min() >= 400
    assert late.max() < 420
