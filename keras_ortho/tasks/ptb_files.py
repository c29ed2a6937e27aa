"""Reads the files of the Penn Treebank, at the word or character level."""

import gzip
import os
from pathlib import Path

from keras_ortho.checks import check_choice
from keras_ortho.reading import naming

PARTS = ("train", "valid", "test")


def read(data_dir: str | os.PathLike[str], part: str) -> str:
    """Reads a part of the Penn Treebank."""
    check_choice("part", part, PARTS)
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
