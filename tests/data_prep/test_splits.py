import pytest

from keras_ortho.data_prep.corpus import Utterance
from keras_ortho.data_prep.splits import (
    COMPLETE,
    CORE_TEST_SPEAKERS,
    DEVELOPMENT_SPEAKERS,
    MODES,
    SPLITS,
    resolve_mode,
    split,
    split_listed,
)

SENTENCES = ("sa1", "sa2", "si1", "si2", "si3", "sx1", "sx2", "sx3", "sx4", "sx5")


def utterances(speakers, part=None):
    return [
        Utterance(f"{s}_{sentence}", s, sentence, "dr1", part, f"{s}/{sentence}.wav")
        for s in sorted(speakers)
        for sentence in SENTENCES
    ]


@pytest.fixture(scope="module")
def complete():
    """630 speakers: 462 in TRAIN, seven with "sa" in their names, 168 in TEST."""
    test = CORE_TEST_SPEAKERS | DEVELOPMENT_SPEAKERS
    test |= {f"m{number:03d}9" for number in range(94)}
    train = {f"f{number:03d}0" for number in range(130)}
    train |= {f"m{number:03d}0" for number in range(325)}
    train |= {"fsah0", "fsag0", "fsak0", "msat0", "msat1", "mesa0", "mssa0"}
    assert (len(train), len(test), len(train & test)) == (462, 168, 0)
    return utterances(train, "train") + utterances(test, "test")


@pytest.mark.parametrize("mode", ["timit", "wisdom"])
def test_counts_of_the_complete_corpus(complete, mode):
    assert len(complete) == 6300
    splits = split(complete, mode)
    assert {name: len(members) for name, members in splits.items()} == COMPLETE[mode]
    assert {u.speaker for u in splits["valid"]} == DEVELOPMENT_SPEAKERS
    assert {u.speaker for u in splits["test"]} == CORE_TEST_SPEAKERS
    assert {u.part for u in splits["train"]} == {"train"}


@pytest.mark.parametrize("mode", MODES)
def test_no_sa_sentence_and_no_speaker_twice(complete, mode):
    splits = split(complete, mode)
    speakers = [{u.speaker for u in splits[name]} for name in SPLITS]
    assert sum(map(len, speakers)) == len(set.union(*speakers))
    assert not any(u.sentence.startswith("sa") for name in SPLITS for u in splits[name])


@pytest.mark.parametrize(
    ("women", "men", "expected"),
    [
        (3, 2, {"train": 3, "valid": 1, "test": 1}),
        (4, 12, {"train": 10, "valid": 3, "test": 3}),
        (20, 100, {"train": 88, "valid": 16, "test": 16}),
    ],
)
def test_an_eighth_of_the_women_and_of_the_men(women, men, expected):
    speakers = [f"f{n:03d}0" for n in range(women)] + [f"m{n:03d}0" for n in range(men)]
    splits = split(utterances(speakers), "speakers")
    found = {name: {u.speaker for u in members} for name, members in splits.items()}
    assert {name: len(members) for name, members in found.items()} == expected
    for sex, number in (("f", women), ("m", men)):
        held_out = sum(s.startswith(sex) for s in found["test"])
        assert held_out == (max(1, int(number / 8 + 0.5)) if number > 2 else 0)
        assert held_out == sum(s.startswith(sex) for s in found["valid"])


def test_the_seed_chooses_the_speakers_and_nothing_else_does():
    everyone = utterances([f"f{n:03d}0" for n in range(40)])
    tests = [
        frozenset(u.speaker for u in split(everyone, "speakers", seed=s)["test"])
        for s in range(10)
    ]
    assert len(set(tests)) == 10
    reordered = split(everyone[::-1], "speakers", seed=3)
    assert {u.speaker for u in reordered["test"]} == tests[3]
    # Literal values: the digests that order the speakers must never change.
    splits = split(utterances([f"m{n:03d}0" for n in range(6)]), "speakers", seed=0)
    assert {u.speaker for u in splits["valid"]} == {"m0010"}
    assert {u.speaker for u in splits["test"]} == {"m0000"}


def test_auto(complete):
    assert resolve_mode("auto", complete) == "timit"
    assert resolve_mode("auto", [u for u in complete if u.part == "train"]) == (
        "speakers"
    )
    assert resolve_mode("wisdom", []) == "wisdom"
    assert split(complete, "auto") == split(complete, "timit")
    with pytest.raises(ValueError, match="Received: 'random'"):
        resolve_mode("random", complete)


def test_an_empty_split_is_an_error(complete):
    train = [u for u in complete if u.part == "train"]
    with pytest.raises(ValueError, match=r"needs the TRAIN and TEST.*valid, test"):
        split(train, "timit")
    with pytest.raises(ValueError, match=r"needs three men or three women.*test"):
        split(utterances(["faaa0", "fbbb0", "maaa0"]), "speakers")


# --- Splits of a list


def listed(speakers, parts=(None,)):
    return [
        # "sa" begins a sentence that TIMIT's splits leave out.
        Utterance(f"sa-{s}-{n}", s, "", "", part, f"{s}/{n}.wav")
        for s in speakers
        for n, part in enumerate(parts)
    ]


def test_as_the_list_says():
    given = listed(["ann", "ben"], ["train", "train", "test", "valid"])
    with pytest.warns(UserWarning, match="Received: 2 of 2 speakers in several"):
        splits, mode = split_listed(given, seed=5)
    assert mode == "list"
    assert {n: [u.path for u in members] for n, members in splits.items()} == {
        "train": ["ann/0.wav", "ann/1.wav", "ben/0.wav", "ben/1.wav"],
        "valid": ["ann/3.wav", "ben/3.wav"],
        "test": ["ann/2.wav", "ben/2.wav"],
    }


@pytest.mark.parametrize("mode", ["auto", "speakers"])
@pytest.mark.parametrize(("count", "share"), [(3, 1), (11, 1), (12, 2), (251, 31)])
def test_speakers_of_a_list_by_seed(mode, count, share):
    speakers = [f"s{n}" for n in range(count)]
    parts = (None, None) if mode == "auto" else SPLITS
    splits, found = split_listed(listed(speakers, parts), mode, seed=0)
    assert found == "speakers"
    by_split = [{u.speaker for u in splits[name]} for name in SPLITS]
    assert [len(each) for each in by_split] == [count - 2 * share, share, share]
    assert set.union(*by_split) == set(speakers)
    assert sum(map(len, splits.values())) == len(parts) * count


def test_lists_that_cannot_be_divided():
    with pytest.raises(ValueError, match="needs three speakers: nothing for valid, t"):
        split_listed(listed(["ann", "ben"]))
    with pytest.raises(ValueError, match="every split: nothing for valid. Received: 2"):
        split_listed(listed(["ann"], ["train", "test"]))
    with pytest.raises(ValueError, match="`mode` must be .* Received: 'wisdom'"):
        split_listed(listed(["a", "b", "c"]), "wisdom")
