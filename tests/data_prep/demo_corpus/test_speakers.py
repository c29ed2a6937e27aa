"""The speakers."""

import re

import pytest

from keras_ortho.data_prep.demo_corpus.phones import PHONES
from keras_ortho.data_prep.demo_corpus.speakers import (
    MAX_SPEAKERS,
    REGIONS,
    draw_speaker,
)
from keras_ortho.data_prep.demo_corpus.vowels import WOMAN_TO_MAN

SPEAKERS = [draw_speaker(number, seed=0) for number in range(MAX_SPEAKERS)]


def test_names_have_timits_form_and_are_unique():
    names = [speaker.name for speaker in SPEAKERS]
    assert len(set(names)) == MAX_SPEAKERS == 260
    for speaker in SPEAKERS:
        assert re.fullmatch(r"[FM]AA[A-Z][0-9]", speaker.name)
        assert (speaker.name[0] == "F") == speaker.woman


def test_women_and_men_alternate_in_both_regions():
    for region in REGIONS:
        sexes = [speaker.woman for speaker in SPEAKERS[:12] if speaker.region == region]
        assert sexes == [True, False] * 3


def test_voices_are_in_range():
    for speaker in SPEAKERS:
        low, high = (180, 245) if speaker.woman else (95, 150)
        assert low <= speaker.f0 <= high
        assert 0.3 / 0.9 < speaker.level < 0.7 / 1.1
        voice = speaker.voice
        # A pulse, delayed by jitter, ends within its period.
        assert voice.opening + voice.closing + 12**0.5 * voice.jitter < 1
        scale = WOMAN_TO_MAN if speaker.woman else 1.0
        assert voice.tract == pytest.approx(scale * speaker.build)


def test_voices_differ_and_depend_on_the_seed_alone():
    assert len({speaker.f0 for speaker in SPEAKERS}) == MAX_SPEAKERS
    assert draw_speaker(7, seed=0) == SPEAKERS[7]
    assert draw_speaker(7, seed=1).voice != SPEAKERS[7].voice
    assert draw_speaker(7, seed=1).name == SPEAKERS[7].name


def test_tempo_keeps_sounds_longer_than_a_frame():
    shortest = min(phone.minimal for phone in PHONES.values())
    assert shortest * min(speaker.tempo for speaker in SPEAKERS) > 5
