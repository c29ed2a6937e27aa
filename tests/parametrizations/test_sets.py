"""Every parametrization as an object: variables, map, inverse, distance, sample."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import OrthoRNN
from keras_ortho import parametrizations as sets
from keras_ortho.parametrizations.givens import MAX_UNROLLED
from keras_ortho.parametrizations.svd import spectral_deviation
from tests import reference
from tests.gradients import gradients, second_derivative
from tests.parametrizations.definitions import CAYLEY, TABLE
from tests.saving import saved_copy

pytestmark = pytest.mark.backends

EPS, EPS32 = np.finfo("float64").eps, np.finfo("float32").eps
STEP = EPS ** (1 / 3)
# The code is the same on every backend, and JAX compiles each operation for each
# size: there, one does.
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
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
def test_config(name):
    kind, _, (n, *_) = TABLE[name]
    values = values_of(kind, n)
    again = saved_copy(kind).matrix(*values)
    np.testing.assert_array_equal(again, kind.matrix(*values))


@each
@pytest.mark.parametrize("bad", [np.nan, 1e38, 0.0])
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


@pytest.mark.parametrize("own", ["uniform_phases", np.array([0.5, -0.25], "float32")])
def test_initializers_as_layers_take_them(own):
    """By the names of this package, and as arrays, from a config."""
    layer = OrthoRNN(4, saved_copy(sets.RealSchur(angles_initializer=own)))
    layer.build((None, None, 3))
    (found,) = (w for w in layer.weights if w.name == "schur_angles")
    assert isinstance(own, str) or np.array_equal(ops.convert_to_numpy(found), own)


IMAGINARY = np.diag([2j, -1.0])  # W* W - I = diag(3, 0), of norm 3.


@pytest.mark.parametrize(
    ("measure", "matrix", "expected"),
    [
        (sets.orthogonality_error, np.eye(4), 0),
        (sets.orthogonality_error, np.diag([2.0, -1.0]), 3),
        # In float32 the product would round the difference away.
        (sets.orthogonality_error, np.diag([1 + 2.0**-23]).astype("f"), 2.0**-22),
        (sets.orthogonality_error, IMAGINARY, 3),
        (sets.orthogonality_error, reference.complex_block(IMAGINARY), 3 * 2**0.5),
        (sets.Antisymmetric().distance, np.array([[1.0, 2.0], [-2.0, 0.0]]), 2),
        (sets.Antisymmetric(0.5).distance, np.eye(2) / -2, 0),
        (spectral_deviation, np.diag([0.5, -1.25]), 0.5),
        (sets.SVD(None, 0.25, 0.75).distance, np.eye(3), 0),
        (sets.Heads(CAYLEY, 2).distance, np.diag([1.0, 1.0, 1.0, 2.0]), 3),
        # Of the blocks from orthogonal ones, and of the rest from zero.
        (sets.Heads(CAYLEY, 2).distance, np.eye(4) + 4 * np.eye(4, k=3), 4),
    ],
)
def test_distances_of_known_matrices(measure, matrix, expected):
    assert measure(matrix) == pytest.approx(expected, rel=1e-6)


@pytest.mark.skipif(not ON_TENSORFLOW, reason="JAX compiles with XLA always")
@pytest.mark.parametrize("capacity", [2, 2 * MAX_UNROLLED])
def test_compiles_and_many_layers_are_one_loop(capacity):
    import tensorflow as tf

    kind = sets.GivensUnitary(capacity)
    free = values_of(kind, 6, move=4)

    def value_and_gradient(*free):
        with tf.GradientTape() as tape:
            tape.watch(free)
            value = tf.reduce_sum(kind.matrix(*free) ** 3)
        return value, *tape.gradient(value, free)

    graph = tf.function(value_and_gradient)
    compiled = tf.function(value_and_gradient, jit_compile=True)
    for found, expected in zip(compiled(*free), graph(*free), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e4 * EPS)
    nodes = graph.get_concrete_function(*free).graph.as_graph_def().node
    loops = [node for node in nodes if "While" in node.op]
    assert len(loops) == (2 if capacity > MAX_UNROLLED else 0)
