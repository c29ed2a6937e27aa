"""The Penn Treebank as characters: predict the next character of a text."""

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_ortho.extras import require
from keras_ortho.reading import naming
from keras_ortho.tasks.pipeline import batches, check_sizes

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Characters:
    """Text in batches for truncated backpropagation through time.

    Row `i` of a batch continues row `i` of the previous batch, so the state after a
    batch is the initial state of the next.

    Attributes:
        train: `tf.data.Dataset` of pairs of integers, both of shape `(batch_size,
            unroll)`: the characters, and those that follow them.
        valid: As `train`, to choose epochs and settings on.
        test: As `train`, to report figures on.
        vocabulary: The symbols, in the order of their numbers.
    """

    train: Any
    valid: Any
    test: Any
    vocabulary: list[str]

    @property
    def num_classes(self) -> int:
        """Number of symbols: 50 for the Penn Treebank."""
        return len(self.vocabulary)


def windows(
    symbols: np.ndarray, batch_size: int, unroll: int
) -> tuple[np.ndarray, np.ndarray]:
    """Cuts a text into rows that are read side by side, a window at a time.

    The text is cut into `batch_size` rows of equal length, and these into windows.
    Characters that do not fill a row or a window are left out, at the end of the text
    and of each row: fewer than `batch_size (unroll + 1)`.

    Args:
        symbols: Integers of shape `(characters,)`.
        batch_size: Number of rows `B`.
        unroll: Number of characters `T` in a window.

    Returns:
        A pair of arrays of shape `(w B, T)` for `w` windows, the first window of
        all rows first: the characters, and those that follow them.

    Raises:
        ValueError: If a number is not positive, or the text is too short for a window.

    Example:
    >>> windows(np.arange(9), batch_size=2, unroll=2)
    [[0, 1], [4, 5], [2, 3], [6, 7]], [[1, 2], [5, 6], [3, 4], [7, 8]]
    """
    batch_size, unroll = check_sizes(batch_size=batch_size, unroll=unroll)
    length = (len(symbols) - 1) // batch_size
    count = length // unroll
    if count < 1:
        raise ValueError(
            "The text must have more than `batch_size` times `unroll` characters. "
            f"Received: {len(symbols)} characters, batch_size={batch_size}, "
            f"unroll={unroll}"
        )

    def cut(symbols: np.ndarray) -> np.ndarray:
        rows = symbols[: batch_size * length].reshape(batch_size, length)
        parts = rows[:, : count * unroll].reshape(batch_size, count, unroll)
        return parts.swapaxes(0, 1).reshape(-1, unroll)

    return cut(symbols[:-1]), cut(symbols[1:])


def load(
    data_dir: str | os.PathLike[str],
    *,
    batch_size: int = 32,
    unroll: int = 50,
    train_size: int | None = None,
    valid_size: int | None = None,
    test_size: int | None = None,
) -> Characters:
    """Makes the character-level Penn Treebank, by default as in the paper.

    The loss is the cross-entropy of the next character; divided by `ln 2`, it is the
    bits per character. All batches have the same shape, as required to carry a state
    from batch to batch. Some characters at the end are therefore left out (see
    `windows`): of the whole texts, 1 482 of 5 017 482, 1 042 of 393 042, and 823 of
    442 423. Each row begins in the middle of the text, without knowledge of what
    precedes it.

    Args:
        data_dir: Folder of the files `ptb.train.txt`, `ptb.valid.txt` and
            `ptb.test.txt`, or with one character at a time, `ptb.char.train.txt` and so
            on, each with or without `.gz`; or the parent of such a folder `ptb`.
        batch_size: Number of rows that are read side by side. Default: 32.
        unroll: Number of characters of a row in a batch. Default: 50.
        train_size: Number of characters from the beginning of the training text.
            Default: `None`, all.
        valid_size: As `train_size`, for the validation text. Default: `None`.
        test_size: As `train_size`, for the test text. Default: `None`.

    Returns:
        The texts in batches. The vocabulary is that of the whole training text,
        sorted.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a size is not positive or exceeds its text, or if a text is too
            short for a batch, or has a symbol that the training text lacks.
        ImportError: If TensorFlow, which provides `tf.data`, is not installed.

    Reference:

    - [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964), section 4
    - [Mikolov et al., 2010](https://www.isca-archive.org/interspeech_2010/), whose
      selection of the Penn Treebank this is
    """
    sizes = {"train": train_size, "valid": valid_size, "test": test_size}
    check_sizes(batch_size=batch_size, unroll=unroll)
    check_sizes(**{f"{part}_size": n for part, n in sizes.items() if n is not None})
    texts = {part: _read(data_dir, part) for part in PARTS}
    vocabulary = sorted(set(texts["train"]))

    known = np.array([ord(symbol) for symbol in vocabulary], "<u4")

    def prepare(part: str) -> Any:
        codes = np.frombuffer(texts[part].encode("utf-32-le"), "<u4")
        if new := sorted(map(chr, np.setdiff1d(codes, known))):
            raise ValueError(
                f"The {part} text must not contain symbols that are not in the "
                f"training text. Received: {new}"
            )
        size = sizes[part]
        if size is not None and size > len(codes):
            raise ValueError(
                f"`{part}_size` must be at most the {len(codes)} characters of the "
                f"text. Received: {part}_size={size}"
            )
        symbols = np.searchsorted(known, codes[:size]).astype("int32")
        try:
            parts = windows(symbols, batch_size, unroll)
        except ValueError as error:
            raise ValueError(f"The {part} text is too short. {error}") from error
        tf, shape = require("tensorflow"), (batch_size, unroll)
        return batches(*parts, batch_size=batch_size).map(
            lambda x, y: (tf.ensure_shape(x, shape), tf.ensure_shape(y, shape))
        )

    train, valid, test = (prepare(part) for part in PARTS)
    return Characters(train, valid, test, vocabulary)


def _read(data_dir: str | os.PathLike[str], part: str) -> str:
    """Reads a part of the Penn Treebank."""
    for folder in (Path(data_dir), Path(data_dir, "ptb")):
        for name, characters in (
            (f"ptb.{part}.txt", _from_words),
            (f"ptb.char.{part}.txt", _from_spaced),
            (f"ptb.char.{part}.txt.gz", _from_spaced),
        ):
            path = folder / name
            if path.is_file():
                opener = gzip.open if path.suffix == ".gz" else open
                with naming(path), opener(path, "rt", encoding="utf-8") as file:
                    return characters(file.read())
    raise FileNotFoundError(
        f"There is no `ptb.{part}.txt` and no `ptb.char.{part}.txt[.gz]` in the "
        "folder. They are the Penn Treebank as T. Mikolov prepared it "
        "(simple-examples.tgz of the RNNLM toolkit, ./data). The text is licensed by "
        "the Linguistic Data Consortium (LDC99T42, https://catalog.ldc.upenn.edu) and "
        "is not downloaded automatically: put the files in a folder, and pass it as "
        f"`data_dir`. Received: data_dir={os.fspath(data_dir)!r}"
    )


def _from_words(text: str) -> str:
    """Takes the spaces around each line away, and ends each with a newline."""
    lines = text.removesuffix("\n").split("\n")
    return "".join(line.strip(" ") + "\n" for line in lines)


def _from_spaced(text: str) -> str:
    """Takes the space after each character away, and those that `_` stands for back."""
    if text[1::2].strip(" "):
        raise ValueError("it must have a space after each character")
    return text[::2].replace("_", " ")
