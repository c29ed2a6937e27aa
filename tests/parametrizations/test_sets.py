"""Every parametrization as an object: variables, map, inverse, distance, sample."""

import functools
import math

import keras
import numpy as np
import pytest
import scipy.linalg
from keras import ops

from keras_ortho import ENRNN, FullURNN, OrthoRNN, ScoRNN, ScuRNN
from keras_ortho import parametrizations as sets
from keras_ortho.initializers import FreeInitializer
from keras_ortho.optimizers import paper_optimizer
from keras_ortho.parametrizations.givens_layers import MAX_UNROLLED
from tests import reference
from tests.gradients import gradients, second_derivative, traced
from tests.saving import saved_copy

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
STEP = EPS ** (1 / 3)
N = 6
# The code is the same on every backend, and JAX compiles each operation for each
# size: there, one does.
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"


def rotated(angles, signs=None, style="tunable"):
    n = angles.shape[1] + 1 if style == "tunable" else 2 * angles.shape[1]
    product = reference.rotations(style, angles, 0 * angles, np.zeros(n)).real
    return product if signs is None else product * signs


def bounded(left, right, logits):
    n = len(logits)
    values = 0.75 + 2 * 0.25 * (1 / (1 + np.exp(-logits)) - 0.5)
    return reference.svd(left, right, values, n, n)


def factorized(left, left_signs, right, right_signs, logits):
    values = 0.75 + 2 * 0.25 * (1 / (1 + np.exp(-logits)) - 0.5)
    left = reference.scaled_cayley(left, left_signs)
    return left * values @ reference.scaled_cayley(right, right_signs).T


def householder(reflectors, m=None):
    counts = [n for n in range(1, 100) if entries_of(n, m or n) == len(reflectors)]
    return reference.householder(reflectors, *counts).T


def entries_of(n, m):
    return sum(range(n - m + 1, n + 1))


