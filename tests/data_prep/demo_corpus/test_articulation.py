"""From timed phones to control values."""

from itertools import pairwise

import numpy as np
import pytest

from keras_ortho.data_prep.demo_corpus.articulation import (
    amplitude,
    articulate,
    contextual_targets,
    smooth,
)
from keras_ortho.data_prep.demo_corpus.phones import PHONES, target_formants
from keras_ortho.data_prep.demo_corpus.speakers import draw_speaker
from keras_ortho.data_prep.demo_corpus.transcription import Sound

pytest.importorskip("scipy.ndimage")

SPEAKER = draw_speaker(1, seed=0)._replace(build=1.0)


def spoken(*labels, span=0.1):
    """Control values of phones of equal length, and their slices of frames."""
    sounds = [Sound(label, PHONES[label].manner == "vowel") for label in labels]
    bounds = span * np.arange(len(labels) + 1)
    frames = round(bounds[-1] / 0.005)
    one = np.ones(frames)
    controls = articulate(sounds, bounds, 100 * one, one, SPEAKER)
    edges = np.rint(bounds / 0.005).astype(int)
    parts = [slice(*edge) for edge in pairwise(edges)]
    return controls, dict(zip(labels, parts, strict=True))


def test_klatts_decibels():
    assert amplitude(60) == 1
    # Powers of ten by pow, which is exact to about one unit in the last place.
    assert amplitude(54) == pytest.approx(10**-0.3, rel=1e-15)
    assert amplitude(0) == 0


def test_consonants_are_drawn_towards_their_vowels():
    second = {}
    for vowel in ("iy", "aa"):
        sounds = [Sound("h#"), Sound("d"), Sound(vowel, True), Sound("h#")]
        targets = contextual_targets(sounds, woman=False)
        np.testing.assert_array_equal(targets[2], target_formants(vowel, woman=False))
        locus = target_formants("d", woman=False)[1]
        own = targets[2, 0]
        low, high = sorted((locus[1], own[1]))
        assert low < targets[1, 1, 1] < high
        # The jaw is up for a stop whatever follows.
        assert targets[1, 1, 0] == locus[0]
        second[vowel] = targets[1, 1, 1]
    assert second["iy"] > second["aa"] + 200


def test_h_and_silence_take_the_vowels_formants():
    sounds = [Sound("h#"), Sound("hh"), Sound("iy", True), Sound("h#")]
    targets = contextual_targets(sounds, woman=False)
    for i in (0, 1, 3):
        np.testing.assert_allclose(targets[i], targets[2], rtol=1e-15)


def test_consonant_leads_from_one_vowel_to_the_next():
    sounds = [Sound("aa", True), Sound("hv"), Sound("iy", True)]
    targets = contextual_targets(sounds, woman=False)
    np.testing.assert_allclose(targets[1, 0], targets[0, 1], rtol=1e-15)
    np.testing.assert_allclose(targets[1, 1], targets[2, 0], rtol=1e-15)


def test_formants_move_smoothly_and_reach_long_targets():
    controls, parts = spoken("h#", "iy", "aa", "pau", span=0.2)
    middle = parts["aa"].start + 20
    expected = target_formants("aa", woman=False)[0]
    np.testing.assert_allclose(controls.formants[middle], expected, rtol=0.01)
    second = controls.formants[:, 1]
    # From 2322 to 1333 Hz within some 50 ms: no more than a quarter in 5 ms.
    assert np.abs(np.diff(second)).max() < 0.25 * (2322 - 1333)


def test_short_vowels_miss_their_targets():
    reached = {}
    for span in (0.04, 0.2):
        controls, parts = spoken("b", "iy", "bcl", span=span)
        reached[span] = controls.formants[parts["iy"], 1].max()
    assert reached[0.04] < reached[0.2] - 50


def test_sources_of_each_manner():
    controls, parts = spoken("h#", "s", "aa", "bcl", "m", "tcl", "pau")

    def middle(track, label):
        # More than four deviations of the smoothing from the next sound.
        return track[parts[label]][8:13]

    assert (middle(controls.voicing, "aa") > 0.99).all()
    assert (middle(controls.voicing, "s") == 0).all()
    assert (middle(controls.voicing, "tcl") == 0).all()
    assert (middle(controls.murmur, "bcl") > 0.05).all()
    assert (middle(controls.frication, "s").max(axis=1) > 0.3).all()
    for label in ("aa", "bcl", "m", "tcl", "pau"):
        assert (middle(controls.frication, label) == 0).all()
    assert (middle(controls.nasal_zero, "m") > 440).all()
    assert (middle(controls.nasal_zero, "s") < 280).all()


def test_release_is_a_burst_then_aspiration():
    controls, parts = spoken("tcl", "t", "aa", "h#")
    noise = controls.frication[parts["t"]].max(axis=1)
    assert noise[0] == noise.max() > 0.3
    # Three time constants.
    assert noise[6] < 0.06 * noise[0]
    assert controls.frication[parts["tcl"]].max() == 0
    breath = controls.aspiration[parts["t"]]
    assert breath[10] > 3 * breath[0]


def test_smoothing_keeps_a_constant_and_the_area():
    np.testing.assert_allclose(smooth(np.full(50, 3), 0.02), 3, rtol=1e-14)
    pulse = np.zeros(101)
    pulse[50] = 1
    smoothed = smooth(pulse, 0.01)
    assert smoothed.sum() == pytest.approx(1, rel=1e-13)
    # Two frames: the Gaussian's variance, less what lies beyond four deviations.
    spread = (smoothed * (np.arange(101) - 50) ** 2).sum()
    assert spread == pytest.approx(4, rel=0.01)
