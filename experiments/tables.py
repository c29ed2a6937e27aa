"""Markdown tables, as the examples and the report write them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keras_ortho.files import replacing


def table(
    titles: Iterable[str], rows: Iterable[Iterable[str]], right: bool = False
) -> list[str]:
    """Lays out a table as Markdown lines."""
    titles = list(titles)
    others = ("--:|" if right else "---|") * (len(titles) - 1)
    return [_line(titles), f"|---|{others}", *map(_line, rows)]


def write_table(
    path: Path, titles: Iterable[str], rows: Iterable[Iterable[str]], **layout: Any
) -> str:
    """Writes a table, laid out as by `table`, to a file, and returns its text."""
    text = "\n".join(table(titles, rows, **layout))
    with replacing(path) as aside:
        aside.write_text(text + "\n", "utf-8")
    return text


def cell(value: Any) -> str:
    """Formats a text, an integer, or another number to four decimals."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
