"""The demonstration corpus: texts, phones, voices, sound, files."""

import hashlib
import json
import re
from itertools import pairwise

import numpy as np
import pytest

from keras_ortho.data_prep import demo_corpus
from keras_ortho.data_prep.corpus import discover
from keras_ortho.data_prep.demo_corpus import LABEL, synthesizer, write_corpus
from keras_ortho.data_prep.demo_corpus.__main__ import main
from keras_ortho.data_prep.demo_corpus.prosody import draw_speaker
from keras_ortho.data_prep.demo_corpus.synthesizer import RATE, record
from keras_ortho.data_prep.demo_corpus.text import (
    LEXICON,
    PHONES,
    SA,
    SI_PARTS,
    SX,
    Sound,
    transcribe,
)

signal = pytest.importorskip("scipy.signal")
soundfile = pytest.importorskip("soundfile")
pytest.importorskip("tqdm")

TEXTS = [*SA, *SX, *(part for parts in SI_PARTS for part in parts)]


# --- Texts, phones and speakers -----------------------------------------------------


def test_the_tables_fit_together():
    for text in TEXTS:
        labels = [sound.phone for sound in transcribe(text)]
        assert set(labels) <= set(PHONES)
        assert labels[0] == labels[-1] == "h#"
    for label in PHONES:
        for woman in (False, True):
            targets = synthesizer.target_formants(label, woman)
            # Klatt keeps 200 Hz between formants.
            assert (np.diff(targets, axis=1) >= 200).all()
            assert 150 < targets.min() < targets.max() < 5000
    words = re.findall("[a-z]+", " ".join(TEXTS).lower())
    assert {*words, ","} == set(LEXICON)
    assert all(entry.count("1") <= 1 for entry in LEXICON.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A closure before a stop, but not after silence.
        ("Put.", "h# p uh tcl t h#"),
        # The first of two stops is not released.
        ("Good book.", "h# g uh dcl bcl b uh kcl k h#"),
        # One stop, and one fricative, where two meet.
        ("Lost tools.", "h# l ao s tcl t ux l z h#"),
        ("House sing.", "h# hh aw s ih ng h#"),
        # An affricate has a closure too.
        ("The cheese.", "h# dh ax tcl ch iy z h#"),
        # "The" before a vowel; a voiced h between vowels.
        ("The apples.", "h# dh iy ae pcl p ax l z h#"),
        ("Behind.", "h# b ix hv ay n dcl d h#"),
        # A comma is a pause.
        ("Bread, cheese.", "h# b r eh dcl d pau ch iy z h#"),
    ],
)
def test_rules_of_connected_speech(text, expected):
    assert " ".join(sound.phone for sound in transcribe(text)) == expected


# --- Recordings ---------------------------------------------------------------------


@pytest.fixture(scope="module", params=[0, 1], ids=["woman", "man"])
def reading(request):
    speaker = draw_speaker(request.param, 0)
    return speaker, [
        (text, *record(text, speaker, np.random.default_rng(i)))
        for i, text in enumerate((*SA, *SX[:4]))
    ]


def segments(reading, test, margin):
    """Samples of all phones that pass a test, on a scale of 1, without margins."""
    for _, samples, phones in reading[1]:
        for begin, end, label in phones:
            if test(label):
                cut = round(margin * (end - begin))
                yield samples[begin + cut : end - cut] / 2**15


def manner(name):
    return lambda label: PHONES[label]["manner"] == name


def test_phones_tile_the_samples_and_levels_are_those_of_speech(reading):
    for text, samples, phones in reading[1]:
        assert phones[0][0] == 0
        assert phones[-1][1] == len(samples)
        assert all(a[0] < a[1] == b[0] for a, b in pairwise(phones))
        assert [label for *_, label in phones] == [s.phone for s in transcribe(text)]
        assert samples.dtype == np.int16
        assert 0.3 < np.abs(samples.astype(int)).max() / 2**15 < 0.7
        assert 1.5 < len(samples) / RATE < 4.5
    for part in segments(reading, manner("silence"), 0.25):
        # 700 or more samples: the estimate varies by 0.25 dB.
        assert 20 * np.log10(part.std()) == pytest.approx(-60, abs=1.5)


def test_vowels_are_loud_closures_quiet_sibilants_high(reading):
    def level(name):
        parts = np.concatenate(list(segments(reading, manner(name), 0.25)))
        return 10 * np.log10(np.mean(parts**2))

    vowels = level("vowel")
    assert vowels > -30
    assert level("voiceless closure") < vowels - 30
    assert vowels - 40 < level("voiced closure") < vowels - 15
    assert vowels - 25 < level("voiceless fricative") < vowels - 5
    parts = np.concatenate(list(segments(reading, "s".__eq__, 0.25)))
    frequencies, power = signal.welch(parts, RATE, nperseg=512)
    assert power[frequencies > 2500].sum() > 0.85 * power.sum()
    everything = np.concatenate([samples for _, samples, _ in reading[1]])
    frequencies, power = signal.welch(everything / 2**15, RATE, nperseg=512)
    octaves = [
        10 * np.log10(power[(frequencies >= low) & (frequencies < 2 * low)].mean())
        for low in (500, 1000, 2000)
    ]
    assert -14 < np.polyfit(range(3), octaves, 1)[0] < -4


def test_vowels_are_voiced_at_the_speakers_f0_without_clicks(reading):
    measured = []
    for part in segments(reading, manner("vowel"), 0.2):
        # Pulses through formants stand out by 3 to 8 in natural vowels.
        assert np.abs(part).max() < 7 * part.std()
        if len(part) > 0.06 * RATE:
            correlation = signal.correlate(part, part)[len(part) - 1 :]
            low, high = RATE // 400, RATE // 60
            lag = low + correlation[low:high].argmax()
            assert correlation[lag] > 0.25 * correlation[0]
            measured.append(RATE / lag)
    assert len(measured) > 20
    assert np.median(measured) == pytest.approx(reading[0].f0, rel=0.2)


