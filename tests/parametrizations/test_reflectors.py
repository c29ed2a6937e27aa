import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import reflectors

pytestmark = pytest.mark.backends


def test_unit_reflectors():
    packed = np.array([3.0, 4.0, 0.0, 0.0, 0.0, -2.0])
    found = ops.convert_to_numpy(reflectors.unit_reflectors(packed, 3))
    np.testing.assert_allclose(found, [0.6, 0.8, 0, 0, 0, -1], atol=2.0**-52)


@pytest.mark.parametrize(("n", "m", "count"), [(256, 16, 3976), (32, 16, 392)])
def test_counts(n, m, count):
    assert reflectors.num_reflector_entries(n, m) == count


@pytest.mark.parametrize("reflections", [0, 6, -1, 2.0, True, "all"])
def test_reflections_out_of_range(reflections):
    for call in (reflectors.check_reflections, reflectors.check_pair):
        with pytest.raises(ValueError, match="Received: reflections="):
            call(reflections, 5)


@pytest.mark.parametrize("pair", [(1,), (1, 2, 3), (1, 6), (0, 1)])
def test_pairs_out_of_range(pair):
    with pytest.raises(ValueError, match="Received: reflections="):
        reflectors.check_pair(pair, 5)
