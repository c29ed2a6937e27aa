"""Reads the files of the Penn Treebank, at the word or character level."""

import gzip
import os
import zlib
from pathlib import Path

from keras_ortho.checks import check_choice
from keras_ortho.reading import check_size, fill

PARTS = ("train", "valid", "test")
LARGEST = 2**24  # bytes of a file, unpacked; the largest has 10 034 964


def from_words(text: str) -> str:
    r"""Converts a word-level file, one sentence per line, to characters.

    Args:
        text: Contents of the file.

    Returns:
        Its lines without the spaces around them, each ending in a newline.

    Example:
    >>> from_words(" no it was n't \n <unk> \n")
    "no it was n't\n<unk>\n"
    """
    lines = text.split("\n")
    if not lines[-1]:  # What follows the last newline.
        lines.pop()
    return "".join(line.strip(" ") + "\n" for line in lines)


def from_spaced(text: str) -> str:
    r"""Converts a character-level file to characters.

    Args:
        text: Contents of the file: a space follows each character, including newlines,
            and `_` stands for a space.

    Returns:
        The same as `from_words` of the word-level file.

    Raises:
        ValueError: If the text does not have this form.

    Example:
    >>> from_spaced("n o _ i t \n b u t \n ")
    "no it\nbut\n"
    """
    symbols, between = text[::2], text[1::2]
    place = len(between) - len(between.lstrip(" "))
    if place < len(between):
        raise ValueError(
            "`text` must have a space after each character. "
            f"Received: {text[2 * place : 2 * place + 40]!r}"
        )
    return symbols.replace("_", " ")


def read(data_dir: str | os.PathLike[str], part: str) -> str:
    """Reads a part of the Penn Treebank.

    Args:
        data_dir: Folder that holds, directly or in a subfolder `ptb`, the word-level
            `ptb.train.txt`, `ptb.valid.txt` and `ptb.test.txt`; or the character-level
            `ptb.char.*.txt`, with or without `.gz`.
        part: `"train"`, `"valid"` or `"test"`.

    Returns:
        The characters, with a newline at the end of each sentence. Mikolov's files
        have 5 017 482, 393 042 and 442 423 of them, of 50 kinds.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If there is no such part, or a file has another format.
    """
    check_choice("part", part, PARTS)
    folder = Path(data_dir)
    for place in (folder, folder / "ptb"):
        words, spaced = place / f"ptb.{part}.txt", place / f"ptb.char.{part}.txt"
        packed = spaced.with_name(spaced.name + ".gz")
        if words.is_file():
            return from_words(_text(words))
        for path in (spaced, packed):
            if path.is_file():
                return _characters(path)
    raise FileNotFoundError(
        f"There is no `ptb.{part}.txt` and no `ptb.char.{part}.txt[.gz]` in the folder "
        f"{folder}. They are the Penn Treebank as T. Mikolov prepared it "
        "(simple-examples.tgz of the RNNLM toolkit, ./data). The text is licensed by "
        "the Linguistic Data Consortium (LDC99T42, https://catalog.ldc.upenn.edu) and "
        "is not downloaded automatically: put the files in a folder, and pass it as "
        f"`data_dir`. Received: data_dir={str(data_dir)!r}"
    )


def _characters(path: Path) -> str:
    try:
        return from_spaced(_text(path))
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path}: {error}") from error


def _text(path: Path) -> str:
    """Reads the text of a file, gzipped or not."""
    check_size(path, LARGEST)
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            content, more = fill(file, LARGEST)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(
            f"The gzip file is truncated or damaged. Received: {path}: {error}"
        ) from error
    if more:
        raise ValueError(
            f"The file must have at most {LARGEST} bytes when unpacked. Received: "
            f"{path}"
        )
    try:
        text = content.tobytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"The text must be encoded in UTF-8. Received: {path}: {error}"
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")
