"""From text to phones."""

import re

import pytest

from keras_ortho.data_prep.demo_corpus.lexicon import LEXICON
from keras_ortho.data_prep.demo_corpus.phones import CLOSURES, PHONES
from keras_ortho.data_prep.demo_corpus.sentences import SA, SI_PARTS, SX
from keras_ortho.data_prep.demo_corpus.transcription import (
    is_vowel,
    pronounce,
    transcribe,
)

TEXTS = [*SA, *SX, *(part for parts in SI_PARTS for part in parts)]


def phones(text):
    return " ".join(sound.phone for sound in transcribe(text))


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_can_be_read(text):
    sounds = transcribe(text)
    assert all(sound.phone in PHONES for sound in sounds)
    assert [sounds[0].phone, sounds[-1].phone] == ["h#", "h#"]
    assert any(is_vowel(sound) for sound in sounds)


def test_every_word_of_the_lexicon_is_used():
    used = set(re.findall("[a-z]+", " ".join(TEXTS).lower()))
    assert used == set(LEXICON)


@pytest.mark.parametrize("word", LEXICON)
def test_word_is_made_of_sounds_with_at_most_one_accent(word):
    symbols = LEXICON[word].split()
    accented = [symbol for symbol in symbols if symbol.endswith("1")]
    assert len(accented) <= 1
    labels = [symbol.removesuffix("1") for symbol in symbols]
    assert set(labels) <= set(PHONES)
    assert not set(labels) & set(CLOSURES.values())
    assert all(PHONES[a.removesuffix("1")].manner == "vowel" for a in accented)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A closure before a stop, but not after silence.
        ("Put.", "h# p uh tcl t h#"),
        # The first of two stops is not released.
        ("Good book.", "h# g uh dcl bcl b uh kcl k h#"),
        # One stop, and one fricative, where two meet.
        ("Lost tools.", "h# l ao s tcl t ux l z h#"),
        ("House sing.", "h# hh aw s ih ng h#"),
        # An affricate has a closure too.
        ("The cheese.", "h# dh ax tcl ch iy z h#"),
        # "The" before a vowel; a voiced h between vowels.
        ("The apples.", "h# dh iy ae pcl p ax l z h#"),
        ("Behind.", "h# b ix hv ay n dcl d h#"),
        # A comma is a pause.
        ("Bread, cheese.", "h# b r eh dcl d pau ch iy z h#"),
    ],
)
def test_rules_of_connected_speech(text, expected):
    assert phones(text) == expected


def test_accents_come_from_the_lexicon():
    accents = [sound.phone for sound in pronounce("Over the wall.") if sound.stressed]
    assert accents == ["ow", "ao"]


def test_unknown_words_are_named():
    with pytest.raises(ValueError, match=r"Received: \['zebra', 'quark'\]"):
        transcribe("The zebra found a quark.")
