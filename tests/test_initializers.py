import re
from functools import partial

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import initializers
from keras_ortho.parametrizations.householder import unit_length
from tests import reference

pytestmark = pytest.mark.backends

NO_CLASSES = {"FreeInitializer", "check_array", "get", "independent"}


def drawn(initializer, *shape, dtype="float32"):
    return ops.convert_to_numpy(initializer(shape, dtype=dtype))


@pytest.mark.parametrize("n", [1, 2, 16, 17])
def test_henaff_skew_rotates_pairs(n):
    entries = drawn(initializers.HenaffSkew(seed=1), n * (n - 1) // 2, dtype="float64")
    skew = reference.skew(entries, n)
    pairs = skew[np.arange(0, n - 1, 2), np.arange(1, n, 2)]
    # Nothing but the pairs; an odd order leaves the last unit alone.
    assert np.count_nonzero(skew) == 2 * (n // 2)
    assert np.all((pairs > 0) & (pairs < 1))  # tan(t / 2) for t below pi / 2
    # With all their digits: none but 0 has those of float32 alone.
    assert n < 2 or np.any(pairs.astype("float32") != pairs)


def test_henaff_skew_is_uniform_in_its_bounds():
    entries = drawn(initializers.HenaffSkew(-1.0, 3.0, seed=0), 2000 * 1999 // 2)
    angles = 2 * np.arctan(entries[entries != 0])
    assert len(angles) == 1000
    # The mean and the spread of a uniform draw of 1 000, to five standard errors.
    assert angles.mean() == pytest.approx(1.0, abs=5 * 4 / np.sqrt(12 * 1000))
    assert angles.min() == pytest.approx(-1.0, abs=0.05)
    assert angles.max() == pytest.approx(3.0, abs=0.05)


@pytest.mark.parametrize(
    ("make", "shape", "deviation", "kurtosis"),
    [
        (initializers.SmallUniform, (100, 100), 0.01 / np.sqrt(3), 1.8),
        (initializers.StateUniform, (600,), 0.05 / np.sqrt(3), 1.8),
        (initializers.UniformReflectors, (10_000,), None, 1.8),
        (initializers.NormalReflectors, (10_000,), None, 3.0),
        (initializers.FanInNormal, (25, 400), 0.2, 3.0),
        (partial(initializers.AntisymmetricNormal, 4), (4950,), 0.4, 3.0),
        (partial(initializers.AntisymmetricNormal, 4), (100, 100), 0.4, 3.0),
    ],
)
def test_distribution(make, shape, deviation, kurtosis):
    values = drawn(make(seed=1), *shape)
    spread = values.std()
    assert abs(values.mean()) <= 5 * spread / np.sqrt(values.size)
    assert deviation is None or spread == pytest.approx(deviation, rel=0.1)
    # Of a uniform or a normal draw, which is not truncated.
    assert np.mean(values**4) / spread**4 == pytest.approx(kurtosis, rel=0.1)


@pytest.mark.parametrize("public", sorted(set(initializers.__all__) - NO_CLASSES))
def test_names_and_configs(public):
    name = re.sub("(?<=[a-z])(?=[A-Z])", "_", public).lower()
    initializer = initializers.get(name)
    config = keras.initializers.serialize(initializer)
    assert config["registered_name"].startswith("keras_ortho>")
    again = initializers.get(config)
    assert type(again) is type(initializer)
    assert again.get_config() == initializer.get_config()


@pytest.mark.parametrize("name", ["normal_reflectors", "uniform_reflectors"])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_reflectors_of_unit_length(name, dtype):
    initialize = unit_length(initializers.get(name), 40)
    packed = drawn(initialize, 40 + 39 + 38, dtype=dtype)
    assert packed.dtype == dtype
    for reflector in np.split(packed.astype("float64"), [40, 79]):
        atol = 10 * float(np.finfo(dtype).eps)
        assert np.linalg.norm(reflector) == pytest.approx(1, abs=atol)


@pytest.mark.parametrize("seed", [None, 3, keras.random.SeedGenerator(0)])
def test_independent_draws(seed):
    first = keras.initializers.RandomUniform(-2, 2, seed=seed)
    second = initializers.independent(first)
    assert (second.minval, second.maxval) == (-2, 2)
    assert not np.array_equal(first((5, 5)), second((5, 5)))
    for nothing_drawn in ("zeros", np.eye(3)):
        same = initializers.get(nothing_drawn)
        assert initializers.independent(same) is same


def test_arrays_survive_a_config():
    array = np.random.default_rng(0).normal(size=(3, 3)).astype("float32")
    config = keras.initializers.serialize(initializers.get(array))
    np.testing.assert_array_equal(drawn(initializers.get(config), 3, 3), array)


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (initializers.HenaffSkew, (-4, 1), "Received: m(in|ax)val="),
        (initializers.HenaffSkew, (0, 3.2), "Received: m(in|ax)val="),
        (initializers.HenaffSkew, (1, 0), "Received: m(in|ax)val="),
        (initializers.HenaffSkew(), ((3, 3),), r"Received: shape=\(3, 3\)"),
        (initializers.AntisymmetricNormal, (-1,), "`sigma_w` must .*Received: "),
        (initializers.AntisymmetricNormal(), ((3, 4),), "Received: shape="),
        (initializers.ForgetBias, (None,), "`value` must be a finite number"),
        (initializers.SmallUniform, (1.0, 0.5), "`minval`.* minval=1.0, maxval=0.5"),
        (
            initializers.UniformPhases,
            (float("nan"),),
            "`minval` must be a finite number",
        ),
        (initializers.get, ("no_such",), "no_such"),
    ],
)
def test_what_is_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(*arguments)
