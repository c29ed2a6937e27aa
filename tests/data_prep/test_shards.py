from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from keras_ortho.data_prep import shards
from keras_ortho.data_prep.corpus import Unused, Utterance, discover
from keras_ortho.data_prep.features import extract
from keras_ortho.data_prep.shards import (
    encode,
    library_versions,
    plan_shards,
    read_shard,
    read_source,
    shard_index,
    write_shard,
)
from keras_ortho.files import LOCK
from tests.data_prep.corpora import contents, write_corpus, write_sphere

NUM_SHARDS = {"train": 4, "valid": 2, "test": 1}


def utterance(number, **changes):
    path = f"dr1-faaa0/sx{number}.wav"
    made = Utterance(f"faaa0_sx{number}", "faaa0", f"sx{number}", "dr1", None, path)
    return made._replace(**changes)


UTTERANCES = [utterance(number) for number in range(40)]
SPLITS = {"train": UTTERANCES[:30], "valid": UTTERANCES[30:36], "test": UTTERANCES[36:]}
DIGESTS = {u.id: f"{n:064x}" for n, u in enumerate(UTTERANCES)}


def files(splits=SPLITS, digests=DIGESTS, num_shards=NUM_SHARDS):
    return {shard.file for shard in plan_shards(splits, digests, num_shards)}


# --- Plans


def test_every_utterance_is_in_one_shard_of_its_split():
    planned = plan_shards(SPLITS, DIGESTS, NUM_SHARDS)
    for split, members in SPLITS.items():
        mine = [shard for shard in planned if shard.split == split]
        assert len(mine) == NUM_SHARDS[split]
        assert sorted(u for s in mine for u, _ in s.sources) == sorted(members)
        for index, shard in enumerate(mine):
            assert shard.file.startswith(f"{split}-0000{index}-of-0000{len(mine)}-")
            assert shard.sources == sorted(shard.sources)
    few = {"train": UTTERANCES[:1], "valid": UTTERANCES[1:2], "test": UTTERANCES[2:3]}
    assert len(plan_shards(few, DIGESTS, dict.fromkeys(SPLITS, 50))) == 3


def test_the_shard_of_an_utterance_never_changes():
    # SHA-256 of "faem0_sx42" begins 87b68d5573b81efa.
    assert shard_index("faem0_sx42", 16) == 0x87B68D5573B81EFA % 16
    counts = Counter(shard_index(f"m{n:03d}0_sx1", 8) for n in range(8000))
    # Eight bins of 1000 expected, standard deviation 30.
    assert all(880 < counts[index] < 1120 for index in range(8))


@pytest.mark.parametrize("change", ["contents", "path", "speaker", "added", "removed"])
def test_a_change_touches_one_shard(change):
    splits, digests = SPLITS | {"train": list(SPLITS["train"])}, dict(DIGESTS)
    if change == "contents":
        digests[UTTERANCES[7].id] = "f" * 64
    elif change == "path":
        splits["train"][7] = utterance(7, path="dr2-faaa0/sx7.wav", dialect="dr2")
    elif change == "speaker":
        splits["train"][7] = utterance(7, speaker="fbbb0")
    elif change == "added":
        splits["train"].append(utterance(99))
        digests[utterance(99).id] = "f" * 64
    else:
        del digests[UTTERANCES[7].id]
    before, after = files(), files(splits, digests)
    assert len(after) == len(before)
    assert len(before - after) == 1


@pytest.mark.parametrize("change", ["parameters", "version", "libraries", "count"])
def test_a_change_of_the_making_touches_all(change, monkeypatch):
    before, num_shards = files(), NUM_SHARDS
    if change == "parameters":
        monkeypatch.setitem(shards.PARAMETERS, "hop_length", 64)
    elif change == "version":
        monkeypatch.setattr(shards, "FORMAT_VERSION", shards.FORMAT_VERSION + 1)
    elif change == "libraries":
        monkeypatch.setattr(shards, "library_versions", lambda: {"librosa": "0"})
    else:
        num_shards = {name: count + 1 for name, count in NUM_SHARDS.items()}
    assert not before & files(num_shards=num_shards)


