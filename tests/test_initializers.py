import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import initializers
from keras_ortho.parametrizations.householder import unit_length
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
    # With all their digits: none but 0 has those of float32 alone.
    assert n < 2 or np.any(pairs.astype("float32") != pairs)


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


def test_small_uniform():
    values = ops.convert_to_numpy(initializers.SmallUniform(seed=0)((100, 100)))
    assert np.abs(values).max() < 0.01
    assert values.std() == pytest.approx(0.02 / np.sqrt(12), rel=0.05)


@pytest.mark.parametrize(
    "name",
    [
        "antisymmetric_normal",
        "fan_in_normal",
        "forget_bias",
        "henaff_skew",
        "normal_reflectors",
        "small_uniform",
        "state_uniform",
        "uniform_phases",
        "uniform_reflectors",
    ],
)
def test_names_and_configs(name):
    initializer = initializers.get(name)
    config = keras.initializers.serialize(initializer)
    assert config["registered_name"].startswith("keras_ortho>")
    again = initializers.get(config)
    assert type(again) is type(initializer)
    assert again.get_config() == initializer.get_config()


@pytest.mark.parametrize("shape", [(100 * 99 // 2,), (100, 100)])
def test_antisymmetric_normal(shape):
    values = ops.convert_to_numpy(initializers.AntisymmetricNormal(4.0)(shape))
    # Five standard errors of the mean and the deviation of the draws.
    assert values.mean() == pytest.approx(0, abs=5 * 0.4 / np.sqrt(values.size))
    assert values.std() == pytest.approx(0.4, rel=5 / np.sqrt(2 * values.size))
    silent = initializers.AntisymmetricNormal(0)((3,), "float64")
    np.testing.assert_array_equal(silent, 0)
    config = initializers.AntisymmetricNormal(4.0, seed=3).get_config()
    assert config == {"sigma_w": 4.0, "seed": 3}


def test_fan_in_normal():
    values = ops.convert_to_numpy(initializers.FanInNormal(seed=1)((25, 400)))
    assert values.std() == pytest.approx(0.2, rel=5 / np.sqrt(2 * 10_000))
    assert np.abs(values).max() > 3 * 0.2  # Not truncated at two deviations.


@pytest.mark.parametrize("name", ["normal_reflectors", "uniform_reflectors"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_reflectors_of_unit_length(name, dtype):
    initialize = unit_length(initializers.get(name), 40)
    packed = ops.convert_to_numpy(initialize((40 + 39 + 38,), dtype=dtype))
    assert packed.dtype == dtype
    eps = np.finfo(dtype).eps
    for reflector in np.split(packed.astype("float64"), [40, 79]):
        assert np.linalg.norm(reflector) == pytest.approx(1, abs=float(10 * eps))
        # About as many of each sign, to five standard errors.
        assert abs(np.sign(reflector).sum()) <= 5 * np.sqrt(40)


def test_reflectors_in_every_direction():
    values = ops.convert_to_numpy(initializers.NormalReflectors(seed=0)((10_000,)))
    # A normal draw, for which no direction is special: 3 for its fourth moment.
    assert np.mean(values**4) / np.mean(values**2) ** 2 == pytest.approx(3, abs=0.5)
    values = ops.convert_to_numpy(initializers.UniformReflectors(seed=0)((10_000,)))
    assert np.mean(values**4) / np.mean(values**2) ** 2 == pytest.approx(1.8, abs=0.1)


def test_state_uniform():
    values = ops.convert_to_numpy(initializers.StateUniform(seed=0)((600,)))
    assert 0.9 * 0.05 < np.abs(values).max() <= 0.05  # sqrt(3 / 1200)


@pytest.mark.parametrize("seed", [None, 3, keras.random.SeedGenerator(0)])
def test_independent_draws(seed):
    first = keras.initializers.RandomUniform(-2, 2, seed=seed)
    second = initializers.independent(first)
    assert (second.minval, second.maxval) == (-2, 2)
    assert not np.array_equal(first((5, 5)), second((5, 5)))
    if seed == 3:
        again = initializers.independent(first)
        np.testing.assert_array_equal(second((5, 5)), again((5, 5)))


@pytest.mark.parametrize("initializer", ["zeros", "identity", np.eye(3), ops.zeros])
def test_independent_of_what_draws_nothing(initializer):
    if not callable(initializer):
        initializer = initializers.get(initializer)
    assert initializers.independent(initializer) is initializer


def test_two_of_one_name_differ():
    first, second = (initializers.get("small_uniform")((20,)) for _ in range(2))
    assert not np.array_equal(first, second)


def test_arrays_survive_a_config():
    array = np.random.default_rng(0).normal(size=(3, 3)).astype("float32")
    initializer = initializers.get(array)
    config = keras.initializers.serialize(initializer)
    again = initializers.get(config)
    np.testing.assert_array_equal(again((3, 3), "float32"), array)


NUMBER = r"`\w+` must be a finite number.* Received: "
NAN = float("nan")


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        *(
            (initializers.HenaffSkew, bounds, "Received: m(in|ax)val=")
            for bounds in ((-4, 1), (0, 3.2), (1, 0), (0, NAN))
        ),
        (initializers.HenaffSkew(), ((3, 3),), r"Received: shape=\(3, 3\)"),
        *(
            (initializers.AntisymmetricNormal, (sigma,), "`sigma_w` must .*Received: ")
            for sigma in (-1, NAN, float("inf"), "one", None)
        ),
        *(
            (initializers.AntisymmetricNormal(), (shape,), "Received: (shape|entries)=")
            for shape in ((3, 4), (2, 2, 2), (4,))
        ),
        *(
            (initializers.ForgetBias(), (shape,), "Received: shape=")
            for shape in ((6,), (4, 4))
        ),
        (initializers.AntisymmetricNormal, (True,), NUMBER),
        (initializers.ForgetBias, (None,), NUMBER),
        (initializers.HenaffSkew, ("a",), NUMBER),
        (initializers.UniformPhases, (NAN,), NUMBER),
        (initializers.SmallUniform, ("a",), NUMBER),
        (initializers.ScaledRotations, (None,), NUMBER),
        (initializers.ScaledRotations, (1.0, "a"), NUMBER),
        (initializers.SmallUniform, (1.0, 0.5), "`minval`.* minval=1.0, maxval=0.5"),
        (initializers.UniformPhases, (1.0, 0.5), "`minval`.* minval=1.0, maxval=0.5"),
        (initializers.get, ("no_such",), "no_such"),
    ],
)
def test_what_is_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(*arguments)
