"""From timed phones to control values: targets, coarticulation, bursts.

Formants move towards the target of each phone. A consonant's own target is drawn
towards the vowels beside it, by the weight of its place (locus equations: Sussman,
McCaffrey and Matthews 1991), and everything is smoothed, so that short sounds miss
their targets (Lindblom 1963, "Spectrographic study of vowel reduction", JASA 35(11)).
"""

from collections.abc import Sequence

import numpy as np

from keras_ortho.extras import require

from .filters import FRAME, NASAL_POLE, RATE
from .phones import MANNERS, NASAL_ZERO, OPEN, PHONES, PLACES, target_formants
from .speakers import Speaker
from .synthesizer import Controls
from .transcription import Sound, is_vowel

# Standard deviations in seconds of the Gaussians that smooth the tracks.
FORMANT_SMOOTHING = 0.016
SOURCE_SMOOTHING = 0.004
FRICATION_SMOOTHING = 0.008
BURST_DECAY = 0.010  # s in which a stop's burst falls to 1/e
GLIDE_PARTS = (0.2, 0.8)  # of a sound: between them it moves to its second target
UNSTRESSED_LEVEL = -4.0  # of a vowel over that of a stressed one, in dB


def amplitude(level: float) -> float:
    """Amplitude for a level in Klatt's decibels: 60 is 1, and 0 is off."""
    return 10 ** ((level - 60) / 20) if level > 0 else 0.0


def contextual_targets(sounds: Sequence[Sound], *, woman: bool) -> np.ndarray:
    """Formant targets of the sounds of a sentence, with coarticulation."""
    targets = np.stack([target_formants(s.phone, woman=woman) for s in sounds])
    vowels = np.flatnonzero([is_vowel(sound) for sound in sounds])
    after = np.searchsorted(vowels, np.arange(len(sounds)))
    before, after = np.maximum(after - 1, 0), np.minimum(after, len(vowels) - 1)
    context = np.stack([targets[vowels[before], 1], targets[vowels[after], 0]], axis=1)
    weights = np.zeros((len(sounds), 1, 4))
    for weight, sound in zip(weights[:, 0], sounds, strict=True):
        phone = PHONES[sound.phone]
        if phone.manner != "vowel":
            drawn = slice(0 if phone.manner in OPEN else 1, None)
            weight[drawn] = PLACES[phone.place].coarticulation
    return targets + weights * (context - targets)


def source_amplitudes(sound: Sound) -> np.ndarray:
    """Amplitudes of the sources of a sound, of shape `(9,)`.

    They are voicing, murmur, aspiration, and frication noise at F2-F6 and unfiltered.
    """
    phone = PHONES[sound.phone]
    manner = MANNERS[phone.manner]
    soft = UNSTRESSED_LEVEL if is_vowel(sound) and not sound.stressed else 0.0
    levels = [manner.voicing + soft, manner.murmur, manner.aspiration, *[0.0] * 6]
    if phone.noise is not None:
        noise = PLACES[phone.place].noise
        levels[3:] = [level and level + phone.noise for level in noise]
    return np.array([amplitude(level) for level in levels])


def articulate(
    sounds: Sequence[Sound],
    bounds: np.ndarray,
    f0: np.ndarray,
    loudness: np.ndarray,
    speaker: Speaker,
) -> Controls:
    """Control values of a sentence."""
    times = np.arange(len(f0)) * FRAME / RATE
    index = np.clip(np.searchsorted(bounds, times, "right") - 1, 0, len(sounds) - 1)
    since = times - bounds[index]
    manners = [PHONES[sound.phone].manner for sound in sounds]

    targets = contextual_targets(sounds, woman=speaker.woman)[index] * speaker.build
    position = np.interp(since / np.diff(bounds)[index], GLIDE_PARTS, (0, 1))[:, None]
    formants = (1 - position) * targets[:, 0] + position * targets[:, 1]
    bandwidths = np.array([MANNERS[manner].bandwidths for manner in manners])[index]
    zeros = [NASAL_ZERO if manner == "nasal" else NASAL_POLE for manner in manners]

    sources = np.array([source_amplitudes(sound) for sound in sounds])[index]
    sources[:, :2] *= loudness[:, None]
    # A stop's release is a burst that dies away into aspiration.
    release = np.array([manner.endswith("release") for manner in manners])[index]
    burst = np.where(release, np.exp(-since / BURST_DECAY), 0.0)
    sources[:, 2] *= 1 - burst
    voicing, murmur, aspiration = smooth(sources[:, :3], SOURCE_SMOOTHING).T
    noise = sources[:, 3:]
    steady = smooth(np.where(release[:, None], 0.0, noise), FRICATION_SMOOTHING)
    return Controls(
        f0=f0,
        formants=smooth(formants, FORMANT_SMOOTHING),
        bandwidths=smooth(bandwidths, FORMANT_SMOOTHING),
        nasal_zero=smooth(np.array(zeros)[index], FORMANT_SMOOTHING),
        voicing=voicing,
        murmur=murmur,
        aspiration=aspiration,
        frication=steady + burst[:, None] * noise,
    )


def smooth(tracks: np.ndarray, deviation: float) -> np.ndarray:
    """Smooths tracks, of values per frame, by a Gaussian of a deviation in seconds."""
    ndimage = require("scipy.ndimage", extra="speech")
    return ndimage.gaussian_filter1d(
        tracks.astype(float), deviation * RATE / FRAME, axis=0, mode="nearest"
    )
