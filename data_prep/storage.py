"""JSON files, and hashes of their values."""

import hashlib
import json
from pathlib import Path
from typing import Any

from keras_ortho.files import replacing


def write_json(path: Path, value: Any, largest: int | None = None) -> None:
    """Writes a value as JSON, the same bytes for the same value.

    ValueError if they are more than `largest`, as what is written must be read again.
    """
    data = (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("ascii")
    if largest is not None and len(data) > largest:
        raise ValueError(
            f"{path.name} may have at most {largest} bytes: these are too many "
            f"utterances for one. Received: {len(data)} bytes"
        )
    with replacing(path) as aside:
        aside.write_bytes(data)


def json_sha256(value: Any) -> str:
    """SHA-256 of a value's JSON, in hexadecimal; ValueError if it has none."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
