import json
import math

import numpy as np
import pytest

from keras_ortho.data_prep.pipeline import prepare
from keras_ortho.tasks.timit_records import Record, read_manifest, utterances
from tests.data_prep.corpora import write_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("timit")
    write_corpus(path / "corpus")
    prepare(path / "corpus", path / "records", mode="speakers")
    return path / "records"


def test_utterances(folder):
    records = list(utterances(folder, "train"))
    ids = list(read_manifest(folder)["splits"]["train"]["frames"])
    assert sorted(record.id for record in records) == ids
    for record in records:
        assert isinstance(record, Record)
        assert record.id.split("_")[0] == record.speaker
        assert record.log_power.dtype == np.float32
        assert record.audio.dtype == np.int16
        frames = -(-len(record.audio) // 128) + 3
        assert record.log_power.shape == (frames, 129)


def test_split_of_utterances(folder):
    with pytest.raises(ValueError, match="Received: split='dev'"):
        utterances(folder, "dev")


@pytest.fixture
def broken(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_missing_files_and_another_size(broken):
    shard = next(broken.glob("train-*.tfrecord"))
    shard.write_bytes(shard.read_bytes() + b"x")
    with pytest.raises(ValueError, match=f"must have .*Received: {shard}"):
        utterances(broken, "train")
    shard.unlink()
    with pytest.raises(FileNotFoundError, match=f"missing. Received: {shard}"):
        read_manifest(broken)
    (broken / "manifest.json").unlink()
    with pytest.raises(FileNotFoundError, match=f"data_prep.*Received: {broken}"):
        read_manifest(broken)


@pytest.mark.parametrize("change", [{"version": 1}, {"format": "other"}])
def test_a_manifest_of_another_format(broken, change):
    path = broken / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=r"version 2: .* again .*keras-ortho-data"):
        read_manifest(broken)


def without(*keys):
    def change(manifest):
        place = manifest
        for key in keys[:-1]:
            place = place[key]
        del place[keys[-1]]
        return manifest

    return change


def with_value(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(manifest):
        place = manifest
        for key in keys:
            place = place[key]
        place[last] = value
        return manifest

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda manifest: [manifest], "must contain a JSON object"),
        (lambda manifest: None, "must contain a JSON object"),
        (without("splits"), "must describe the splits"),
        (without("splits", "valid"), "must describe the splits"),
        (with_value("splits", []), "must describe the splits"),
        (with_value("splits", "test", []), "a split must be|Each split must be"),
        (without("splits", "test", "shards"), "`shards` must list files"),
        (
            with_value("splits", "test", "shards", 0, "file", "../a.tfrecord"),
            "`shards`",
        ),
        (with_value("splits", "test", "shards", 0, "file", "/a.tfrecord"), "`shards`"),
        (with_value("splits", "test", "shards", 0, "bytes", "1"), "`shards`"),
        (with_value("splits", "test", "shards", 0, "bytes", -1), "`shards`"),
        (without("splits", "test", "frames"), "`frames` must"),
        (
            with_value("splits", "test", "frames", "fccc0_sx1", 1.5),
            "`frames` must",
        ),
        (
            with_value("splits", "test", "frames", "fccc0_sx1", 10**12),
            "must agree with `frames`",
        ),
        (without("splits", "test", "max_frames"), "`max_frames` .* Received: None"),
        (with_value("splits", "test", "max_frames", 10**12), "`max_frames`"),
        (with_value("splits", "test", "num_utterances", 1), "`num_utterances`"),
        (with_value("splits", "test", "num_frames", 1), "`num_frames`"),
        (without("statistics"), "`statistics` must contain 'mean' and 'std'"),
        (with_value("statistics", []), "`statistics`"),
        (without("statistics", "std"), "`statistics`"),
        (with_value("statistics", "mean", [0.0] * 128), "`statistics`"),
        (with_value("statistics", "mean", [[0.0]] * 129), "`statistics`"),
        (with_value("statistics", "mean", [math.nan] * 129), "finite numbers in dB"),
        (with_value("statistics", "std", [10**400] * 129), "`statistics`"),
        (with_value("statistics", "std", 0, -0.5), "not be negative. Received: -0.5"),
    ],
)
def test_a_damaged_manifest_is_named(broken, change, message):
    path = broken / "manifest.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(ValueError, match=message) as error:
        read_manifest(broken)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{", "\x00"])
def test_a_manifest_that_is_no_json(broken, text):
    (broken / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match=r"manifest\.json must contain JSON"):
        read_manifest(broken)


def test_more_frames_than_the_shards_can_hold(broken):
    path = broken / "manifest.json"
    manifest = json.loads(path.read_text())
    split = manifest["splits"]["test"]
    name = next(iter(split["frames"]))
    split["frames"][name] = 10**6
    split["num_frames"] = sum(split["frames"].values())
    split["max_frames"] = max(split["frames"].values())
    path.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="do not fit into shards"):
        read_manifest(broken)


def test_a_record_longer_than_its_shard(broken):
    shard = next(broken.glob("test-*.tfrecord"))
    content = bytearray(shard.read_bytes())
    content[:8] = (2**40).to_bytes(8, "little")
    shard.write_bytes(content)
    with pytest.raises(ValueError, match=f"whole records. Received: {shard}"):
        read_manifest(broken)


def test_a_flipped_bit_in_a_record(broken):
    shard = next(broken.glob("test-*.tfrecord"))
    content = bytearray(shard.read_bytes())
    content[1000] ^= 4
    shard.write_bytes(content)
    read_manifest(broken)
    with pytest.raises(ValueError, match=f"shard is damaged. Received: {shard}"):
        list(utterances(broken, "test"))
