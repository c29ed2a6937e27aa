"""A file that an earlier commit wrote loads, and gives what it gave.

`saved/version_0_1_0.keras` was written at commit 9f1ff7a: every architecture as a layer
and as a cell in the stock `RNN`, and `SVDDense`; beside it inputs and outputs.
"""

from pathlib import Path

import keras
import numpy as np
import pytest

pytestmark = pytest.mark.backends

SAVED = Path(__file__).parent / "saved" / "version_0_1_0"


def test_an_earlier_file_loads_with_equal_outputs():
    model = keras.saving.load_model(SAVED.with_suffix(".keras"))
    expected = dict(np.load(SAVED.with_suffix(".npz")))
    found = model(expected.pop("x"))
    assert found.keys() == expected.keys()
    assert len(found) == 25
    for name, values in expected.items():
        # Five steps in float32, whose matrices have norms of order one.
        np.testing.assert_allclose(
            found[name], values, rtol=1e-4, atol=1e-5, err_msg=name
        )
