import os
import random
from pathlib import PureWindowsPath

import pytest

from keras_ortho.data_prep import listed
from keras_ortho.data_prep.corpus import Utterance
from keras_ortho.data_prep.entries import Entry
from keras_ortho.data_prep.listed import ListFile, list_corpus

HEADER = "file,speaker,split,id"


@pytest.fixture
def corpus(tmp_path):
    for path in ("ann/1.wav", "ann/2.flac", "ben/1.wav", "ann_1.wav", ".x/ä b.c.mp3"):
        (tmp_path / "corpus" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "corpus" / path).touch()
    return tmp_path / "corpus"


def write(corpus, *lines, name="list.csv"):
    path = corpus.parent / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_kaldi(corpus, name, *lines):
    """A folder of Kaldi's from lines `id file speaker`."""
    (corpus.parent / name).mkdir()
    table = [line.split() for line in lines]
    write(corpus, *(f"{i} {file}" for i, file, _ in table), name=f"{name}/wav.scp")
    write(corpus, *(f"{i} {who}" for i, _, who in table), name=f"{name}/utt2spk")
    return corpus.parent / name


def test_utterances_by_id(corpus):
    path = write(
        corpus,
        HEADER,
        "ben/1.wav,Ben,test,b1",
        "./ann//2.flac,Ann,valid,a2",
        "ann/1.wav,Ann,train,a1",
    )
    found = list_corpus(corpus, [path])
    assert found.root == corpus
    assert found.utterances == (
        Utterance("a1", "Ann", "", "", "train", "ann/1.wav"),
        Utterance("a2", "Ann", "", "", "valid", "ann/2.flac"),
        Utterance("b1", "Ben", "", "", "test", "ben/1.wav"),
    )
    assert found.passed_over == ()


def test_ids_from_paths(corpus):
    path = write(corpus, "file,speaker", "ann/1.wav,a", "ben/1.wav,b", ".x/ä b.c.mp3,c")
    found = list_corpus(corpus, [path])
    assert [u.id for u in found.utterances] == ["_x_ä_b.c", "ann_1", "ben_1"]
    assert {u.part for u in found.utterances} == {None}


def test_absolute_paths_below_the_corpus(corpus, monkeypatch):
    link = corpus.parent / "link"
    link.symlink_to(corpus)
    relative = write(corpus, "file,speaker", "ann/1.wav,a", "ben/1.wav,b")
    expected = list_corpus(corpus, [relative])
    for root in (link, corpus):
        lines = [f"{corpus}/ann/1.wav,a", f"{root}/ben/1.wav,b"]
        absolute = write(corpus, "file,speaker", *lines, name="absolute.csv")
        assert list_corpus(root, [absolute]).utterances == expected.utterances
    monkeypatch.chdir(corpus.parent)
    assert list_corpus("corpus", [absolute]).utterances == expected.utterances


def test_paths_as_windows_writes_them(monkeypatch):
    monkeypatch.setattr(listed, "Path", PureWindowsPath)
    roots = [PureWindowsPath("C:/corpus")]
    for file in ("ann\\1.wav", "ann/1.wav", "c:\\Corpus\\ann\\1.wav"):
        entry = Entry(file, "Ann", None, None, "line 1")
        assert listed._relative_path(entry, roots) == "ann/1.wav"
    for file in ("D:\\1.wav", "C:1.wav", "\\1.wav", "ann\\..\\..\\1.wav"):
        with pytest.raises(ValueError, match="paths below the corpus folder"):
            listed._relative_path(entry._replace(file=file), roots)


def test_the_order_of_the_lines_and_the_form_of_the_list_do_not_matter(corpus):
    rows = [
        ("ann/1.wav", "Ann", "train", "a1"),
        ("ann/2.flac", "Ann", "valid", "a2"),
        ("ben/1.wav", "Ben", "test", "b1"),
        ("ann_1.wav", "Ann", "train", "a3"),
    ]
    expected = list_corpus(corpus, [write(corpus, HEADER, *map(",".join, rows))])
    for seed in range(10):
        random.Random(seed).shuffle(rows)
        again = write(corpus, HEADER, *map(",".join, rows), name="again.csv")
        assert list_corpus(corpus, [again]) == expected
    lists = []
    for split in ("test", "train", "valid"):
        lines = [f"{i} {file} {who}" for file, who, name, i in rows if name == split]
        lists.append(ListFile(write_kaldi(corpus, split, *lines), split))
    assert list_corpus(corpus, lists) == expected


@pytest.mark.parametrize(
    "line",
    ["ann/1.wav,Ann,test,a1", "ann/1.wav,Eve,train,a1", "ann/1.wav,Ann,train,a9"],
)
def test_the_hash_is_of_all_that_the_list_says(corpus, line):
    other = "ben/1.wav,Ben,test,b1"
    old = list_corpus(corpus, [write(corpus, HEADER, "ann/1.wav,Ann,train,a1", other)])
    new = list_corpus(corpus, [write(corpus, HEADER, line, other)])
    assert len(old.list_sha256) == 64
    assert new.list_sha256 != old.list_sha256


