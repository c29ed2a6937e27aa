"""Builds the manifest, which describes the shards."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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
    """Builds the contents of the manifest, which depend only on the records."""
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
        "statistics": _statistics(
            [sidecar for shard, sidecar in shards if shard.split == "train"],
            splits["train"]["num_frames"],
        ),
        "rejected": [{"path": r.path, "reason": r.reason} for r in rejected],
    }


def _statistics(sidecars: Sequence[Sidecar], frames: int) -> dict[str, list[float]]:
    # Summed in the order of the shards, so that the bytes are always the same.
    totals = np.sum([sidecar["moments"] for sidecar in sidecars], axis=0)
    mean, mean_square = totals / frames
    # Rounding may make the variance of a constant bin negative.
    variance = np.maximum(mean_square - mean**2, 0)
    return {"mean": mean.tolist(), "std": np.sqrt(variance).tolist()}
