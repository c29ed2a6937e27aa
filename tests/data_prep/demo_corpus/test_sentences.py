"""What the speakers read."""

from collections import Counter

import numpy as np
import pytest

from keras_ortho.data_prep.demo_corpus.sentences import (
    MAX_SENTENCES,
    SA,
    SI_PARTS,
    SX,
    compose_text,
    reading_list,
)


def test_a_list_is_like_timits():
    sentences = reading_list(3, 10, seed=0)
    kinds = Counter(sentence.name[:2] for sentence in sentences)
    assert kinds == {"SA": 2, "SX": 5, "SI": 3}
    assert [sentence.text for sentence in sentences[:2]] == list(SA)


@pytest.mark.parametrize("speaker", [0, 1, 11, 259])
def test_no_sentence_twice_and_a_short_list_begins_a_long_one(speaker):
    longest = reading_list(speaker, MAX_SENTENCES, seed=0)
    assert len(longest) == MAX_SENTENCES == 34
    assert len({sentence.name for sentence in longest}) == MAX_SENTENCES
    assert {s.text for s in longest if s.name.startswith("SX")} == set(SX)
    for count in (1, 5, 33):
        assert reading_list(speaker, count, seed=0) == longest[:count]


def test_names_mean_one_text_each():
    texts = {}
    for speaker in range(12):
        for name, text in reading_list(speaker, MAX_SENTENCES, seed=0):
            assert texts.setdefault(name, text) == text


def test_si_names_belong_to_one_speaker_and_texts_to_one_seed():
    first, second, other = (
        {s for s in reading_list(speaker, 10, seed=seed) if s.name.startswith("SI")}
        for speaker, seed in ((0, 0), (1, 0), (0, 1))
    )
    assert not {s.name for s in first} & {s.name for s in second}
    assert {s.name for s in first} == {s.name for s in other}
    assert {s.text for s in first} != {s.text for s in other}


def test_every_text_is_a_sentence():
    texts = [*SA, *SX, *(compose_text(np.random.default_rng(i)) for i in range(50))]
    assert all(text[0].isupper() and text[-1] in ".?" for text in texts)
    assert len(set(texts)) == len(texts)


def test_si_parts_do_not_repeat():
    for part in SI_PARTS:
        assert len(set(part)) == len(part)
