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


@pytest.fixture
def broken(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_missing_files_and_another_size(broken):
    shard = next(broken.glob("train-*.tfrecord"))
    shard.write_bytes(shard.read_bytes() + b"x")
    with pytest.raises(ValueError, match=f"{shard} must have"):
        utterances(broken, "train")
    shard.unlink()
    with pytest.raises(FileNotFoundError, match=str(shard)):
        read_manifest(broken)
    (broken / "manifest.json").unlink()
    with pytest.raises(FileNotFoundError, match=f"data_prep.*Received: {broken}"):
        read_manifest(broken)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (["version"], 1, "version 2, .* again .*keras-ortho-data"),
        (["format"], "other", "version 2, .* again .*keras-ortho-data"),
        (["splits"], [], "TypeError"),
        (["splits", "test"], {}, "KeyError: 'frames'"),
        (["splits", "test", "shards", 0], {}, "KeyError: 'file'"),
        (["splits", "test", "shards", 0, "bytes"], -1, "must have -1 bytes"),
        (["splits", "test", "frames", "fccc0_sx1"], "1", "TypeError"),
        (["splits", "test", "frames", "fccc0_sx1"], 10**12, "must agree with 'frames'"),
        (["splits", "test", "max_frames"], 10**12, "'max_frames' .* not 1000000000000"),
        (["splits", "test", "num_utterances"], 1, "'num_utterances' of 'test'"),
        (["splits", "test", "num_frames"], None, "'num_frames' of 'test'"),
        (["statistics"], {}, "KeyError: 'mean'"),
        (["statistics", "mean"], [0.0] * 128, "'mean' must hold 129 finite"),
        (["statistics", "mean"], [[0.0]] * 129, "'mean' must hold 129 finite"),
        (["statistics", "std"], [math.nan] * 129, "'std' must hold 129 finite"),
    ],
)
def test_a_damaged_manifest_is_named(broken, keys, value, message):
    path = broken / "manifest.json"
    manifest = place = json.loads(path.read_text())
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=f"Received: {path}: .*{message}"):
        read_manifest(broken)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{", "\x00", "[]", "null"])
def test_a_manifest_that_is_none(broken, text):
    path = broken / "manifest.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=str(path)):
        read_manifest(broken)


def test_more_frames_than_the_shards_can_hold(broken):
    path = broken / "manifest.json"
    manifest = json.loads(path.read_text())
    split = manifest["splits"]["test"]
    split["frames"][next(iter(split["frames"]))] = 10**6
    split["num_frames"] = sum(split["frames"].values())
    split["max_frames"] = max(split["frames"].values())
    path.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="do not fit into"):
        read_manifest(broken)


@pytest.mark.parametrize("place", [5, 1000])  # The length of a record, and its content.
def test_a_flipped_bit_in_a_record(broken, place):
    shard = next(broken.glob("test-*.tfrecord"))
    content = bytearray(shard.read_bytes())
    content[place] ^= 4
    shard.write_bytes(content)
    with pytest.raises(ValueError, match=f"shard is damaged. Received: {shard}"):
        list(utterances(broken, "test"))