def test_a_vowel_has_its_formants():
    """Peaks of linear prediction in the middle of a long, steady vowel."""
    librosa = pytest.importorskip("librosa")
    speaker = draw_speaker(1, 0)
    bounds = np.array([0.0, 0.1, 1.1, 1.2])
    for label in ("iy", "eh", "ae", "aa", "ao", "er"):
        sounds = [Sound("h#"), Sound(label, True), Sound("h#")]
        rng = np.random.default_rng(0)
        samples = synthesizer.synthesize(sounds, bounds, speaker, False, rng)
        part = samples[5000:13000] * np.hanning(8000)
        roots = np.roots(librosa.lpc(signal.lfilter([1, -0.97], [1], part), order=18))
        roots = roots[roots.imag > 0]
        frequency = np.angle(roots) * RATE / (2 * np.pi)
        narrow = -np.log(np.abs(roots)) * RATE / np.pi < 500
        measured = np.sort(frequency[narrow & (frequency > 150)])[:3]
        expected = synthesizer.target_formants(label, woman=False)[0, :3]
        np.testing.assert_allclose(measured, expected * speaker.build, rtol=0.1)


# --- Files --------------------------------------------------------------------------


def digests(root):
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    root = tmp_path_factory.mktemp("corpus") / "demo"
    assert write_corpus(root, speakers=4, sentences=4, seed=5)
    return root


def test_the_files_are_laid_out_like_timits(corpus):
    folders = [path.relative_to(corpus).as_posix() for path in corpus.glob("*/*/*")]
    names = ("DR1/FAAA0", "DR1/MAAB0", "DR2/FAAC0", "DR2/MAAD0")
    assert sorted(folders) == [f"TRAIN/{name}" for name in names]
    assert len(digests(corpus)) == 4 * 4 * 3 + 1
    for path in corpus.rglob("*.WAV"):
        data = path.read_bytes()
        assert data.startswith(b"NIST_1A\n   1024\n")
        assert b"\nsample_rate -i 16000\n" in data[:1024]
        assert b"\nsample_byte_format -s2 01\n" in data[:1024]
        samples = np.frombuffer(data[1024:], "<i2")
        np.testing.assert_array_equal(soundfile.read(path, dtype="int16")[0], samples)
        text = path.with_suffix(".TXT").read_text()
        assert re.fullmatch(rf"0 {len(samples)} [A-Z].*[.?]\n", text)
        lines = path.with_suffix(".PHN").read_text().splitlines()
        assert lines[0].startswith("0 ")
        assert re.fullmatch(rf"\d+ {len(samples)} h#", lines[-1])
    found = discover(corpus)
    assert len(found.utterances) == 16
    assert not found.passed_over
    label = json.loads((corpus / LABEL).read_text())
    assert (label["speakers"], label["sentences"], label["seed"]) == (4, 4, 5)


def test_the_arguments_say_what_is_written(corpus, tmp_path):
    write_corpus(tmp_path / "part", speakers=2, sentences=3, seed=5)
    part = digests(tmp_path / "part")
    del part[LABEL]
    assert len(part) == 2 * 3 * 3
    assert part.items() <= digests(corpus).items()
    write_corpus(tmp_path / "other", speakers=1, sentences=1, seed=6)
    name = "TRAIN/DR1/FAAA0/SA1.WAV"
    assert digests(tmp_path / "other")[name] != digests(corpus)[name]


def test_a_folder_of_something_else_is_left_alone(corpus, tmp_path):
    before = digests(corpus)
    assert not write_corpus(corpus, speakers=4, sentences=4, seed=5)
    with pytest.raises(FileExistsError, match=f"Received: {corpus}, .*4, .seed.: 5"):
        write_corpus(corpus, speakers=4, sentences=4, seed=6)
    assert digests(corpus) == before
    (tmp_path / "notes.txt").write_text("mine")
    for out in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(FileExistsError, match=f"Received: {out}"):
            write_corpus(out)
    assert digests(tmp_path).keys() == {"notes.txt"}


def test_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    made = []

    def fail_at_third(*arguments):
        made.append(arguments)
        if len(made) == 3:
            raise OSError("No space left on device")
        return record(*arguments)

    monkeypatch.setattr(demo_corpus, "record", fail_at_third)
    with pytest.raises(OSError, match="No space left"):
        write_corpus(tmp_path / "demo", speakers=1, sentences=4)
    assert len(made) == 3
    assert not list(tmp_path.iterdir())


def test_the_command_writes_once_and_says_so(tmp_path, capsys):
    out = tmp_path / "new" / "demo"
    arguments = [str(out), "--speakers", "2", "--sentences", "1"]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"Wrote 2 sentences in {out}")
    assert "2/2" in captured.err
    assert len(list(out.rglob("*.WAV"))) == 2
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("Kept 2 sentences")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--speakers 0", "`speakers` must be a positive integer. Received: speakers=0"),
        ("--speakers 261", "`speakers` must be at most 260. Received: 261"),
        ("--sentences 99", "`sentences` must be at most 34. Received: 99"),
        ("--seed -3", "`seed` must be an integer of at least 0. Received: seed=-3"),
    ],
)
def test_numbers_out_of_range_are_errors(tmp_path, capsys, arguments, message):
    assert main([str(tmp_path / "demo"), *arguments.split()]) == 1
    assert capsys.readouterr().err == f"error: {message}\n"
    assert not list(tmp_path.iterdir())
