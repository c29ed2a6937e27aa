"""Every parametrization as an object: variables, map, inverse, distance, sample."""

import math
from functools import partial

import keras
import numpy as np
import pytest
import scipy.linalg
from keras import ops

from keras_ortho import OrthoRNN, ScoRNN, ScuRNN
from keras_ortho import parametrizations as sets
from keras_ortho.initializers import FreeInitializer
from keras_ortho.parametrizations.givens import MAX_UNROLLED
from tests import reference
from tests.gradients import gradients, second_derivative
from tests.saving import saved_copy

pytestmark = pytest.mark.backends

EPS, EPS32 = np.finfo("float64").eps, np.finfo("float32").eps
STEP = EPS ** (1 / 3)
N = 6
# The code is the same on every backend, and JAX compiles each operation for each
# size: there, one does.
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


def rotated(angles, signs=1, style="tunable"):
    n = angles.shape[1] + 1 if style == "tunable" else 2 * angles.shape[1]
    return reference.rotations(style, angles, 0 * angles, np.zeros(n)).real * signs


def singular_values(logits):
    return 0.75 + 2 * 0.25 * (1 / (1 + np.exp(-logits)) - 0.5)


def bounded(left, right, logits):
    n = len(logits)
    return reference.svd(left, right, singular_values(logits), n, n)


def factorized(left, left_signs, right, right_signs, logits):
    left = reference.scaled_cayley(left, left_signs)
    right = reference.scaled_cayley(right, right_signs)
    return left * singular_values(logits) @ right.T


def householder(reflectors, m=None):
    sizes = range(1, 100)
    counts = {n: sum(range(n - (m or n) + 1, n + 1)) for n in sizes}
    (n,) = (n for n in sizes if counts[n] == len(reflectors))
    return reference.householder(reflectors, n).T


