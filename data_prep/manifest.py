"""What the manifest says of the shards."""

from collections.abc import Mapping, Sequence
from typing import Any

from keras_ortho.audio.stft import SAMPLE_RATE
from keras_ortho.tasks.timit_records import FORMAT, FORMAT_VERSION

from .corpus import Unused
from .plan import PARAMETERS, Shard, library_versions
from .report import list_rejected
from .shards import Sidecar
from .splits import SPLITS


def build_manifest(
    shards: Sequence[tuple[Shard, Sidecar]],
    rejected: Sequence[Unused],
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    """The contents of the manifest: the same for the same records.

    Args:
        shards: The shards, by split and index, with their sidecars.
        rejected: Files that should have made a record and could not.
        parameters: How the corpus was divided.

    Returns:
        A value for `manifest.json`, without times and absolute paths.

    Raises:
        ValueError: If a split has no record.
    """
    splits = {}
    for name in SPLITS:
        sidecars = [sidecar for shard, sidecar in shards if shard.split == name]
        utterances = [u for sidecar in sidecars for u in sidecar["utterances"]]
        if not utterances:
            raise ValueError(
                f"No usable utterance for {name!r}. Received: "
                f"{len(rejected)} rejected files{list_rejected(rejected)}"
            )
        splits[name] = {
            "shards": [
                {"file": s["shard"], "sha256": s["sha256"], "bytes": s["bytes"]}
                for s in sidecars
            ],
            "frames": {u["id"]: u["frames"] for u in utterances},
            "num_utterances": len(utterances),
            "num_frames": sum(u["frames"] for u in utterances),
            "max_frames": max(u["frames"] for u in utterances),
            "seconds": sum(u["samples"] for u in utterances) / SAMPLE_RATE,
        }
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "parameters": {**PARAMETERS, **parameters},
        "library_versions": library_versions(),
        "splits": splits,
        "rejected": [{"path": r.path, "reason": r.reason} for r in rejected],
    }
