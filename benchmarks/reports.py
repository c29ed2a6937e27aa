"""Reports of the benchmarks: a table, and a JSON file that describes the machine."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from machine import machine

from keras_ortho.files import replacing


def write_report(path: Path, found: dict[str, Any], lines: Iterable[str] = ()) -> None:
    """Writes the results and the machine to `<path>.json`, and a table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path.with_name(f"{path.name}.json")) as aside:
        aside.write_text(json.dumps({**machine(), **found}, indent=1) + "\n")
    text = "".join(f"{line}\n" for line in lines)
    if text:
        with replacing(path.with_name(f"{path.name}.md")) as aside:
            aside.write_text(text, "utf-8")