def skew(entries):
    return reference.skew(entries, (1 + math.isqrt(1 + 8 * len(entries))) // 2)


def exponential(entries):
    return reference.exponential(entries, len(skew(entries)))


def diffused(matrix):
    return matrix - 0.25 * np.eye(len(matrix))


def full(parts):
    return parts[0] + 1j * parts[1]


def in_heads(map, heads):
    def whole(*values):
        size = len(values) // heads
        parts = [values[i : i + size] for i in range(0, len(values), size)]
        return scipy.linalg.block_diag(*(map(*part) for part in parts))

    return whole


def rebased(base, passes, entries, *rest, map=reference.scaled_cayley):
    *signs, origin = rest
    return base @ map(entries - origin, *signs)


def rebased_unitary(base, passes, skew, symmetric, phases, *origins):
    free = [a - b for a, b in zip((skew, symmetric, phases), origins, strict=True)]
    return reference.as_complex(base) @ reference.unitary_cayley(*free)


CAYLEY, UNITARY = sets.ScaledCayley(1), sets.ScaledCayleyUnitary()
REBASED = sets.Rebased(CAYLEY, 2)
MANY = MAX_UNROLLED + 4
cayley, unitary = reference.scaled_cayley, reference.unitary_cayley
schur = reference.real_schur
turns = partial(reference.rotations, "tunable")
# The first size, and others.
NONE, ALL, EVEN, POWERS = (N,), (N, 1, 2, 7, 17), (N, 2, 10), (8, 2, 4, 16)
# Each with values of all its arguments that are not their defaults, its definition in
# NumPy, and sizes.
TABLE = {
    "cayley": (CAYLEY, cayley, (*ALL, 33, 64)),
    "unitary-cayley": (UNITARY, unitary, ALL),
    "antisymmetric": (sets.Antisymmetric(0.25), lambda a: diffused(skew(a)), ALL),
    "unstructured": (sets.Unstructured(0.25), diffused, ALL),
    "householder": (sets.Householder(), householder, (*ALL, 40)),
    "few-reflectors": (sets.Householder(2), lambda u: householder(u, 2), (N, 2, 17)),
    "svd": (sets.SVD(None, 0.25, 0.75), bounded, ALL),
    "few-reflectors-svd": (sets.SVD((3, 2), 0.25, 0.75), bounded, (N, 3)),
    "factorized": (sets.FactorizedCayley(0.25, 0.75), factorized, ALL),
    "rotations": (sets.GivensOrthogonal(None, "tunable"), rotated, EVEN),
    "few-rotations": (sets.GivensOrthogonal(2, "tunable"), rotated, EVEN),
    "few-fft": (sets.GivensOrthogonal(), partial(rotated, style="fft"), POWERS),
    "unitary-rotations": (sets.GivensUnitary(N, "tunable"), turns, NONE),
    "few-unitary-rotations": (sets.GivensUnitary(4), turns, EVEN),
    "many-unitary-rotations": (sets.GivensUnitary(MANY), turns, NONE),
    "few-unitary-fft": (
        sets.GivensUnitary(style="fft"),
        partial(reference.rotations, "fft"),
        POWERS,
    ),
    "schur": (
        sets.RealSchur("cayley", keras.initializers.Ones()),
        partial(schur, map="cayley"),
        ALL,
    ),
    "schur-exponential": (sets.RealSchur(), partial(schur, map="exponential"), ALL),
    "restricted": (sets.RestrictedUnitary(), reference.restricted_unitary, ALL),
    "full": (sets.FullUnitary(), full, ALL),
    "half-full": (sets.FullUnitary(half_gradient=True), full, NONE),
    "enrnn": (sets.EigenvalueNormalized(4, 2, 1, True, 0.5), None, NONE),
    "enrnn-uncoupled": (sets.EigenvalueNormalized(4, 2, coupling=False), None, NONE),
    "exponential": (sets.SkewExponential(), exponential, (*ALL, 33)),
    "rebased": (REBASED, rebased, ALL),
    "rebased-unitary": (sets.Rebased(UNITARY), rebased_unitary, ALL),
    "rebased-exponential": (
        sets.Rebased(sets.SkewExponential(), 3),
        partial(rebased, map=exponential),
        ALL,
    ),
    "heads": (sets.Heads(CAYLEY, 2), in_heads(cayley, 2), EVEN),
    "unitary-heads": (sets.Heads(UNITARY, 3), in_heads(unitary, 3), NONE),
    "rebased-heads": (sets.Heads(REBASED, 2), in_heads(rebased, 2), EVEN),
    "few-reflectors-in-heads": (
        sets.Heads(sets.Householder(1), 2),
        in_heads(lambda u: householder(u, 1), 2),
        EVEN,
    ),
}
each = pytest.mark.parametrize("name", TABLE)
defined = pytest.mark.parametrize(
    ("kind", "definition", "n"),
    [
        pytest.param(kind, definition, n, id=f"{name}-{n}")
        for name, (kind, definition, sizes) in TABLE.items()
        if definition
        for n in (sizes if ON_TENSORFLOW else sizes[:1])
    ],
)
NOT_ORTHOGONAL = (sets.Unstructured, sets.RealSchur)


def values_of(kind, size, move=0.1):
    """Free variables in float64 as they start, those that are trained moved a bit."""
    random = np.random.default_rng(size)
    found = []
    for variable in kind.variables(size):
        start = variable.initializer(variable.shape, dtype=variable.dtype or "float64")
        value = ops.convert_to_numpy(start)
        if variable.trainable and variable.group != "unitary":
            value = value + move * random.normal(size=variable.shape)
        elif variable.name.endswith("_base"):
            n = variable.shape[0]
            value = reference.as_reals(reference.random_unitary(n, seed=size))
            if not kind.is_complex:
                value = reference.random_orthogonal(n, seed=size)
        elif variable.name.endswith("_origin"):
            value = random.normal(size=variable.shape)
        found.append(ops.convert_to_tensor(value))
    return found


def as_units(kind, matrix):
    """A matrix as `inverse` and `distance` take it."""
    matrix = ops.convert_to_numpy(matrix)
    if not kind.is_complex:
        return matrix
    found = reference.as_complex(matrix[: len(matrix) // 2])
    np.testing.assert_array_equal(reference.complex_block(found), matrix)
    return found


def tolerance(matrix):
    # What rounding adds to a matrix that is read back: see `nearest_orthogonal`.
    return 100 * len(matrix) * EPS * (1 + np.linalg.norm(matrix))


def case(name):
    """A parametrization, its first size, and a matrix that it makes."""
    kind, _, (n, *_) = TABLE[name]
    return kind, n, as_units(kind, kind.matrix(*values_of(kind, n)))


@defined
def test_is_its_definition(kind, definition, n):
    values = values_of(kind, n, move=1)
    found = ops.convert_to_numpy(kind.matrix(*values))
    assert found.dtype == "float64"
    arrays = list(map(ops.convert_to_numpy, values))
    expected = definition(*arrays)
    # A condition number of at most some norm of the variables, and a few sums.
    size = 1 + max(np.linalg.norm(x) for x in arrays)
    atol = 10 * n * EPS * size * max(1, np.abs(expected).max())
    np.testing.assert_allclose(as_units(kind, found), expected, rtol=0, atol=atol)


@defined
def test_gradient(kind, definition, n):
    """Along a direction in each trained variable, by central differences."""
    if getattr(kind, "half_gradient", False):
        pytest.skip("Half of it is left out")
    values = list(map(ops.convert_to_numpy, values_of(kind, n, move=1)))
    random = np.random.default_rng(1)
    places = [i for i, v in enumerate(kind.variables(n)) if v.trainable]
    # Any gradient, also one that is not of the form of a block.
    units = n * (1 + kind.is_complex)
    upstream = random.normal(size=(units, units))

    def filled_in(changed, map):
        given = dict(zip(places, changed, strict=True))
        return map(*(given.get(i, value) for i, value in enumerate(values)))

    def loss(*trained):
        return ops.sum(filled_in(trained, kind.matrix) * upstream)

    def by_definition(trained):
        matrix = filled_in(trained, definition)
        if kind.is_complex:
            matrix = reference.complex_block(matrix)
        return np.sum(matrix * upstream)

    trained = [values[place] for place in places]
    for index, found in enumerate(gradients(loss, *trained)):
        assert found.shape == trained[index].shape
        direction = random.normal(size=found.shape)
        ahead, behind = (
            by_definition(
                [x + s * direction if i == index else x for i, x in enumerate(trained)]
            )
            for s in (STEP, -STEP)
        )
        # Central differences with this step are exact to about eps^(2/3), relative to
        # the third derivatives, which grow as reflectors get shorter.
        assert np.sum(found * direction) == pytest.approx(
            (ahead - behind) / (2 * STEP), rel=1e-7, abs=1000 * n * EPS ** (2 / 3)
        )


@pytest.mark.parametrize("name", ["cayley", "unitary-cayley", "few-reflectors"])
def test_second_derivative(name):
    """Through the gradient that is given by hand, as a penalty on gradients needs."""
    kind, n = TABLE[name][0], 4
    first, *rest = values_of(kind, n)
    units = n * (1 + kind.is_complex)
    upstream = np.random.default_rng(1).normal(size=(units, units))

    def function(x):
        return ops.sum(kind.matrix(x, *rest) * upstream)

    point = ops.convert_to_numpy(first)
    direction = np.random.default_rng(2).normal(size=point.shape)
    ahead, behind = (
        gradients(function, point + s * direction)[0] for s in (STEP, -STEP)
    )
    expected = (ahead - behind) / (2 * STEP)
    found = second_derivative(function, point, direction)
    np.testing.assert_allclose(found, expected, atol=1000 * n * EPS ** (2 / 3))


@each
def test_distance(name):
    """Of what the map makes, and of another matrix, from the set."""
    kind, n, matrix = case(name)
    assert matrix.shape == (n, n)
    assert kind.distance(matrix) <= tolerance(matrix)
    other = kind.distance(3 * np.ones((n, n)))
    assert other == 0 if type(kind) in NOT_ORTHOGONAL else other > 1
    with pytest.raises(ValueError, match=r"Received: .*\(4, 3\)"):
        kind.distance(np.ones((4, 3)))


@each
def test_inverse(name):
    kind, n, matrix = case(name)
    if name.startswith(("few", "many", "restricted")):
        with pytest.raises(ValueError, match="Received"):
            kind.inverse(matrix)
        return
    found = kind.inverse(matrix)
    assert [np.shape(value) for value in found] == [v.shape for v in kind.variables(n)]
    again = as_units(kind, kind.matrix(*map(ops.convert_to_tensor, found)))
    np.testing.assert_allclose(again, matrix, rtol=0, atol=10 * tolerance(matrix))


@pytest.mark.parametrize("name", [n for n in TABLE if TABLE[n][0].has_base])
def test_a_base_moves_to_the_matrix(name):
    kind, _, (n, *_) = TABLE[name]
    values = values_of(kind, n, move=1)
    weights = [keras.Variable(v, trainable=False, dtype=v.dtype) for v in values]
    kind.rebase(weights, "float64")
    expected = ops.convert_to_numpy(kind.matrix(*values))
    np.testing.assert_allclose(kind.matrix(*weights), expected, atol=1e3 * EPS)
    for weight, variable in zip(weights, kind.variables(n), strict=True):
        if variable.trainable or variable.name.endswith(("_origin", "_passes")):
            np.testing.assert_array_equal(weight, 0)


@each
def test_samples(name):
    kind, _, (n, *_) = TABLE[name]
    first, again, other = (kind.sample(n, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01
    assert kind.distance(first) <= tolerance(first)
    assert np.iscomplexobj(first) == kind.is_complex


def test_orthogonal_samples_are_as_likely_as_any():
    """Their entries have the variance 1 / n, and their determinants both signs."""
    drawn = np.stack([sets.ScaledCayley().sample(4, seed) for seed in range(400)])
    # The mean of 400 squares, of standard deviation below 1/4 each, is within 5 / 80.
    np.testing.assert_allclose((drawn**2).mean(axis=0), 0.25, atol=5 * 0.25 / 20)
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=5 * 0.5 / 20)
    assert 100 < (np.linalg.det(drawn) > 0).sum() < 300


@each
def test_free_initializers_reach_the_first_trained_variable(name):
    class Ones(FreeInitializer, keras.initializers.Ones):
        pass

    kind, _, (n, *_) = TABLE[name]
    first = next(v for v in kind.variables(n, Ones()) if v.trainable)
    value = ops.convert_to_numpy(first.initializer(first.shape, dtype="float64"))
    if kind.takes == "reflectors":  # Each is scaled to the length 1.
        value = value[: n // kind.heads] / value[0]
    np.testing.assert_array_equal(value, 1)


@each
def test_config(name):
    kind, _, (n, *_) = TABLE[name]
    values = values_of(kind, n)
    again = saved_copy(kind).matrix(*values)
    np.testing.assert_array_equal(again, kind.matrix(*values))


@each
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e38, 0.0])
def test_bad_numbers(name, bad):
    """A matrix, and one of the set if the variables are finite: never an exception."""
    kind, _, (n, *_) = TABLE[name]
    for count in (1, None):
        values = [ops.convert_to_numpy(value).copy() for value in values_of(kind, n)]
        values = [v.astype("float32") if v.dtype.kind == "f" else v for v in values]
        for value, variable in zip(values, kind.variables(n), strict=True):
            if variable.trainable:
                value.flat[:count] = bad
        values = [ops.convert_to_tensor(value) for value in values]
        matrix = ops.convert_to_numpy(kind.matrix(*values))
        assert np.isfinite(matrix).all() == np.isfinite(bad)
        if np.isfinite(bad) and not isinstance(
            kind, (*NOT_ORTHOGONAL, sets.FullUnitary)
        ):
            for part in kind.parts(*values).values():
                part = as_units(kind, part).astype("complex128")
                error = np.linalg.norm(part.conj().T @ part - np.eye(len(part)))
                assert error <= 100 * n * EPS32


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e30])
def test_the_length_of_a_reflector_plays_no_part(scale):
    """None is the identity."""
    phases, reflectors, permutation = values_of(sets.RestrictedUnitary(), N)
    phases, reflectors = ops.cast(phases, "float32"), ops.cast(reflectors, "float32")
    scaled = ops.convert_to_numpy(reflectors) * np.float32(scale)
    found = sets.restricted_unitary(phases, scaled, permutation)
    assert sets.unitarity_error(found) <= 7 * N * EPS32
    if scale:
        expected = sets.restricted_unitary(phases, reflectors, permutation)
        np.testing.assert_allclose(found, expected, atol=20 * N * EPS32)
    (gradient,) = gradients(
        lambda v: ops.sum(sets.restricted_unitary(phases, v, permutation)), scaled
    )
    assert np.isfinite(gradient).all() or scale == 1e-30


@pytest.mark.parametrize("layer", [ScoRNN, ScuRNN])
def test_a_batch_with_nan_in_fit(layer):
    """Training goes on, as with any layer of Keras: its callbacks see the loss."""
    model = keras.Sequential([keras.Input((3, 2)), layer(3)])
    model.compile("sgd", "mse")
    x = np.zeros((4, 3, 2), "float32")
    x[0, 0, 0] = np.nan
    model.fit(x, np.zeros((4, *model.output_shape[1:])), batch_size=2, verbose=0)
    assert np.isnan(ops.convert_to_numpy(model(x))).all()


@pytest.mark.parametrize("own", ["uniform_phases", np.array([0.5, -0.25], "float32")])
def test_initializers_as_layers_take_them(own):
    """By the names of this package, and as arrays, from a config."""
    layer = OrthoRNN(4, saved_copy(sets.RealSchur(angles_initializer=own)))
    layer.build((None, None, 3))
    (found,) = (w for w in layer.weights if w.name == "schur_angles")
    assert isinstance(own, str) or np.array_equal(ops.convert_to_numpy(found), own)
