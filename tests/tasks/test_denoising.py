"""Mixtures: who is heard in them, at which ratio, and that a seed says all."""

import numpy as np

from keras_ortho.audio import write_wav
from keras_ortho.tasks.denoising import padded_batches, training_passes
from keras_ortho.tasks.mixtures import TRAINED, UNHEARD, mixtures, read_recordings
from keras_ortho.tasks.timit import Record

PITCHES = {"a": 220, "b": 330, "c": 440}  # Hz


def record(speaker, sound, number=0):
    return Record(f"{speaker}_{number}", speaker, None, sound.astype("int16"))


def tone(pitch, size):
    return 3000 * np.sin(2 * np.pi * pitch * np.arange(size) / 8000)


# Utterances that can be told apart: a tone for each speaker.
RECORDS = [
    record(speaker, tone(pitch, size), number)
    for speaker, pitch in PITCHES.items()
    for number, size in enumerate((12000, 9000))
]


def power_at(signal, pitch):
    """Share of a signal's power within 20 Hz of a pitch."""
    spectrum = np.abs(np.fft.rfft(signal * np.hanning(len(signal)))) ** 2
    frequencies = np.fft.rfftfreq(len(signal), 1 / 8000)
    return spectrum[np.abs(frequencies - pitch) < 20].sum() / spectrum.sum()


def decibels(sound):
    return 10 * np.log10(np.mean(np.square(sound, dtype="f8"), axis=-1))


def test_each_utterance_in_each_noise_at_each_ratio():
    kinds, snrs = (*TRAINED, *UNHEARD), (-5.0, 10.0)
    found = list(mixtures(RECORDS, kinds, snrs))
    assert len({(m.utterance, m.noise, m.snr) for m in found}) == 6 * 8 * 2
    for m in found:
        assert m.noisy.dtype == m.clean.dtype == "float32"
        # Two roundings to float32 of values below 1, beside a noise of 1e-2.
        ratio = decibels(m.clean) - decibels(m.noisy.astype("f8") - m.clean)
        np.testing.assert_allclose(ratio, m.snr, atol=1e-3)
        np.testing.assert_allclose(decibels(m.clean), -26, atol=1e-4)
        assert power_at(m.clean, PITCHES[m.utterance[0]]) > 0.99
    # The noise does not depend on what else is mixed, but on the seed.
    every = {(m.utterance, m.noise): m.noisy for m in found[::2]}
    for m in mixtures(RECORDS[::-1], ["clicks"], snrs[:1]):
        np.testing.assert_array_equal(m.noisy, every[m.utterance, "clicks"])
    for m in mixtures(RECORDS, ["hum"], snrs[:1], seed=1):
        assert (m.noisy != every[m.utterance, "hum"]).any()


def test_who_is_heard_in_the_noise():
    for mixture in mixtures(RECORDS, ["babble"], [0.0]):
        noise = mixture.noisy - mixture.clean
        shares = {s: power_at(noise, pitch) for s, pitch in PITCHES.items()}
        assert shares.pop(mixture.utterance[0]) < 0.01
        assert sum(shares.values()) > 0.99
    for mixture in mixtures(
        RECORDS, ["recorded"], [0.0], recordings=[tone(1000, 4000)]
    ):
        assert power_at(mixture.noisy - mixture.clean, 1000) > 0.99


def test_training_passes():
    passes = training_passes(RECORDS, batch_size=3, batches=4, seconds=0.5, seed=7)
    first, again, second = (
        np.array(list(passes(number).as_numpy_iterator())) for number in (0, 0, 1)
    )
    assert first.shape == (4, 2, 3, 4000)  # Batches of noisy and clean mixtures.
    assert first.dtype == "float32"
    np.testing.assert_array_equal(first, again)
    assert (first != second).any(axis=(1, 2, 3)).all()
    assert (first[0] != first[1]).any()
    noisy, clean = first.swapaxes(0, 1).reshape(2, 12, 4000).astype("f8")
    levels = decibels(clean)
    snrs = levels - decibels(noisy - clean)
    assert -5.01 < snrs.min() < 2 < 8 < snrs.max() < 15.01
    assert -36.01 < levels.min() < -28 < -24 < levels.max() < -15.99
    # Each is of one speaker.
    shares = [[power_at(x, pitch) for pitch in PITCHES.values()] for x in clean]
    assert (np.max(shares, axis=1) > 0.95).all()


def test_pauses_are_not_trained_on():
    hiss = np.random.default_rng(0).integers(-3, 3, 60_000)
    hiss[30_000:34_000] += tone(220, 4000).astype(int)
    long = [record(speaker, hiss) for speaker in "ab"]
    options = {"batch_size": 16, "batches": 1, "seconds": 0.5, "snrs": (90.0, 90.0)}
    ((_, clean),) = training_passes(long, ["white"], **options)(0).as_numpy_iterator()
    assert min(len(np.unique(x)) for x in clean) > 6  # Of hiss alone they are six.


def test_padded_batches():
    found = {m.utterance: m for m in mixtures(RECORDS, ["white"], [0.0])}
    batches = list(padded_batches(list(found.values()), 4).as_numpy_iterator())
    assert [x.shape for x, _, _ in batches] == [(4, 12000), (2, 12000)]
    rows = [row for batch in batches for row in zip(*batch, strict=True)]
    order = [f"{speaker}_{number}" for number in (1, 0) for speaker in "abc"]
    for name, (x, y, weight) in zip(order, rows, strict=True):
        mixture = found[name]
        missing = (0, 12000 - len(mixture.noisy))
        np.testing.assert_array_equal(x, np.pad(mixture.noisy, missing))
        np.testing.assert_array_equal(y, np.pad(mixture.clean, missing))
        np.testing.assert_array_equal(weight, np.arange(12000) < len(mixture.noisy))


def test_recordings_are_held_out_by_file(tmp_path):
    (tmp_path / "deeper").mkdir()
    for number in range(12):
        sound = np.sin(np.arange(2000) * (number + 1) / 20)
        name = f"deeper/{number:02}.wav" if number % 2 else f"{number:02}.wav"
        write_wav(tmp_path / name, 0.5 * sound, 16000)
    (tmp_path / "._00.wav").write_bytes(b"of macOS")
    train, test = read_recordings(tmp_path)
    assert (len(train), len(test)) == (9, 3)
    assert all(len(x) == 1000 for x in (*train, *test))
    assert len({x.tobytes() for x in (*train, *test)}) == 12
