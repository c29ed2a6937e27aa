import os
from collections import Counter

import pytest

from keras_ortho.data_prep import plan
from keras_ortho.data_prep.corpus import Unused, Utterance
from keras_ortho.data_prep.plan import (
    OWN_FILE,
    Shard,
    Source,
    hash_sources,
    plan_shards,
    shard_index,
)

NUM_SHARDS = {"train": 4, "valid": 2, "test": 1}


def utterance(number, **changes):
    fields = {
        "id": f"faaa0_sx{number}",
        "speaker": "faaa0",
        "sentence": f"sx{number}",
        "dialect": "dr1",
        "part": None,
        "path": f"dr1-faaa0/sx{number}.wav",
    }
    return Utterance(**(fields | changes))


UTTERANCES = [utterance(number) for number in range(40)]
SPLITS = {"train": UTTERANCES[:30], "valid": UTTERANCES[30:36], "test": UTTERANCES[36:]}
SOURCES = {u.id: Source(u, f"{n:064x}") for n, u in enumerate(UTTERANCES)}


def signatures(splits=SPLITS, sources=SOURCES, num_shards=NUM_SHARDS):
    return {s.stem: s.signature for s in plan_shards(splits, sources, num_shards)}


def test_every_utterance_is_in_one_shard_of_its_split():
    shards = plan_shards(SPLITS, SOURCES, NUM_SHARDS)
    for split, members in SPLITS.items():
        mine = [shard for shard in shards if shard.split == split]
        assert len(mine) == NUM_SHARDS[split]
        found = [source.utterance for shard in mine for source in shard.sources]
        assert sorted(found) == sorted(members)
        for shard in mine:
            assert list(shard.sources) == sorted(shard.sources, key=str)


def test_names():
    for shard in plan_shards(SPLITS, SOURCES, NUM_SHARDS):
        start = f"{shard.split}-0000{shard.index}-of-0000{NUM_SHARDS[shard.split]}-"
        assert shard.stem == start + shard.signature[:16]
        assert OWN_FILE.fullmatch(shard.stem + ".tfrecord")
        assert OWN_FILE.fullmatch(f"tmp-123-{shard.stem}.json")


def test_names_of_very_many_shards():
    shard = Shard("train", 123456, 1000000, (), "0123456789abcdef")
    assert OWN_FILE.fullmatch(shard.stem + ".tfrecord")


@pytest.mark.parametrize(
    "name",
    [
        "train.tfrecord",
        "train-00000-of-00002.tfrecord",
        "train-00000-of-00002-0123456789abcdef.tfrecord.bak",
        "timit-train-00000-of-00002-0123456789abcdef.tfrecord",
        "notes.json",
        ".lock",
    ],
)
def test_the_names_of_others(name):
    assert not OWN_FILE.fullmatch(name)


def test_the_shard_of_an_utterance_never_changes():
    # SHA-256 of "faem0_sx42" begins 87b68d5573b81efa.
    assert shard_index("faem0_sx42", 16) == 0x87B68D5573B81EFA % 16
    counts = Counter(shard_index(f"m{n:03d}0_sx1", 8) for n in range(8000))
    # Eight bins of 1000 expected, standard deviation 30.
    assert all(880 < counts[index] < 1120 for index in range(8))


@pytest.mark.parametrize("change", ["contents", "path", "speaker", "added", "removed"])
def test_a_change_touches_one_shard(change):
    splits, sources = dict(SPLITS), dict(SOURCES)
    changed = UTTERANCES[7]
    if change == "contents":
        sources[changed.id] = Source(changed, "f" * 64)
    elif change == "path":
        moved = utterance(7, path="dr2-faaa0/sx7.wav", dialect="dr2")
        replace(splits, sources, changed, moved)
    elif change == "speaker":
        replace(splits, sources, changed, utterance(7, speaker="fbbb0"))
    elif change == "added":
        new = utterance(99)
        splits["train"] = [*splits["train"], new]
        sources[new.id] = Source(new, "f" * 64)
    else:
        del sources[changed.id]
    before, after = set(signatures()), set(signatures(splits, sources))
    assert len(after) == len(before)
    assert len(before - after) == 1


def replace(splits, sources, old, new):
    splits["train"] = [new if u is old else u for u in splits["train"]]
    sources[old.id] = Source(new, sources[old.id].sha256)


@pytest.mark.parametrize("change", ["parameters", "version", "libraries", "count"])
def test_a_change_of_the_making_touches_all(change, monkeypatch):
    before = set(signatures())
    num_shards = dict(NUM_SHARDS)
    if change == "parameters":
        monkeypatch.setitem(plan.PARAMETERS, "hop_length", 64)
    elif change == "version":
        monkeypatch.setattr(plan, "FORMAT_VERSION", plan.FORMAT_VERSION + 1)
    elif change == "libraries":
        monkeypatch.setattr(plan, "library_versions", lambda: {"librosa": "0"})
    else:
        num_shards = {name: count + 1 for name, count in NUM_SHARDS.items()}
    assert not before & set(signatures(num_shards=num_shards))


def test_shards_without_utterances_are_left_out():
    few = {"train": UTTERANCES[:1], "valid": UTTERANCES[1:2], "test": UTTERANCES[2:3]}
    assert len(plan_shards(few, SOURCES, dict.fromkeys(SPLITS, 50))) == 3


def test_a_shard_that_would_be_too_large_is_an_error(monkeypatch):
    one = dict.fromkeys(SPLITS, 1)
    monkeypatch.setattr(plan, "MOST_UTTERANCES", 30)
    assert len(plan_shards(SPLITS, SOURCES, one)) == 3
    monkeypatch.setattr(plan, "MOST_UTTERANCES", 29)
    message = "`num_shards` must .* 29 .*Received: 1 for 'train', and 30 utterances"
    with pytest.raises(ValueError, match=message):
        plan_shards(SPLITS, SOURCES, one)


def test_hashing_names_what_cannot_be_read(tmp_path):
    chosen = [utterance(number) for number in range(4)]
    (tmp_path / "dr1-faaa0").mkdir()
    paths = [tmp_path / u.path for u in chosen]
    paths[0].write_bytes(b"abc")
    os.mkfifo(paths[1])
    paths[2].symlink_to(tmp_path / "nowhere")
    paths[3].mkdir()
    sources, unreadable = hash_sources(tmp_path, chosen)
    assert list(sources) == ["faaa0_sx0"]
    assert sources["faaa0_sx0"].sha256.startswith("ba7816bf")
    assert unreadable == [
        Unused("dr1-faaa0/sx1.wav", "Not a regular file"),
        Unused("dr1-faaa0/sx2.wav", "Cannot be read: No such file or directory"),
        Unused("dr1-faaa0/sx3.wav", "Not a regular file"),
    ]
