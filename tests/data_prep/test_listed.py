import random
from pathlib import PureWindowsPath

import pytest

from keras_ortho.data_prep import listed
from keras_ortho.data_prep.corpus import Utterance
from keras_ortho.data_prep.listed import list_corpus

HEADER = "file,speaker,split,id"
GOOD = "ben/1.wav,Ben,test,b1"


@pytest.fixture
def corpus(tmp_path):
    paths = ("ann/1.wav", "ann/2.flac", "ben/1.wav", "ann_1.wav", ".x/ä b.c.mp3")
    for path in (*paths, "a, b.wav"):
        (tmp_path / "corpus" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "corpus" / path).touch()
    return tmp_path / "corpus"


def write(corpus, *lines, name="list.csv"):
    path = corpus.parent / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_utterances_by_id(corpus):
    path = write(
        corpus,
        # In any order, with others between.
        "split, text,speaker ,file,id",
        'test,"He said ""no""",Ben,ben/1.wav,b1',
        'valid,, Ann ,"a, b.wav",a2',
        "",
        "train,Yes,Jürgen,./ann//1.wav, a1",
    )
    found = list_corpus(corpus, [path])
    assert found.root == corpus
    assert found.utterances == [
        Utterance("a1", "Jürgen", "", "", "train", "ann/1.wav"),
        Utterance("a2", "Ann", "", "", "valid", "a, b.wav"),
        Utterance("b1", "Ben", "", "", "test", "ben/1.wav"),
    ]
    assert found.passed_over == []


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_ids_from_paths_in_lists_as_spreadsheets_write_them(corpus, end, mark):
    lines = ["file,speaker", "ann/1.wav,a", "ben/1.wav,b", ".x/ä b.c.mp3,c"]
    path = corpus.parent / "list.csv"
    path.write_bytes((mark + end.join(lines)).encode())
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
    class Root(PureWindowsPath):
        absolute = resolve = lambda self: self

    monkeypatch.setattr(listed, "Path", PureWindowsPath)
    for file in ("ann\\1.wav", "ann/1.wav", "c:\\Corpus\\ann\\1.wav", "D:\\1.wav"):
        entry = listed._Entry(file, "Ann", None, None, "line 1")
        if file.startswith("D"):
            with pytest.raises(ValueError, match="paths below the corpus folder"):
                listed._relative_path(entry, Root("C:/corpus"))
        else:
            assert listed._relative_path(entry, Root("C:/corpus")) == "ann/1.wav"


def test_neither_the_order_of_the_lines_nor_the_number_of_lists_matters(corpus):
    rows = [
        ("ann/1.wav", "Ann", "train", "a1"),
        ("ann/2.flac", "Ann", "valid", "a2"),
        ("ben/1.wav", "Ben", "test", "b1"),
        ("ann_1.wav", "Ann", "train", "a3"),
    ]
    expected = list_corpus(corpus, [write(corpus, HEADER, *map(",".join, rows))])
    assert len(expected.list_sha256) == 64
    for seed in range(10):
        random.Random(seed).shuffle(rows)
        again = write(corpus, HEADER, *map(",".join, rows), name="again.csv")
        assert list_corpus(corpus, [again]) == expected
    lists = []
    for split in ("test", "train", "valid"):
        lines = [f"{f},{who},{i}" for f, who, name, i in rows if name == split]
        path = write(corpus, "file,speaker,id", *lines, name=f"{split}=1.csv")
        lists.append(f"{split}={path}")
    assert list_corpus(corpus, lists) == expected
    for line in ("ann/1.wav,Ann,test,a1", "ann/1.wav,Eve,train,a1", "ann/1.wav,Ann"):
        header = HEADER if line.count(",") == 3 else "file,speaker"
        other = list_corpus(corpus, [write(corpus, header, line)])
        assert other.list_sha256 != expected.list_sha256


