import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import initializers
from tests import reference

pytestmark = pytest.mark.backends


def cayley_angles(entries, n):
    eigenvalues = np.linalg.eigvals(reference.scaled_cayley(entries, np.ones(n)))
    return np.sort(np.abs(np.angle(eigenvalues)))


@pytest.mark.parametrize("n", [1, 2, 3, 16, 17])
def test_henaff_skew_rotates_pairs(n):
    initializer = initializers.HenaffSkew(seed=1)
    entries = ops.convert_to_numpy(initializer((n * (n - 1) // 2,), dtype="float64"))
    skew = reference.skew(entries, n)
    pairs = skew[np.arange(0, n - 1, 2), np.arange(1, n, 2)]
    # Nothing but the pairs; an odd order leaves the last unit alone.
    assert np.count_nonzero(skew) == 2 * (n // 2)
    assert np.all((pairs > 0) & (pairs < 1))  # tan(t / 2) for t below pi / 2
    angles = np.sort(2 * np.arctan(np.concatenate([pairs, pairs, [0] * (n % 2)])))
    np.testing.assert_allclose(
        cayley_angles(entries, n), angles, atol=100 * np.finfo("float64").eps
    )


def test_henaff_skew_is_uniform_in_its_bounds():
    n = 2000
    initializer = initializers.HenaffSkew(minval=-1.0, maxval=3.0, seed=0)
    entries = ops.convert_to_numpy(initializer((n * (n - 1) // 2,), "float32"))
    angles = 2 * np.arctan(entries[entries != 0])
    assert len(angles) == n // 2
    # The mean and the spread of a uniform draw of 1 000, to five standard errors.
    assert angles.mean() == pytest.approx(1.0, abs=5 * 4 / np.sqrt(12 * 1000))
    assert angles.min() == pytest.approx(-1.0, abs=0.05)
    assert angles.max() == pytest.approx(3.0, abs=0.05)


@pytest.mark.parametrize("bounds", [(-4, 1), (0, 3.2), (1, 0), (0, float("nan"))])
def test_angles_that_no_skew_matrix_reaches(bounds):
    with pytest.raises(ValueError, match="Received: minval="):
        initializers.HenaffSkew(*bounds)


def test_henaff_skew_makes_entries_only():
    with pytest.raises(ValueError, match=r"Received: shape=\(3, 3\)"):
        initializers.HenaffSkew()((3, 3))


def test_small_uniform():
    values = ops.convert_to_numpy(initializers.SmallUniform(seed=0)((100, 100)))
    assert np.abs(values).max() < 0.01
    assert values.std() == pytest.approx(0.02 / np.sqrt(12), rel=0.05)


@pytest.mark.parametrize("name", ["henaff_skew", "small_uniform"])
def test_names_and_configs(name):
    initializer = initializers.get(name)
    config = keras.initializers.serialize(initializer)
    assert config["registered_name"].startswith("keras_ortho>")
    again = initializers.get(config)
    assert type(again) is type(initializer)
    assert again.get_config() == initializer.get_config()


def test_two_of_one_name_differ():
    first, second = (initializers.get("small_uniform")((20,)) for _ in range(2))
    assert not np.array_equal(first, second)


def test_arrays_survive_a_config():
    array = np.random.default_rng(0).normal(size=(3, 3)).astype("float32")
    initializer = initializers.get(array)
    config = keras.initializers.serialize(initializer)
    again = initializers.get(config)
    np.testing.assert_array_equal(again((3, 3), "float32"), array)


def test_kerass_own():
    assert isinstance(initializers.get("zeros"), keras.initializers.Zeros)
    with pytest.raises(ValueError, match="no_such"):
        initializers.get("no_such")