GOOD = "ben/1.wav,Ben,test,b1"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "ann/3.wav,Ann,train,a",
            "no such file below CORPUS. Received: LINE: ann/3.wav",
        ),
        ("ann,Ann,train,a", "no such file below CORPUS. Received: LINE: ann$"),
        (f"{'x' * 300},Ann,train,a", "no such file below CORPUS. Received: LINE: xxx"),
        ("../list.csv,Ann,train,a", "paths below.* Received: LINE: '../list.csv'"),
        ("/dev/null,Ann,train,a", "paths below.* Received: LINE: '/dev/null'"),
        (",Ann,train,a", "paths below the corpus folder. Received: LINE: ''"),
        (".,Ann,train,a", "paths below the corpus folder. Received: LINE: '.'"),
        ("ann/1.wav, ,train,a", "must have a speaker. Received: LINE: ann/1.wav"),
        ("ann/1.wav,Ann,dev,a", r"split must .*\('train'.* Received: LINE: 'dev'"),
        ("ann/1.wav,Ann,,a", "split must be one of .* Received: LINE: ''"),
        ("ann/1.wav,Ann,train,", "An id must have .* Received: LINE: ''"),
        ("ann/1.wav,Ann,train,a b", "An id must have .* Received: LINE: 'a b'"),
        ("ann/1.wav,Ann,train,a/b", "An id must have .* Received: LINE: 'a/b'"),
        ("ann/1.wav,Ann,train,.a", "An id must have .* Received: LINE: '.a'"),
        ("ann/1.wav,Ann,train,-a", "An id must have .* Received: LINE: '-a'"),
        ("ann/1.wav,Ann,train,a\x7f", r"An id must have .* Received: LINE: 'a\\x7f'"),
        (f"ann/1.wav,Ann,train,{'ä' * 101}", "1 to 200 bytes.* Received: LINE: 'ää"),
        ("ann/1.wav,Ann,train,b1", "different ids.* LINE: b1, as LIST, line 2"),
        ("ben//1.wav,Ben,test,b2", "named once.* LINE: ben/1.wav, as LIST, line 2"),
    ],
)
def test_a_line_that_cannot_be_is_named(corpus, line, message):
    path = write(corpus, HEADER, GOOD, line)
    message = message.replace("LINE", f"{path}, line 3").replace("LIST", str(path))
    message = message.replace("CORPUS", str(corpus))
    with pytest.raises(ValueError, match=message):
        list_corpus(corpus, [path])


def test_ids_of_paths_that_collide(corpus):
    path = write(corpus, "file,speaker", "ann/1.wav,a", "ann_1.wav,a")
    message = f"column `id`.* Received: {path}, line 3: ann_1, as {path}, line 2"
    with pytest.raises(ValueError, match=message):
        list_corpus(corpus, [path])


def test_the_same_file_in_two_lists(corpus):
    one = write(corpus, "file,speaker", "ann/1.wav,a")
    two = write(corpus, "file,speaker,id", "ann/1.wav,a,other", name="two.csv")
    with pytest.raises(ValueError, match=f"Received: {two}, line 2: .*, as {one}"):
        list_corpus(corpus, [one, two])


def test_lists_with_splits_and_without(corpus):
    without = write(corpus, "file,speaker", "ann/1.wav,a")
    given = write(corpus, HEADER, GOOD, name="given.csv")
    with pytest.raises(
        ValueError, match=f"{given}, line 2 with one, {without}, line 2"
    ):
        list_corpus(corpus, [without, given])
    with pytest.raises(ValueError, match=f"no column `split`. Received: {given}"):
        list_corpus(corpus, [ListFile(given, "test")])
    with pytest.raises(ValueError, match="must be one of .* Received: 'dev'"):
        list_corpus(corpus, [ListFile(without, "dev")])


def test_lists_that_are_none(corpus):
    with pytest.raises(FileNotFoundError, match="train=LIST.* Received: dev=data/dev"):
        list_corpus(corpus, ["dev=data/dev"])
    empty = write(corpus, "file,speaker")
    with pytest.raises(ValueError, match=f"must name a file. Received: {empty}"):
        list_corpus(corpus, [empty])
    os.mkfifo(corpus.parent / "pipe")
    with pytest.raises(ValueError, match="that of a regular file. Received: .*pipe"):
        list_corpus(corpus, [corpus.parent / "pipe"])
    for lists in ([], str(empty), empty, ListFile(empty)):
        with pytest.raises(ValueError, match="`lists` must be a sequence"):
            list_corpus(corpus, lists)
    with pytest.raises(FileNotFoundError, match="corpus folder does not exist"):
        list_corpus(corpus / "nowhere", [empty])
