"""Writes JSON files."""

import json
from pathlib import Path
from typing import Any

from keras_ortho.files import replacing


def write_json(path: Path, value: Any, largest: int | None = None) -> None:
    """Writes a value as JSON, with the same bytes for the same value."""
    data = (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("ascii")
    if largest is not None and len(data) > largest:
        raise ValueError(
            f"{path.name} may have at most {largest} bytes: these are too many "
            f"utterances for one. Received: {len(data)} bytes"
        )
    with replacing(path) as aside:
        aside.write_bytes(data)
