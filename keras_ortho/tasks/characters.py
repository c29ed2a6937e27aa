"""The Penn Treebank as characters: predict the next character of a text."""

import gzip
import os
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from keras_ortho.checks import check
from keras_ortho.extras import require
from keras_ortho.files import FilePath, naming
from keras_ortho.tasks.pipeline import check_sizes


@dataclass(frozen=True)
class Characters:
    """Text in batches for truncated backpropagation through time.

    Row `i` of a batch continues row `i` of the previous batch, so the state after a
    batch is the initial state of the next.

    Attributes:
        train, valid, test: Each a `tf.data.Dataset` of characters, and those that
            follow them, both integers of shape `(batch_size, unroll)`.
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

    What does not fill a row or a window is left out.

    Args:
        symbols: Integers of shape `(characters,)`.
        batch_size: Number of rows `B`.
        unroll: Number of characters `T` in a window.

    Returns:
        The characters, and those that follow them, `(windows B, T)`, row by row.

    Raises:
        ValueError: If a number is not positive, or the text is too short for a window.

    Example:
    >>> windows(np.arange(9), batch_size=2, unroll=2)
    [[0, 1], [4, 5], [2, 3], [6, 7]], [[1, 2], [5, 6], [3, 4], [7, 8]]
    """
    batch_size, unroll = check_sizes(batch_size=batch_size, unroll=unroll)
    length = (len(symbols) - 1) // batch_size
    count = length // unroll
    wanted = f"have more than {batch_size * unroll} characters, a window of each row"
    check(count > 0, "symbols", wanted, f"{len(symbols)} characters")

    def cut(symbols: np.ndarray) -> np.ndarray:
        rows = symbols[: batch_size * length].reshape(batch_size, length)
        parts = rows[:, : count * unroll].reshape(batch_size, count, unroll)
        return parts.swapaxes(0, 1).reshape(-1, unroll)

    return cut(symbols[:-1]), cut(symbols[1:])


def load(
    data_dir: FilePath,
    *,
    batch_size: int = 32,
    unroll: int = 50,
    train_size: int | None = None,
    valid_size: int | None = None,
    test_size: int | None = None,
) -> Characters:
    """Makes the character-level Penn Treebank, by default as in the paper.

    The loss is the cross-entropy of the next character. All batches have the same
    shape, as required to carry a state from batch to batch; see `windows`.

    Args:
        data_dir: Folder, or parent of a folder `ptb`, of `ptb.train.txt`,
            `ptb.valid.txt` and `ptb.test.txt`, or of `ptb.char.train.txt` and so on,
            each with or without `.gz`.
        batch_size: Number of rows that are read side by side. Default: 32.
        unroll: Number of characters of a row in a batch. Default: 50.
        train_size: Number of the first training characters. Default: `None`, all.
        valid_size: As `train_size`, for the validation text. Default: `None`.
        test_size: As `train_size`, for the test text. Default: `None`.

    Returns:
        The texts in batches, with the sorted vocabulary of the whole training text.

    Raises:
        ValueError: If a text is too short, or has a symbol that is not trained on.

    Reference:
    - [Helfrich and Ye, 2020](https://arxiv.org/abs/1911.07964), section 4
    - [Mikolov et al., 2010](https://www.isca-archive.org/interspeech_2010/), the text
    """
    tf = require("tensorflow")
    sizes = {"train": train_size, "valid": valid_size, "test": test_size}
    check_sizes(**{f"{part}_size": n for part, n in sizes.items() if n is not None})
    vocabulary: list[str] = []
    parts = {}
    for part, size in sizes.items():
        text = _read(data_dir, part)
        vocabulary = vocabulary or sorted(set(text))
        new = sorted(set(text).difference(vocabulary))
        wanted = f"have a {part} text of symbols that the training text has"
        check(not new, "data_dir", wanted, new)
        number = {symbol: place for place, symbol in enumerate(vocabulary)}
        symbols = np.array([number[symbol] for symbol in text[:size]], "int32")
        data = tf.data.Dataset.from_tensor_slices(windows(symbols, batch_size, unroll))
        # The windows of all rows are a batch.
        parts[part] = data.batch(batch_size, True).prefetch(tf.data.AUTOTUNE)
    return Characters(**parts, vocabulary=vocabulary)


def _read(data_dir: FilePath, part: str) -> str:
    folders = (Path(data_dir), Path(data_dir, "ptb"))
    for folder, kind, end in product(folders, ("", "char."), ("", ".gz")):
        path = folder / f"ptb.{kind}{part}.txt{end}"
        if path.is_file():
            opener = gzip.open if end else open
            with naming(path), opener(path, "rt", encoding="utf-8") as file:
                text = file.read()
            if kind:  # A space follows each character, and `_` is a space.
                return text[::2].replace("_", " ")
            lines = text.removesuffix("\n").split("\n")
            return "".join(line.strip(" ") + "\n" for line in lines)
    raise FileNotFoundError(
        f"The folder must have the file `ptb.{part}.txt` or `ptb.char.{part}.txt`, of "
        "the Penn Treebank (LDC99T42) as T. Mikolov prepared it (simple-examples.tgz "
        f"of the RNNLM toolkit, ./data). Received: data_dir={os.fspath(data_dir)!r}"
    )
