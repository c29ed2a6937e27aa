import json

import numpy as np
import pytest

from data_prep.pipeline import prepare
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
    with pytest.raises(ValueError, match="Received: 'dev'"):
        utterances(folder, "dev")


@pytest.fixture
def broken(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_a_missing_manifest(broken):
    (broken / "manifest.json").unlink()
    with pytest.raises(FileNotFoundError, match=f"data_prep.*Received: {broken}"):
        read_manifest(broken)


def test_a_missing_shard(broken):
    shard = next(broken.glob("test-*.tfrecord"))
    shard.unlink()
    with pytest.raises(FileNotFoundError, match=f"missing. Received: {shard}"):
        read_manifest(broken)


def test_a_shard_of_another_size(broken):
    shard = next(broken.glob("train-*.tfrecord"))
    shard.write_bytes(shard.read_bytes() + b"x")
    with pytest.raises(ValueError, match=f"must have the .*Received: {shard}"):
        utterances(broken, "train")


@pytest.mark.parametrize("change", [{"version": 2}, {"format": "other"}])
def test_a_manifest_of_another_format(broken, change):
    path = broken / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=r"format 'keras-ortho-timit', version 1\."):
        read_manifest(broken)
