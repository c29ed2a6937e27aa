"""Tables in Markdown: what the examples and the report write."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keras_ortho.files import replacing


def table(
    titles: Iterable[str], rows: Iterable[Iterable[str]], right: bool = False
) -> list[str]:
    """Lays out a table.

    Args:
        titles: The titles of the columns.
        rows: The cells of each row.
        right: Whether all columns but the first are flush right. Default: `False`.

    Example:
    >>> table(["model", "loss"], [["LSTM", "0.25"]])
    ['| model | loss |', '|---|---|', '| LSTM | 0.25 |']
    """
    titles = list(titles)
    others = ("--:|" if right else "---|") * (len(titles) - 1)
    return [_line(titles), f"|---|{others}", *map(_line, rows)]


def write_table(
    path: Path, titles: Iterable[str], rows: Iterable[Iterable[str]], **layout: Any
) -> str:
    """Writes a table as `table` lays it out to a file, and gives its text."""
    text = "\n".join(table(titles, rows, **layout))
    with replacing(path) as aside:
        aside.write_text(text + "\n")
    return text


def check_own(path: Path, words: str) -> None:
    """Refuses to replace a file that is another's.

    Args:
        path: The file, which need not be there.
        words: What is in each of our own.

    Raises:
        ValueError: If it has not these words.
    """
    if path.exists() and words not in path.read_text("utf-8", errors="replace"):
        raise ValueError(
            f"{path.name} must be one that this command has written, to be replaced. "
            f"Received: {path}"
        )


def cell(value: Any) -> str:
    """Writes a text or an integer, or another number to four places.

    Example:
    >>> cell("BNP"), cell(12345), cell(0.5)
    ('BNP', '12,345', '0.5000')
    """
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
