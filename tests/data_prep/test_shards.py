import json
import math

import numpy as np
import pytest
import tensorflow as tf

from keras_ortho.data_prep.corpus import discover
from keras_ortho.data_prep.features import extract
from keras_ortho.data_prep.plan import Shard, hash_sources
from keras_ortho.data_prep.shards import encode, find_shard, write_shard
from keras_ortho.files import file_sha256
from tests.data_prep.corpora import contents, write_corpus, write_sphere


@pytest.fixture
def shard(tmp_path):
    """A corpus in `tmp_path/corpus`, and a plan for all of it in one shard."""
    write_corpus(tmp_path / "corpus", ("faaa0",))
    (tmp_path / "out").mkdir()
    return plan(tmp_path)


def plan(folder):
    corpus = discover(folder / "corpus")
    sources, unreadable = hash_sources(corpus.root, corpus.utterances)
    assert not unreadable
    return Shard("train", 0, 1, tuple(sources.values()), "0123456789abcdef" * 4)


def records(path):
    for serialized in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        example = tf.train.Example.FromString(serialized)
        yield {
            name: (value.bytes_list.value or value.int64_list.value)[0]
            for name, value in example.features.feature.items()
        }


def test_records_hold_the_features_raw(shard, tmp_path):
    write_shard(shard, tmp_path / "corpus", tmp_path / "out")
    found = list(records(tmp_path / "out" / f"{shard.stem}.tfrecord"))
    assert [r["utterance_id"] for r in found] == [
        *(b"faaa0_sa1", b"faaa0_si7", b"faaa0_sx1", b"faaa0_sx2")
    ]
    for record, source in zip(found, shard.sources, strict=True):
        path = tmp_path / "corpus" / source.utterance.path
        features = extract(path.read_bytes(), name="")
        assert record["speaker"] == b"faaa0"
        assert record["sentence"] == source.utterance.sentence.encode()
        assert record["dialect"] == b"dr1"
        assert record["num_frames"] == len(features.log_power)
        log_power = np.frombuffer(record["log_power"], "<f4").reshape(-1, 129)
        np.testing.assert_array_equal(log_power, features.log_power)
        audio = np.frombuffer(record["audio"], "<i2")
        np.testing.assert_array_equal(audio, features.audio)


def test_records_are_the_same_bytes_each_time(shard, tmp_path):
    source = shard.sources[0]
    path = tmp_path / "corpus" / source.utterance.path
    features = extract(path.read_bytes(), name="")
    assert len({encode(source.utterance, features) for _ in range(50)}) == 1


def test_sidecar(shard, tmp_path):
    sidecar = write_shard(shard, tmp_path / "corpus", tmp_path / "out")
    record_path = tmp_path / "out" / f"{shard.stem}.tfrecord"
    sidecar_path = tmp_path / "out" / f"{shard.stem}.json"
    assert sorted(contents(tmp_path / "out")) == [sidecar_path.name, record_path.name]
    assert json.loads(sidecar_path.read_bytes()) == sidecar
    assert sidecar["shard"] == record_path.name
    assert sidecar["sha256"] == file_sha256(record_path)
    assert sidecar["bytes"] == record_path.stat().st_size
    assert sidecar["rejected"] == []
    assert sidecar["utterances"][0] == {
        "id": "faaa0_sa1",
        "source": "dr1-faaa0/sa1.wav",
        "source_sha256": shard.sources[0].sha256,
        "samples": 500,
        "frames": 4 + 3,
    }


def test_the_moments_of_the_frames(shard, tmp_path):
    sidecar = write_shard(shard, tmp_path / "corpus", tmp_path / "out")
    found = records(tmp_path / "out" / f"{shard.stem}.tfrecord")
    powers = [np.frombuffer(record["log_power"], "<f4") for record in found]
    frames = np.concatenate(powers).reshape(-1, 129).T.astype(float)
    for sums, values in zip(sidecar["moments"], (frames, frames**2), strict=True):
        exact = [math.fsum(bin) for bin in values]
        # Of n terms, added one by one: n roundings of at most their sum of sizes.
        scale = len(values[0]) * np.finfo(float).eps * np.abs(values).sum(axis=1)
        assert (np.abs(np.array(sums) - exact) <= scale).all()


def test_the_sidecar_is_there_before_the_shard(shard, tmp_path, monkeypatch):
    out = tmp_path / "out"
    seen = []
    monkeypatch.setattr("keras_ortho.files.os.replace", lambda a, b: seen.append(b))
    write_shard(shard, tmp_path / "corpus", out)
    assert [path.suffix for path in seen] == [".json", ".tfrecord"]
    assert list(out.iterdir()) == []


def test_a_rejected_file_is_named_without_its_path_in_the_reason(tmp_path):
    paths = write_corpus(tmp_path / "corpus", ("faaa0",))
    (tmp_path / "out").mkdir()
    write_sphere(paths[1], np.zeros(3000, np.int16))
    sidecar = write_shard(plan(tmp_path), tmp_path / "corpus", tmp_path / "out")
    assert sidecar["rejected"] == [
        {"path": "dr1-faaa0/si7.wav", "reason": "Silent: all samples are 0."}
    ]
    assert len(sidecar["utterances"]) == 3


def test_find_shard(shard, tmp_path):
    out = tmp_path / "out"
    record_path, sidecar_path = (
        out / f"{shard.stem}{suffix}" for suffix in (".tfrecord", ".json")
    )
    assert find_shard(shard, out) is None
    sidecar = write_shard(shard, tmp_path / "corpus", out)
    assert find_shard(shard, out) == sidecar

    record, text = record_path.read_bytes(), sidecar_path.read_text()
    record_path.write_bytes(record[:-1])
    assert find_shard(shard, out) is None
    record_path.write_bytes(record[:100] + b"!" + record[101:])
    assert find_shard(shard, out) is None
    record_path.write_bytes(record)
    assert find_shard(shard, out) == sidecar
    # Another signature with the same first 16 digits.
    sidecar_path.write_text(text.replace(shard.signature, shard.signature[:-1] + "0"))
    assert find_shard(shard, out) is None
    sidecar_path.write_text(text.replace('"frames": 7', '"frames": 8'))
    assert find_shard(shard, out) is None
    for damaged in ("", "[" * 10000, "[]", text[:50], "\x80"):
        sidecar_path.write_bytes(damaged.encode("latin-1"))
        assert find_shard(shard, out) is None


def test_a_source_that_changed_since_it_was_hashed(shard, tmp_path):
    write_sphere(
        tmp_path / "corpus" / "dr1-faaa0" / "sx1.wav", np.arange(999, dtype="i2")
    )
    with pytest.raises(OSError, match=r"changed during the run.*sx1\.wav"):
        write_shard(shard, tmp_path / "corpus", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_shard_that_cannot_be_written(shard, tmp_path):
    with pytest.raises(OSError, match=f"Cannot write {shard.stem}"):
        write_shard(shard, tmp_path / "corpus", tmp_path / "nowhere")
