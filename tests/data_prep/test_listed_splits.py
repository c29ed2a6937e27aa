import pytest

from keras_ortho.data_prep.corpus import Utterance
from keras_ortho.data_prep.listed_splits import split_listed
from keras_ortho.data_prep.splits import SPLITS


def utterances(speakers, parts=(None,)):
    return [
        # "sa" begins a sentence that TIMIT's splits leave out.
        Utterance(f"sa-{s}-{n}", s, "", "", part, f"{s}/{n}.wav")
        for s in speakers
        for n, part in enumerate(parts)
    ]


def test_as_the_list_says():
    # The same speakers in all splits: that is for the list to decide.
    given = utterances(["ann", "ben"], ["train", "train", "test", "valid"])
    splits, mode = split_listed(given, seed=5)
    assert mode == "list"
    assert {n: [u.path for u in members] for n, members in splits.items()} == {
        "train": ["ann/0.wav", "ann/1.wav", "ben/0.wav", "ben/1.wav"],
        "valid": ["ann/3.wav", "ben/3.wav"],
        "test": ["ann/2.wav", "ben/2.wav"],
    }


@pytest.mark.parametrize("mode", ["auto", "speakers"])
def test_speakers_by_seed_whatever_they_are_called(mode):
    speakers = ["jürgen", "f1", "m1", "p225", "103", "x"]
    parts = (None, None) if mode == "auto" else SPLITS
    splits, found = split_listed(utterances(speakers, parts), mode, seed=0)
    assert found == "speakers"
    by_split = {n: {u.speaker for u in members} for n, members in splits.items()}
    assert {n: len(members) for n, members in by_split.items()} == {
        "train": 4,
        "valid": 1,
        "test": 1,
    }
    assert set.union(*by_split.values()) == set(speakers)
    assert sum(map(len, splits.values())) == len(parts) * len(speakers)


@pytest.mark.parametrize(("speakers", "share"), [(3, 1), (11, 1), (12, 2), (251, 31)])
def test_an_eighth(speakers, share):
    splits, _ = split_listed(utterances([f"s{n}" for n in range(speakers)]))
    sizes = [len({u.speaker for u in splits[name]}) for name in SPLITS]
    assert sizes == [speakers - 2 * share, share, share]


def test_the_seed_chooses_the_speakers_and_nothing_else_does():
    everyone = utterances([f"s{n}" for n in range(40)])
    tests = [
        frozenset(u.speaker for u in split_listed(everyone, seed=seed)[0]["test"])
        for seed in range(10)
    ]
    assert len(set(tests)) == 10
    reordered, _ = split_listed(everyone[::-1], seed=3)
    assert {u.speaker for u in reordered["test"]} == tests[3]


def test_what_cannot_be_divided():
    with pytest.raises(
        ValueError, match="needs three speakers: nothing for valid, test"
    ):
        split_listed(utterances(["ann", "ben"]))
    with pytest.raises(
        ValueError, match="every split: nothing for valid. Received: 2 f"
    ):
        split_listed(utterances(["ann"], ["train", "test"]))
    for mode in ("timit", "wisdom", "list"):
        with pytest.raises(ValueError, match=f"`mode` must be .* Received: '{mode}'"):
            split_listed(utterances(["a", "b", "c"]), mode)


def test_speakers_in_several_splits_are_told():
    found = utterances(["ann", "ben"], ["train", "test"])
    found += utterances(["cleo"], ["valid"])
    with pytest.warns(UserWarning, match="Received: 2 of 3 speakers in several"):
        splits, _ = split_listed(found)
    assert [len(splits[name]) for name in SPLITS] == [2, 1, 2]
