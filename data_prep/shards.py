"""Writes shards of records with their sidecars, and checks existing ones."""

import hashlib
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_ortho.audio.stft import NUM_BINS
from keras_ortho.executors import check_shared
from keras_ortho.files import file_sha256, json_sha256, read_bytes, read_json, replacing
from keras_ortho.locks import LOCK

from .corpus import Utterance
from .features import Features, extract
from .plan import LARGEST, Shard, Source, library_versions
from .storage import write_json

Sidecar = dict[str, Any]

LARGEST_SIDECAR = 2**26  # bytes: 671 for each of MOST_UTTERANCES


def write_shard(shard: Shard, root: Path, out: Path) -> Sidecar:
    """Writes a shard and its sidecar; the sidecar appears first."""
    import tensorflow as tf  # Imported here because the import takes seconds.

    utterances, rejected = [], []
    moments = np.zeros((2, NUM_BINS))
    try:
        with replacing(_record_path(shard, out)) as aside:
            with tf.io.TFRecordWriter(str(aside)) as writer:
                for source in shard.sources:
                    path = source.utterance.path
                    try:
                        features = extract(_read(root / path, source), name=path)
                    except ValueError as error:
                        reason = str(error).removesuffix(f" Received: {path}")
                        rejected.append({"path": path, "reason": reason})
                        continue
                    writer.write(encode(source.utterance, features))
                    utterances.append(_describe(source, features))
                    moments += _moments(features)
            contents = {
                "shard": _record_path(shard, out).name,
                "signature": shard.signature,
                "sha256": file_sha256(aside),
                "bytes": aside.stat().st_size,
                "utterances": utterances,
                "moments": moments.tolist(),
                "rejected": rejected,
            }
            sidecar = contents | {"sidecar_sha256": json_sha256(contents)}
            write_json(_sidecar_path(shard, out), sidecar, LARGEST_SIDECAR)
    except tf.errors.OpError as error:
        raise OSError(f"Cannot write {shard.stem}: {error.message}") from error
    return sidecar


def write_shared_shard(
    shard: Shard, root: Path, out: Path, versions: Mapping[str, str]
) -> Sidecar:
    """Writes a shard in a worker process, possibly on another machine."""
    check_shared(out / LOCK)
    own = library_versions()
    if own != versions:
        raise ValueError(
            f"The libraries of a worker on {platform.node()} must be those of the "
            f"command, {dict(versions)}. Received: {own}"
        )
    return write_shard(shard, root, out)


def find_shard(shard: Shard, out: Path) -> Sidecar | None:
    """Returns the sidecar of a shard if both are on disk and intact."""
    try:
        sidecar = read_json(_sidecar_path(shard, out), largest=LARGEST_SIDECAR)
        digest = file_sha256(_record_path(shard, out))
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(sidecar, dict) or sidecar.get("signature") != shard.signature:
        return None
    # The contents become part of the manifest, so a changed digit must be detected.
    contents = {key: sidecar[key] for key in sidecar if key != "sidecar_sha256"}
    if sidecar.get("sidecar_sha256") != json_sha256(contents):
        return None
    return sidecar if sidecar.get("sha256") == digest else None


def encode(utterance: Utterance, features: Features) -> bytes:
    """Serializes an utterance as a `tf.train.Example`, always to the same bytes."""
    import tensorflow as tf

    def feature(value: bytes) -> tf.train.Feature:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    frames = tf.train.Int64List(value=[len(features.log_power)])
    example = tf.train.Example(
        features=tf.train.Features(
            feature={
                "utterance_id": feature(utterance.id.encode()),
                "speaker": feature(utterance.speaker.encode()),
                "sentence": feature(utterance.sentence.encode()),
                "dialect": feature(utterance.dialect.encode()),
                "num_frames": tf.train.Feature(int64_list=frames),
                "log_power": feature(features.log_power.astype("<f4").tobytes()),
                "audio": feature(features.audio.astype("<i2").tobytes()),
            }
        )
    )
    # Otherwise protocol buffers do not define the order of a map's entries.
    return example.SerializeToString(deterministic=True)


def _read(path: Path, source: Source) -> bytes:
    data = read_bytes(path, LARGEST)
    if hashlib.sha256(data).hexdigest() != source.sha256:
        raise OSError(f"The file changed during the run; run again. Received: {path}")
    return data


def _describe(source: Source, features: Features) -> dict[str, str | int]:
    return {
        "id": source.utterance.id,
        "source": source.utterance.path,
        "source_sha256": source.sha256,
        "samples": len(features.audio),
        "frames": len(features.log_power),
    }


def _moments(features: Features) -> np.ndarray:
    frames = features.log_power.astype(np.float64)
    return np.stack([frames.sum(axis=0), (frames**2).sum(axis=0)])


def _record_path(shard: Shard, out: Path) -> Path:
    return out / f"{shard.stem}.tfrecord"


def _sidecar_path(shard: Shard, out: Path) -> Path:
    return out / f"{shard.stem}.json"