def skew(entries):
    return reference.skew(entries, (1 + math.isqrt(1 + 8 * len(entries))) // 2)


def exponential(entries):
    return reference.exponential(entries, len(skew(entries)))


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
    real, imaginary = np.split(base, 2, axis=1)
    free = [a - b for a, b in zip((skew, symmetric, phases), origins, strict=True)]
    return (real + 1j * imaginary) @ reference.unitary_cayley(*free)


unitary_rotations = functools.partial(reference.rotations, "tunable")
unitary_fft = functools.partial(reference.rotations, "fft")
cayley_schur = functools.partial(reference.real_schur, map="cayley")
exponential_schur = functools.partial(reference.real_schur, map="exponential")
rebased_exponential = functools.partial(rebased, map=exponential)
# Sizes beside `N`.
NONE, ALL, EVEN, POWERS = (), (1, 2, 7, 17), (2, 10), (2, 4, 8, 16)


def diffused(matrix):
    return matrix - 0.25 * np.eye(len(matrix))


def full(parts):
    return parts[0] + 1j * parts[1]


# Each with values of all its arguments that are not their defaults, its definition in
# NumPy, and sizes.
TABLE = {
    "cayley": (sets.ScaledCayley(1), reference.scaled_cayley, (*ALL, 33, 64)),
    "unitary-cayley": (sets.ScaledCayleyUnitary(), reference.unitary_cayley, ALL),
    "antisymmetric": (sets.Antisymmetric(0.25), lambda a: diffused(skew(a)), ALL),
    "unstructured": (sets.Unstructured(0.25), diffused, ALL),
    "householder": (sets.Householder(), householder, (*ALL, 40)),
    "few-reflectors": (sets.Householder(2), lambda u: householder(u, 2), (2, 3, 17)),
    "svd": (sets.SVD(None, 0.25, 0.75), bounded, ALL),
    "few-reflectors-svd": (sets.SVD((3, 2), 0.25, 0.75), bounded, (3,)),
    "factorized": (sets.FactorizedCayley(0.25, 0.75), factorized, ALL),
    "rotations": (sets.GivensOrthogonal(None, "tunable"), rotated, EVEN),
    "few-rotations": (sets.GivensOrthogonal(2, "tunable"), rotated, EVEN),
    "unitary-rotations": (sets.GivensUnitary(N, "tunable"), unitary_rotations, NONE),
    "few-unitary-rotations": (sets.GivensUnitary(4), unitary_rotations, EVEN),
    "many-unitary-rotations": (
        sets.GivensUnitary(MAX_UNROLLED + 4),
        unitary_rotations,
        NONE,
    ),
    "schur": (sets.RealSchur("cayley", keras.initializers.Ones()), cayley_schur, ALL),
    "schur-exponential": (sets.RealSchur(), exponential_schur, ALL),
    "restricted": (sets.RestrictedUnitary(), reference.restricted_unitary, ALL),
    "full": (sets.FullUnitary(), full, ALL),
    "half-full": (sets.FullUnitary(half_gradient=True), full, NONE),
    "enrnn": (sets.EigenvalueNormalized(4, 2, 1, True, 0.5), None, NONE),
    "enrnn-uncoupled": (sets.EigenvalueNormalized(4, 2, coupling=False), None, NONE),
    "exponential": (sets.SkewExponential(), exponential, (*ALL, 33)),
    "rebased": (sets.Rebased(sets.ScaledCayley(1), 2), rebased, ALL),
    "rebased-unitary": (sets.Rebased(sets.ScaledCayleyUnitary()), rebased_unitary, ALL),
    "rebased-exponential": (
        sets.Rebased(sets.SkewExponential(), 3),
        rebased_exponential,
        ALL,
    ),
    "heads": (
        sets.Heads(sets.ScaledCayley(1), 2),
        in_heads(reference.scaled_cayley, 2),
        EVEN,
    ),
    "unitary-heads": (
        sets.Heads(sets.ScaledCayleyUnitary(), 3),
        in_heads(reference.unitary_cayley, 3),
        NONE,
    ),
    "rebased-heads": (
        sets.Heads(sets.Rebased(sets.ScaledCayley(1), 2), 2),
        in_heads(rebased, 2),
        EVEN,
    ),
    "few-reflectors-in-heads": (
        sets.Heads(sets.Householder(1), 2),
        in_heads(lambda u: householder(u, 1), 2),
        EVEN,
    ),
}
FFT = {
    "fft-rotations": (
        sets.GivensOrthogonal(),
        functools.partial(rotated, style="fft"),
        POWERS,
    ),
    "unitary-fft-rotations": (sets.GivensUnitary(style="fft"), unitary_fft, POWERS),
}
# Whether every matrix of the set has an inverse image.
SETS = {
    name: (kind, not name.startswith(("few", "many", "restricted")))
    for name, (kind, *_) in TABLE.items()
}
DEFINED = [
    pytest.param(kind, definition, n, id=f"{name}-{n}")
    for name, (kind, definition, sizes) in (TABLE | FFT).items()
    if definition
    for n in {N if name in TABLE else 8, *(sizes if ON_TENSORFLOW else ())}
]
NOT_ORTHOGONAL = (sets.Antisymmetric, sets.Unstructured, sets.RealSchur)
each = pytest.mark.parametrize(("kind", "invertible"), SETS.values(), ids=SETS)


def values_of(kind, size=N, move=0.1):
    """Free variables in float64 as they start, those that are trained moved a bit."""
    random = np.random.default_rng(size)
    found = []
    for variable in kind.variables(size):
        start = variable.initializer(variable.shape, dtype=variable.dtype or "float64")
        value = ops.convert_to_numpy(start)
        if variable.trainable and variable.group != "unitary":
            value = value + move * random.normal(size=variable.shape)
        elif variable.name.endswith("_base"):
            base = reference.random_unitary(*variable.shape[:1], seed=size)
            value = np.concatenate([base.real, base.imag], axis=1)
            if not kind.is_complex:
                value = reference.random_orthogonal(*variable.shape[:1], seed=size)
        elif variable.name.endswith("_origin"):
            value = random.normal(size=variable.shape)
        found.append(ops.convert_to_tensor(value))
    return found


@pytest.mark.parametrize(("kind", "definition", "n"), DEFINED)
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


@pytest.mark.parametrize(("kind", "definition", "n"), DEFINED)
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
        filled = list(values)
        for place, value in zip(places, changed, strict=True):
            filled[place] = value
        return map(*filled)

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
    kind, n = SETS[name][0], 4
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
    # Also of a graph within a tape.
    again = second_derivative(traced(function), point, direction)
    np.testing.assert_allclose(found, again, rtol=1e-12)


def as_units(kind, matrix):
    """A matrix as `inverse` and `distance` take it."""
    matrix = ops.convert_to_numpy(matrix)
    if not kind.is_complex:
        return matrix
    (real, imaginary), (minus, again) = (
        np.split(half, 2, axis=1) for half in np.split(matrix, 2)
    )
    np.testing.assert_array_equal(real, again)
    np.testing.assert_array_equal(imaginary, -minus)
    return real + 1j * imaginary


def tolerance(matrix):
    # What rounding adds to a matrix that is read back: see `nearest_orthogonal`.
    return 100 * N * EPS * (1 + np.linalg.norm(matrix))


@each
def test_what_the_map_makes_is_in_the_set(kind, invertible):
    matrix = as_units(kind, kind.matrix(*values_of(kind)))
    assert matrix.shape == (N, N)
    assert kind.distance(matrix) <= tolerance(matrix)


@each
def test_other_matrices_are_not(kind, invertible):
    other = 3 * np.ones((N, N))
    if isinstance(kind, sets.RealSchur | sets.Unstructured):
        assert kind.distance(other) == 0
    else:
        assert kind.distance(other) > 1


@each
def test_inverse(kind, invertible):
    matrix = as_units(kind, kind.matrix(*values_of(kind)))
    if not invertible:
        with pytest.raises(ValueError, match="Received"):
            kind.inverse(matrix)
        return
    found = kind.inverse(matrix)
    variables = kind.variables(N)
    assert [np.shape(value) for value in found] == [v.shape for v in variables]
    again = kind.matrix(*map(ops.convert_to_tensor, found))
    np.testing.assert_allclose(
        as_units(kind, again), matrix, rtol=0, atol=10 * tolerance(matrix)
    )


@pytest.mark.parametrize("name", [n for n, (kind, _) in SETS.items() if kind.has_base])
def test_a_base_moves_to_the_matrix(name):
    kind = SETS[name][0]
    values = values_of(kind, move=1)
    weights = [keras.Variable(v, trainable=False, dtype=v.dtype) for v in values]
    kind.rebase(weights, "float64")
    expected = ops.convert_to_numpy(kind.matrix(*values))
    np.testing.assert_allclose(kind.matrix(*weights), expected, atol=1e3 * EPS)
    for weight, variable in zip(weights, kind.variables(N), strict=True):
        if variable.trainable or variable.name.endswith(("_origin", "_passes")):
            np.testing.assert_array_equal(weight, 0)


@each
def test_samples(kind, invertible):
    first, again, other = (kind.sample(N, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01
    assert kind.distance(first) <= tolerance(first)
    if invertible and kind.is_complex:
        assert np.abs(first.imag).max() > 0.01


@each
def test_parts_are_orthogonal(kind, invertible):
    values = values_of(kind)
    for name, part in kind.parts(*values).items():
        part = as_units(kind, part)
        if isinstance(kind, NOT_ORTHOGONAL):
            assert name == ""
        else:
            error = np.linalg.norm(part.conj().T @ part - np.eye(len(part)))
            assert error <= tolerance(part)


@each
def test_free_initializers_reach_the_first_trained_variable(kind, invertible):
    class Ones(FreeInitializer, keras.initializers.Ones):
        pass

    first = next(v for v in kind.variables(N, Ones()) if v.trainable)
    value = ops.convert_to_numpy(first.initializer(first.shape, dtype="float64"))
    if kind.takes == "reflectors":  # Each is scaled to the length 1.
        value = value / value[0]
    if not isinstance(kind, sets.SVD | sets.Householder):
        np.testing.assert_array_equal(value, np.ones(first.shape))
    assert value.flat[0] == 1


@each
def test_config(kind, invertible):
    again = saved_copy(kind)
    values = values_of(kind)
    np.testing.assert_array_equal(again.matrix(*values), kind.matrix(*values))


@each
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e38])
def test_variables_of_a_model_that_has_diverged(kind, invertible, bad):
    """Never an exception: a matrix, and one of the set if the variables are finite."""
    for count in (1, None):
        values = [ops.convert_to_numpy(value).copy() for value in values_of(kind)]
        values = [v.astype("float32") if v.dtype.kind == "f" else v for v in values]
        for value, variable in zip(values, kind.variables(N), strict=True):
            if variable.trainable:
                value.flat[:count] = bad
        values = [ops.convert_to_tensor(value) for value in values]
        matrix = ops.convert_to_numpy(kind.matrix(*values))
        assert np.isfinite(matrix).all() == (bad == 1e38)
        if bad == 1e38 and not isinstance(kind, (*NOT_ORTHOGONAL, sets.FullUnitary)):
            for part in kind.parts(*values).values():
                part = as_units(kind, part).astype("complex128")
                error = np.linalg.norm(part.conj().T @ part - np.eye(len(part)))
                assert error <= 100 * N * np.finfo("float32").eps


def test_orthogonal_samples_are_as_likely_as_any():
    """Their entries have the variance 1 / n, and their determinants both signs."""
    drawn = np.stack([sets.ScaledCayley().sample(4, seed) for seed in range(400)])
    # The mean of 400 squares, of standard deviation below 1/4 each, is within 5 / 80.
    np.testing.assert_allclose((drawn**2).mean(axis=0), 0.25, atol=5 * 0.25 / 20)
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=5 * 0.5 / 20)
    assert 100 < (np.linalg.det(drawn) > 0).sum() < 300


