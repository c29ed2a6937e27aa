import gzip

import numpy as np
import pytest

from keras_ortho.tasks import characters
from keras_ortho.tasks.characters import PARTS, _read

SENTENCES = {
    "train": ["the <unk> of N", "is n't a b", "it 's"],
    "valid": ["a <unk>", "of it"],
    "test": ["the N", "b 's it"],
}


def text_of(part):
    return "".join(f"{line}\n" for line in SENTENCES[part])


def write_words(folder):
    for part, lines in SENTENCES.items():
        # As Mikolov's files: a space before and after each line.
        words = "".join(f" {line} \n" for line in lines)
        (folder / f"ptb.{part}.txt").write_text(words)


def write_characters(folder, packed=False):
    for part in SENTENCES:
        text = "".join(f"{symbol} " for symbol in text_of(part).replace(" ", "_"))
        path = folder / f"ptb.char.{part}.txt"
        if packed:
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("form", ["words", "characters", "packed", "in a folder"])
def test_read(form, part, tmp_path):
    if form == "words":
        write_words(tmp_path)
    elif form == "in a folder":
        (tmp_path / "ptb").mkdir()
        write_words(tmp_path / "ptb")
    else:
        write_characters(tmp_path, packed=form == "packed")
    assert _read(tmp_path, part) == text_of(part)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("ptb.train.txt", " a  b \n\n", "a  b\n\n"),
        ("ptb.train.txt", "no newline", "no newline\n"),
        ("ptb.train.txt", " a \r\n b \r\n", "a\nb\n"),
        ("ptb.char.train.txt", "a _ \n b ", "a \nb"),
    ],
)
def test_spaces(name, content, text, tmp_path):
    (tmp_path / name).write_bytes(content.encode())
    assert _read(tmp_path, "train") == text


@pytest.mark.parametrize(
    ("length", "batch_size", "unroll"),
    [(9, 2, 2), (100, 3, 7), (51, 1, 50), (33, 32, 1), (1000, 32, 30)],
)
def test_windows(length, batch_size, unroll):
    """A row of the batches, put together, is a part of the text."""
    x, y = characters.windows(np.arange(length), batch_size, unroll)
    count = len(x) // batch_size
    assert x.shape == y.shape == (count * batch_size, unroll)
    np.testing.assert_array_equal(y, x + 1)
    rows = x.reshape(count, batch_size, unroll)
    starts = rows[0, :, 0]
    per_row = (length - 1) // batch_size
    np.testing.assert_array_equal(starts, per_row * np.arange(batch_size))
    for row in range(batch_size):
        whole = starts[row] + np.arange(count * unroll)
        np.testing.assert_array_equal(rows[:, row].reshape(-1), whole)
    # As many as fit.
    assert count == per_row // unroll
    assert length - x.size <= batch_size * (unroll + 1)


def test_load(tmp_path):
    write_words(tmp_path)
    data = characters.load(tmp_path, batch_size=2, unroll=3)
    text = text_of("train")
    assert data.vocabulary == sorted(set(text))
    assert data.vocabulary[:2] == ["\n", " "]
    assert data.num_classes == len(data.vocabulary)
    for part in PARTS:
        batches = list(getattr(data, part))
        assert len(getattr(data, part)) == len(batches)
        assert all(x.shape == y.shape == (2, 3) for x, y in batches)
        text = text_of(part)
        per_row = (len(text) - 1) // 2
        for row in range(2):
            for shift in range(2):
                read = "".join(
                    data.vocabulary[symbol]
                    for pair in batches
                    for symbol in pair[shift][row].numpy()
                )
                start = row * per_row + shift
                assert read == text[start : start + per_row // 3 * 3]
    assert data.train.element_spec[0].shape == (2, 3)
    # The same in each pass.
    first, second = ([x.numpy() for x, _ in data.train] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_sizes(tmp_path):
    write_words(tmp_path)
    data = characters.load(
        tmp_path, batch_size=1, unroll=2, train_size=9, valid_size=5, test_size=3
    )
    assert [len(part) for part in (data.train, data.valid, data.test)] == [4, 2, 1]
    # Not that of the shorter text.
    assert data.vocabulary == sorted(set(text_of("train")))


COUNTS = {"train": 5_017_482, "valid": 393_042, "test": 442_423}


def test_penn_treebank(data_dir, tmp_path):
    if not (data_dir / "ptb").is_dir():
        pytest.skip("KERAS_ORTHO_DATA has no folder `ptb` with the Penn Treebank")
    texts = {part: _read(data_dir, part) for part in PARTS}
    assert {part: len(text) for part, text in texts.items()} == COUNTS
    assert {part: text.count("\n") for part, text in texts.items()} == {
        "train": 42_068,
        "valid": 3_370,
        "test": 3_761,
    }
    assert len(set(texts["train"])) == 50
    assert len(set(texts["test"])) == 48
    for part, name in (("valid", ".txt"), ("train", ".txt.gz")):
        path = data_dir / "ptb" / f"ptb.char.{part}{name}"
        if path.is_file():
            (tmp_path / path.name).symlink_to(path)
            assert _read(tmp_path, part) == texts[part]
    data = characters.load(data_dir)
    assert data.num_classes == 50
    assert [len(part) for part in (data.train, data.valid, data.test)] == [
        3135,
        245,
        276,
    ]
