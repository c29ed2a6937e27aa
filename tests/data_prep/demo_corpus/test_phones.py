"""The table of sounds."""

import numpy as np
import pytest

from keras_ortho.data_prep.demo_corpus.phones import (
    CLOSURES,
    MANNERS,
    OPEN,
    PHONES,
    PLACES,
    SILENCES,
    target_formants,
)
from keras_ortho.data_prep.demo_corpus.vowels import DIPHTHONGS, VOWELS, WOMAN_TO_MAN


@pytest.mark.parametrize("label", PHONES)
def test_phone_is_complete(label):
    phone = PHONES[label]
    assert phone.manner in MANNERS
    if phone.manner == "vowel":
        assert phone.place in {**VOWELS, **DIPHTHONGS}
    else:
        assert phone.place in PLACES
    assert 0 < phone.minimal < phone.inherent
    noisy = phone.manner.endswith(("fricative", "release"))
    assert (phone.noise is not None) == noisy
    assert not noisy or any(PLACES[phone.place].noise)


@pytest.mark.parametrize("label", PHONES)
@pytest.mark.parametrize("woman", [False, True])
def test_formants_ascend_within_the_band(label, woman):
    targets = target_formants(label, woman=woman)
    assert targets.shape == (2, 4)
    # Klatt keeps 200 Hz between formants.
    assert (np.diff(targets, axis=1) >= 200).all()
    assert targets.min() > 150
    assert targets.max() < 5000


def test_women_have_the_shorter_tract():
    for label in PHONES:
        ratio = target_formants(label, woman=True) / target_formants(label, woman=False)
        assert 1.0 < ratio.mean() < 1.3
    measured = [VOWELS[v] for v in VOWELS if v not in ("ax", "ix", "ux")]
    ratios = [np.divide(women, men) for men, women in measured]
    assert np.mean(ratios) == pytest.approx(WOMAN_TO_MAN, abs=0.005)


def test_diphthong_moves_and_monophthong_stays():
    start, end = target_formants("ay", woman=False)
    assert start[0] > end[0] + 200
    assert start[1] < end[1] - 400
    start, end = target_formants("iy", woman=False)
    np.testing.assert_array_equal(start, end)


def test_names_that_other_tables_use_exist():
    assert set(CLOSURES) | set(CLOSURES.values()) | set(SILENCES) <= set(PHONES)
    assert set(OPEN) <= set(MANNERS)