def test_a_layer_asks_its_parametrization():
    layer = ScoRNN(4, negative_ones=1)
    assert isinstance(layer.cell.parametrization, sets.ScaledCayley)
    assert layer.cell.parametrization.negative_ones == 1


def test_without_an_inverse():
    class Fixed(sets.Parametrization):
        def variables(self, size, initializer=None):
            return []

        def matrix(self, *values):
            return ops.eye(2)

    with pytest.raises(ValueError, match="`Fixed` cannot be set .* Received"):
        Fixed().inverse(np.eye(2))


@pytest.mark.parametrize(
    ("make", "weight", "array", "name"),
    [
        (
            lambda own: sets.RealSchur(angles_initializer=own),
            "schur_angles",
            np.array([0.5, -0.25], "float32"),
            "uniform_phases",
        ),
        (
            lambda own: sets.EigenvalueNormalized(2, 2, short_term_initializer=own),
            "short_term_matrix",
            0.5 * np.eye(2, dtype="float32"),
            "scaled_rotations",
        ),
    ],
)
def test_initializers_as_layers_take_them(make, weight, array, name):
    """By the names of this package, and as arrays, also from a config."""
    for own in (array, name):
        given = make(own)
        for each in (given, type(given).from_config(given.get_config())):
            layer = OrthoRNN(4, each)
            layer.build((None, None, 3))
            (found,) = (w for w in layer.weights if w.name == weight)
            assert tuple(found.shape) == array.shape
            assert np.array_equal(ops.convert_to_numpy(found), array) == (own is array)
    with pytest.raises(ValueError, match="nothing"):
        make("nothing")


