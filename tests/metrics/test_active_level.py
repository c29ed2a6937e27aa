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
