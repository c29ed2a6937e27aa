import gzip

import numpy as np
import pytest

from keras_ortho.tasks import characters

SENTENCES = {
    "train": ["the <unk> of N", "is n't a b", "it 's"],
    "valid": ["a <unk>", "of it"],
    "test": ["the N", "b 's it"],
}


def text_of(part):
    return "".join(f"{line}\n" for line in SENTENCES[part])


def write(folder, form):
    folder.mkdir(exist_ok=True)
    for part, lines in SENTENCES.items():
        if form == "words":  # As Mikolov's files: a space before and after each line.
            words = "".join(f" {line} \n" for line in lines)
            (folder / f"ptb.{part}.txt").write_text(words)
        else:
            text = "".join(f"{symbol} " for symbol in text_of(part).replace(" ", "_"))
            packed = gzip.compress(text.encode())
            (folder / f"ptb.char.{part}.txt.gz").write_bytes(packed)


@pytest.mark.parametrize(
    ("length", "batch_size", "unroll"),
    [(9, 2, 2), (100, 3, 7), (51, 1, 50), (33, 32, 1)],
)
def test_windows(length, batch_size, unroll):
    """A row of the batches, put together, is a part of the text."""
    x, y = characters.windows(np.arange(length), batch_size, unroll)
    per_row = (length - 1) // batch_size
    count = per_row // unroll  # As many as fit.
    np.testing.assert_array_equal(y, x + 1)
    rows = x.reshape(count, batch_size, unroll).swapaxes(0, 1).reshape(batch_size, -1)
    starts = per_row * np.arange(batch_size)
    np.testing.assert_array_equal(rows, starts[:, None] + np.arange(count * unroll))


@pytest.mark.parametrize(("form", "folder"), [("words", "."), ("characters", "ptb")])
def test_load(tmp_path, form, folder):
    write(tmp_path / folder, form)
    data = characters.load(tmp_path, batch_size=2, unroll=3)
    assert data.vocabulary == sorted(set(text_of("train")))
    assert data.num_classes == len(data.vocabulary)
    assert data.train.element_spec[0].shape == (2, 3)
    for part in SENTENCES:
        batches = list(getattr(data, part))
        numbers = [data.vocabulary.index(character) for character in text_of(part)]
        expected = characters.windows(np.array(numbers), 2, 3)
        found = [np.concatenate(arrays) for arrays in zip(*batches, strict=True)]
        np.testing.assert_array_equal(found, expected)
        assert len(getattr(data, part)) == len(batches)
    sizes = {"train_size": 9, "valid_size": 5, "test_size": 3}
    short = characters.load(tmp_path, batch_size=1, unroll=2, **sizes)
    assert [len(part) for part in (short.train, short.valid, short.test)] == [4, 2, 1]
    assert short.vocabulary == data.vocabulary


def test_penn_treebank(data_dir):
    if not (data_dir / "ptb").is_dir():
        pytest.skip("KERAS_ORTHO_DATA has no folder `ptb` with the Penn Treebank")
    for unroll, expected in ((50, [3135, 245, 276]), (1, [156_796, 12_282, 13_825])):
        # Of 5 017 482, 393 042 and 442 423 characters.
        data = characters.load(data_dir, unroll=unroll)
        assert [len(part) for part in (data.train, data.valid, data.test)] == expected
    assert data.num_classes == 50