# --- Files


@pytest.fixture
def folders(tmp_path):
    """A corpus of a speaker, and a folder for its records."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LOCK).touch()
    write_corpus(tmp_path / "corpus", ("faaa0",))
    return tmp_path / "corpus", tmp_path / "out"


def plan(corpus):
    members = discover(corpus).utterances
    digests = {u.id: read_source(corpus / u.path)[1] for u in members}
    splits = {"train": members, "valid": [], "test": []}
    (shard,) = plan_shards(splits, digests, dict.fromkeys(splits, 1))
    return shard


def test_records_hold_the_features_raw(folders):
    corpus, out = folders
    shard = plan(corpus)
    found, samples = write_shard(shard, *folders, library_versions()), 0
    assert list(contents(out)) == [shard.file]
    assert repr(read_shard(shard, *folders)) == repr(found)
    dataset = tf.data.TFRecordDataset(str(out / shard.file)).as_numpy_iterator()
    for serialized, (source, _) in zip(dataset, shard.sources, strict=True):
        example = tf.train.Example.FromString(serialized)
        record = {
            name: (value.bytes_list.value or value.int64_list.value)[0]
            for name, value in example.features.feature.items()
        }
        features = extract((corpus / source.path).read_bytes(), name="")
        assert record["utterance_id"].decode() == source.id
        assert record["speaker"] == b"faaa0"
        assert record["sentence"].decode() == source.sentence
        assert record["dialect"] == b"dr1"
        assert (
            record["num_frames"] == len(features.log_power) == found.frames[source.id]
        )
        log_power = np.frombuffer(record["log_power"], "<f4").reshape(-1, 129)
        np.testing.assert_array_equal(log_power, features.log_power)
        audio = np.frombuffer(record["audio"], "<i2")
        np.testing.assert_array_equal(audio, features.audio)
        assert len({encode(source, features) for _ in range(50)}) == 1
        samples += len(audio)
    assert (found.samples, found.rejected) == (samples, [])


def test_a_rejected_file_is_named_without_its_path_in_the_reason(folders):
    path = "dr1-faaa0/si7.wav"
    write_sphere(folders[0] / path, np.zeros(3000, np.int16))
    shard = plan(folders[0])
    found = write_shard(shard, *folders, library_versions())
    assert repr(read_shard(shard, *folders)) == repr(found)
    assert found.rejected == [Unused(path, "Silent: all samples are 0.")]
    assert len(found.frames) == 3


def test_a_missing_or_damaged_shard_is_found_out(folders):
    shard = plan(folders[0])
    path = folders[1] / shard.file
    assert read_shard(shard, *folders) is None
    write_shard(shard, *folders, library_versions())
    data = path.read_bytes()
    ends = [len(data) // 4, len(data) - 1]
    dataset = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    ends.append(len(next(dataset)) + 16)  # Whole records, but not all.
    for damaged in (*(data[:end] for end in ends), data[:100] + b"!" + data[101:], b""):
        path.write_bytes(damaged)
        assert read_shard(shard, *folders) is None


def test_what_cannot_be_written(folders):
    corpus, out = folders
    shard = plan(corpus)
    with pytest.raises(ValueError, match="libraries of a worker on .* Received: {'li"):
        write_shard(shard, corpus, out, {"librosa": "0"})
    with pytest.raises(FileNotFoundError, match="A worker on .* does not see"):
        write_shard(shard, corpus, out / "elsewhere", library_versions())
    write_sphere(corpus / "dr1-faaa0" / "sx1.wav", np.arange(999, dtype="i2"))
    with pytest.raises(OSError, match=r"changed during the run.*sx1\.wav"):
        write_shard(shard, corpus, out, library_versions())
    assert not contents(out)
