"""The files."""

import hashlib
import json
from itertools import pairwise

import numpy as np
import pytest

from keras_ortho.data_prep.corpus import discover
from keras_ortho.data_prep.demo_corpus import tree
from keras_ortho.data_prep.demo_corpus.tree import LABEL, write_corpus

soundfile = pytest.importorskip("soundfile")
pytest.importorskip("scipy.signal")
pytest.importorskip("tqdm")


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


def test_layout_is_timits(corpus):
    folders = [path.relative_to(corpus).as_posix() for path in corpus.glob("*/*/*")]
    assert sorted(folders) == [
        "TRAIN/DR1/FAAA0",
        "TRAIN/DR1/MAAB0",
        "TRAIN/DR2/FAAC0",
        "TRAIN/DR2/MAAD0",
    ]
    names = sorted(path.name for path in (corpus / "TRAIN/DR1/FAAA0").iterdir())
    stems = ("SA1", "SA2", "SX1", "SX2")
    assert names == [f"{s}.{suffix}" for s in stems for suffix in ("PHN", "TXT", "WAV")]
    assert len(digests(corpus)) == 4 * 4 * 3 + 1


def test_audio_is_little_endian_sphere(corpus):
    for path in corpus.rglob("*.WAV"):
        data = path.read_bytes()
        header = data[:1024].decode("ascii")
        assert header.startswith("NIST_1A\n   1024\n")
        fields = dict(line.split(" ", 1) for line in header.split("\n")[2:9])
        assert fields["sample_rate"] == "-i 16000"
        assert fields["channel_count"] == "-i 1"
        assert fields["sample_byte_format"] == "-s2 01"
        samples = np.frombuffer(data[1024:], "<i2")
        assert fields["sample_count"] == f"-i {len(samples)}"
        read, rate = soundfile.read(path, dtype="int16")
        assert rate == 16000
        np.testing.assert_array_equal(read, samples)


def test_text_and_phones_agree_with_the_audio(corpus):
    for path in corpus.rglob("*.WAV"):
        count = soundfile.info(path).frames
        zero, end, text = path.with_suffix(".TXT").read_text().rstrip().split(" ", 2)
        assert (int(zero), int(end)) == (0, count)
        assert text[0].isupper()
        lines = path.with_suffix(".PHN").read_text().splitlines()
        rows = [(int(b), int(e), p) for b, e, p in map(str.split, lines)]
        assert rows[0][0] == 0
        assert rows[-1][1] == count
        assert all(a[1] == b[0] for a, b in pairwise(rows))
        assert rows[0][2] == rows[-1][2] == "h#"


def test_pipeline_finds_every_utterance(corpus):
    found = discover(corpus)
    assert len(found.utterances) == 16
    assert not found.passed_over
    assert {utterance.part for utterance in found.utterances} == {"train"}
    assert {utterance.dialect for utterance in found.utterances} == {"dr1", "dr2"}


@pytest.mark.slow
def test_same_arguments_same_bytes_fewer_are_a_part_of_them(corpus, tmp_path):
    assert write_corpus(tmp_path / "same", speakers=4, sentences=4, seed=5)
    assert digests(tmp_path / "same") == digests(corpus)
    assert write_corpus(tmp_path / "part", speakers=2, sentences=3, seed=5)
    part = digests(tmp_path / "part")
    del part[LABEL]
    assert len(part) == 2 * 3 * 3
    assert part.items() <= digests(corpus).items()


def test_another_seed_gives_other_audio(corpus, tmp_path):
    write_corpus(tmp_path / "other", speakers=1, sentences=1, seed=6)
    name = "TRAIN/DR1/FAAA0/SA1.WAV"
    assert digests(tmp_path / "other")[name] != digests(corpus)[name]


def test_corpus_that_is_there_is_left_as_it_is(corpus):
    before = {path: path.stat().st_mtime_ns for path in corpus.rglob("*")}
    assert not write_corpus(corpus, speakers=4, sentences=4, seed=5)
    assert {path: path.stat().st_mtime_ns for path in corpus.rglob("*")} == before


def test_label_says_what_it_is(corpus):
    label = json.loads((corpus / LABEL).read_text())
    assert label["version"] == tree.VERSION
    assert (label["speakers"], label["sentences"], label["seed"]) == (4, 4, 5)


def test_other_corpus_is_an_error(corpus):
    with pytest.raises(FileExistsError, match="other arguments"):
        write_corpus(corpus, speakers=4, sentences=4, seed=6)


def test_folder_of_other_things_is_an_error(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="Received: "):
        write_corpus(tmp_path, speakers=1, sentences=1)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_file_is_an_error(tmp_path):
    path = tmp_path / "demo"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="must be a folder"):
        write_corpus(path, speakers=1, sentences=1)
    assert path.read_text() == "mine"


def test_empty_folder_and_missing_parents_are_fine(tmp_path):
    (tmp_path / "empty").mkdir()
    assert write_corpus(tmp_path / "empty", speakers=1, sentences=1)
    assert write_corpus(tmp_path / "new" / "deep", speakers=1, sentences=1)
    assert digests(tmp_path / "empty") == digests(tmp_path / "new" / "deep")


def test_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    write_recording, written = tree.write_recording, []

    def fail_at_third(folder, sentence, recording):
        if len(written) == 2:
            raise OSError("No space left on device")
        written.append(sentence)
        write_recording(folder, sentence, recording)

    monkeypatch.setattr(tree, "write_recording", fail_at_third)
    with pytest.raises(OSError, match="No space left"):
        write_corpus(tmp_path / "demo", speakers=1, sentences=4)
    assert len(written) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("speakers", 0),
        ("speakers", 261),
        ("sentences", 0),
        ("sentences", 35),
        ("seed", -1),
        ("speakers", 2.5),
    ],
)
def test_numbers_out_of_range_are_errors(tmp_path, name, value):
    with pytest.raises(ValueError, match=rf"`{name}` must be .* Received: {value}$"):
        write_corpus(tmp_path / "demo", **{name: value})
    assert not list(tmp_path.iterdir())