@pytest.mark.slow
def test_a_short_term_block_of_radius_1_is_kept():
    """Rounding may take its radius past 1, where it would be divided by more."""
    enrnn = sets.EigenvalueNormalized(2, 4, epsilon=0.1)
    random = np.random.default_rng(0)
    for _ in range(3):
        matrix = np.eye(6)
        matrix[2:, 2:] = np.linalg.qr(random.normal(size=(4, 4)))[0]
        found = enrnn.matrix(*map(ops.convert_to_tensor, enrnn.inverse(matrix)))
        # It is made shorter by 400 of these.
        np.testing.assert_allclose(found, matrix, rtol=0, atol=1e4 * EPS)


def test_arrays_of_another_shape_are_not_repeated():
    for name in ("radii", "angles", "upper"):
        given = {f"{name}_initializer": np.array([0.5])}
        layer = OrthoRNN(8, sets.RealSchur(**given))
        with pytest.raises(ValueError, match=f"{name}_initializer.*Received"):
            layer.build((None, 3, 2))


def test_lists_are_taken():
    found = sets.scaled_cayley([1.0], [1, 1])
    np.testing.assert_array_equal(found, [[0.0, -1.0], [1.0, 0.0]])


def test_a_matrix_that_is_not_finite_has_no_deviation():
    assert np.isnan(sets.SVD().distance(np.diag([1.0, np.nan])))


@pytest.mark.parametrize("entry", [(0, 2), (3, 3)])
def test_a_matrix_of_blocks_that_is_not_finite_has_no_distance(entry):
    matrix = np.eye(4)
    matrix[entry] = np.nan
    with pytest.raises(ValueError, match="`matrix` must be finite. Received"):
        sets.EigenvalueNormalized(2, 2).distance(matrix)


@keras.saving.register_keras_serializable(package="tests")
class Wider(sets.SVD):
    def __init__(self, steps, **kwargs):
        super().__init__(**kwargs)
        self.steps = steps


def test_arguments_that_a_subclass_passes_on_are_in_its_config():
    made = Wider(3, spectral_margin=0.25)
    again = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(made)
    )
    assert (again.steps, again.spectral_margin) == (3, 0.25)
    assert again.get_config() == made.get_config()


@pytest.mark.parametrize("name", SETS)
def test_the_distance_of_what_is_not_square(name):
    with pytest.raises(ValueError, match=r"Received: .*\(4, 3\)"):
        SETS[name][0].distance(np.ones((4, 3)))


@pytest.mark.parametrize(
    "layer",
    [
        lambda: OrthoRNN(3, sets.SkewExponential()),
        lambda: ScoRNN(3),
        lambda: ScuRNN(3),
        lambda: ENRNN(2, 2),
        lambda: FullURNN(3),
    ],
    ids=["exponential", "cayley", "unitary-cayley", "enrnn", "full"],
)
def test_a_batch_with_nan_in_fit(layer):
    """Training goes on, as with any layer of Keras: its callbacks see the loss."""
    model = keras.Sequential([keras.Input((3, 2)), layer()])
    model.compile(paper_optimizer("sgd", "sgd"), "mse")
    x = np.zeros((4, 3, 2), "float32")
    x[0, 0, 0] = np.nan
    model.fit(x, np.zeros((4, *model.output_shape[1:])), batch_size=2, verbose=0)
    assert np.isnan(ops.convert_to_numpy(model(x))).all()
