"""Reports on a run: the files without a record, and a summary."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_ortho.files import replacing

from .corpus import Unused
from .splits import COMPLETE

REPORT = "report.csv"
COLUMNS = ("path", "reason")


def write_report(out: Path, unused: Iterable[Unused]) -> None:
    """Writes `report.csv`, the path of each file without a record and the reason."""
    with (
        replacing(out / REPORT) as aside,
        # A path need not be valid UTF-8.
        aside.open("w", encoding="utf-8", errors="backslashreplace", newline="") as f,
    ):
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([u.path, u.reason] for u in unused)


def is_report(path: Path) -> bool:
    """Returns whether a file is one that `write_report` wrote, or empty."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().rstrip("\n") in ("", ",".join(COLUMNS))


def list_rejected(rejected: Iterable[Unused]) -> str:
    """Returns the rejected files with the reasons, each on a new line."""
    lines = "".join(f"\n  {r.path}: {r.reason}" for r in rejected)
    return lines.encode(errors="backslashreplace").decode()


def summarize(
    manifest: Mapping[str, Any],
    *,
    written: int,
    rejected: Iterable[Unused],
    passed_over: int,
) -> str:
    """Summarizes a run in readable form."""
    mode = manifest["parameters"]["splits"]
    lines = []
    for name, split in manifest["splits"].items():
        utterances = split["num_utterances"]
        line = (
            f"{name}: {utterances} utterances, {split['seconds'] / 60:.1f} minutes, "
            f"at most {split['max_frames']} frames"
        )
        complete = COMPLETE.get(mode, {}).get(name, utterances)
        if utterances != complete:
            line += f" (the complete corpus has {complete} utterances)"
        lines.append(line)
    shards = sum(len(split["shards"]) for split in manifest["splits"].values())
    lines.append(f"shards: {written} written, {shards - written} unchanged")
    if passed_over:
        lines.append(
            f"passed over: {passed_over} copies or files that are no utterances; "
            f"see {REPORT}"
        )
    rejected = list(rejected)
    if rejected:
        lines.append(f"rejected: {len(rejected)}{list_rejected(rejected)}")
    return "\n".join(lines)
