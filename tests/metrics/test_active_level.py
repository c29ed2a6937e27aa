"""The active speech level against the recommendation, sample by sample."""

import numpy as np
import pytest

from keras_ortho.metrics import active_level
from tests.metrics import p56


@pytest.mark.parametrize("rate", [8000, 11500, 16000])
@pytest.mark.parametrize("voicebox", ["2019", "2022"])
def test_definition(rate, voicebox, speech):
    signal = speech(2, rate)
    found = active_level(signal, rate, voicebox=voicebox)
    level, active = p56.active(signal, rate, voicebox)
    # Recurrences of 30 000 steps, in another order of operations.
    assert found.level == pytest.approx(level, abs=1e-9)
    np.testing.assert_array_equal(found.active, active)


def test_no_more_than_all_is_active():
    """The envelope goes on after the end."""
    tone = np.sin(2 * np.pi * np.arange(800) / 8)
    assert active_level(tone, 8000).activity == 1.0


@pytest.mark.parametrize("samples", [0, 8000])
def test_silence(samples):
    level, activity, active = active_level(np.zeros(samples), 8000)
    assert (level, activity) == (-np.inf, 0)
    np.testing.assert_array_equal(active, np.zeros(samples, bool))
