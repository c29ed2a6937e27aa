"""Reads lists of recordings from CSV files."""

import csv
import io
import os

from .entries import Entry, read_text

REQUIRED = ("file", "speaker")
OPTIONAL = ("split", "id")


def read_csv(path: str | os.PathLike[str]) -> list[Entry]:
    """Reads a list of recordings from a CSV file.

    The first line names the columns, in any order: `file`, `speaker` and, optionally,
    `split` and `id`. Other columns are ignored.
    """
    text = io.StringIO(read_text(path), newline="")
    rows = csv.DictReader(text, skipinitialspace=True, strict=True)
    try:
        rows.fieldnames = [name.strip() for name in rows.fieldnames or ()]
        _check_columns(rows.fieldnames, f"{os.fspath(path)}, line 1")
        return [_entry(row, f"{os.fspath(path)}, line {rows.line_num}") for row in rows]
    except csv.Error as error:
        raise ValueError(
            "A list must be a CSV file. "
            f"Received: {os.fspath(path)}, line {rows.reader.line_num}: {error}"
        ) from error


def _check_columns(names: list[str], where: str) -> None:
    for name in (*REQUIRED, *OPTIONAL):
        if names.count(name) > 1:
            raise ValueError(
                f"A column must be there once. Received: {where}: {name!r} twice"
            )
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise ValueError(
            "A list is a folder of Kaldi's or a CSV file whose first line names the "
            "columns `file` and `speaker`, and maybe `split` and `id`; there is no "
            f"`{missing[0]}`. Received: {where}: {', '.join(names):.200}"
        )


def _entry(row: dict[str | None, str | None], where: str) -> Entry:
    values = [value for name, value in row.items() if name is not None]
    if None in row or None in values:
        raise ValueError(
            f"A row must have as many fields as the first line, {len(values)}. "
            f"Received: {where}"
        )
    # The file name is not stripped, since it may end with a space.
    fields = {name: (row[name] or "").strip() for name in OPTIONAL if name in row}
    return Entry(
        file=row["file"] or "",
        speaker=(row["speaker"] or "").strip(),
        split=fields.get("split"),
        id=fields.get("id"),
        where=where,
    )