PATHS = "paths below the corpus folder. Received: LINE: "


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ann/3.wav,Ann,train,a", "no such file below CORPUS. Received: LINE: ann/3"),
        ("ann,Ann,train,a", "no such file below CORPUS. Received: LINE: ann$"),
        ("../list.csv,Ann,train,a", f"{PATHS}'../list.csv'"),
        ("/dev/null,Ann,train,a", f"{PATHS}'/dev/null'"),
        (",Ann,train,a", f"{PATHS}''"),
        ("ann/1.wav, ,train,a", "must have a speaker. Received: LINE: ann/1.wav"),
        ("ann/1.wav,Ann,dev,a", r"split must .*\('train'.* Received: LINE: 'dev'"),
        ("ann/1.wav,Ann,train,", "An id must have .* Received: LINE: ''"),
        ("ann/1.wav,Ann,train,a b", "An id must have .* Received: LINE: 'a b'"),
        ("ann/1.wav,Ann,train,a\x7f", r"An id must have .* Received: LINE: 'a\\x7f'"),
        (f"ann/1.wav,Ann,train,{'ä' * 101}", "1 to 200 bytes.* Received: LINE: 'ää"),
        ("ann/1.wav,Ann,train,b1", "different ids.* LINE: b1, as LIST, line 2"),
        ("ben//1.wav,Ben,test,b2", "named once.* LINE: ben/1.wav, as LIST, line 2"),
        ("ann/1.wav,Ann", "as the first line, 4. Received: LINE$"),
        ("ann/1.wav,Ann,train,a,b", "as the first line, 4. Received: LINE$"),
        ('"ann"/1.wav,Ann,train,a', "CSV file. Received: LIST, after line 2: "),
        ('ann/1.wav,"Ann', "CSV file. Received: LIST, after line 2: "),
        (b"ann/\xe9.wav,Ann,train,a", "UTF-8. Received: LINE: the byte 0xe9"),
    ],
)
def test_a_line_that_cannot_be_is_named(corpus, line, message):
    path = write(corpus, HEADER, GOOD)
    with path.open("ab") as file:
        file.write(line if isinstance(line, bytes) else line.encode())
    message = message.replace("LINE", f"{path}, line 3").replace("LIST", str(path))
    with pytest.raises(ValueError, match=message.replace("CORPUS", str(corpus))):
        list_corpus(corpus, [path])


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("", "no `file`. Received: LIST, line 1: $"),
        ("file;speaker", "no `file`. Received: LIST, line 1: file;speaker$"),
        ("file,speaker,file", "one column `file`. Received: LIST, line 1: file"),
        ("file,Speaker", "no `speaker`. Received: LIST, line 1: file, Speaker$"),
        ("file,speaker", "A list must name a file. Received: LIST$"),
    ],
)
def test_what_is_no_list(corpus, header, message):
    path = write(corpus, header)
    with pytest.raises(ValueError, match=message.replace("LIST", str(path))):
        list_corpus(corpus, [path])


def test_lists_that_do_not_go_together(corpus):
    one = write(corpus, "file,speaker", "ann/1.wav,a")
    two = write(corpus, "file,speaker,id", "ann/1.wav,a,other", name="two.csv")
    with pytest.raises(ValueError, match=f"Received: {two}, line 2: .*, as {one}"):
        list_corpus(corpus, [one, two])
    given = write(corpus, HEADER, GOOD, name="given.csv")
    with pytest.raises(ValueError, match=f"{given}, line 2 with one, {one}, line 2"):
        list_corpus(corpus, [one, given])
    with pytest.raises(ValueError, match=f"no column `split`. Received: {given}"):
        list_corpus(corpus, [f"test={given}"])
    with pytest.raises(FileNotFoundError, match="train=LIST.* Received: dev=data/dev"):
        list_corpus(corpus, ["dev=data/dev"])
    both = write(corpus, "file,speaker", "ann/1.wav,a", "ann_1.wav,a")
    message = f"column `id`.* Received: {both}, line 3: ann_1, as {both}, line 2"
    with pytest.raises(ValueError, match=message):
        list_corpus(corpus, [both])
