"""Every parametrization as an object: variables, map, inverse, distance, sample."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ENRNN, FullURNN, OrthoRNN, ScoRNN, ScuRNN
from keras_ortho import parametrizations as sets
from keras_ortho.initializers import FreeInitializer, UnitaryComposition
from keras_ortho.optimizers import paper_optimizer
from tests.saving import saved_copy

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
N = 6

# Each with values of all its arguments that are not their defaults, and whether every
# matrix of the set has an inverse image.
SETS = {
    "cayley": (sets.ScaledCayley(1), True),
    "unitary-cayley": (sets.ScaledCayleyUnitary(), True),
    "antisymmetric": (sets.Antisymmetric(0.25), True),
    "unstructured": (sets.Unstructured(0.25), True),
    "householder": (sets.Householder(), True),
    "few-reflectors": (sets.Householder(2), False),
    "svd": (sets.SVD(None, 0.25, 0.75), True),
    "few-reflectors-svd": (sets.SVD((3, 2), 0.25, 0.75), False),
    "factorized": (sets.FactorizedCayley(0.25, 0.75), True),
    "rotations": (sets.GivensOrthogonal(None, "tunable"), True),
    "few-rotations": (sets.GivensOrthogonal(2, "tunable"), False),
    "unitary-rotations": (sets.GivensUnitary(N, "tunable"), True),
    "few-unitary-rotations": (sets.GivensUnitary(4, "tunable"), False),
    "schur": (sets.RealSchur("cayley", keras.initializers.Ones()), True),
    "restricted": (sets.RestrictedUnitary(), False),
    "full": (sets.FullUnitary(half_gradient=True), True),
    "enrnn": (sets.EigenvalueNormalized(4, 2, 1, True, 0.5), True),
    "exponential": (sets.SkewExponential(), True),
    "rebased": (sets.Rebased(sets.ScaledCayley(1), 2), True),
    "rebased-unitary": (sets.Rebased(sets.ScaledCayleyUnitary()), True),
    "rebased-exponential": (sets.Rebased(sets.SkewExponential(), 3), True),
    "heads": (sets.Heads(sets.ScaledCayley(1), 2), True),
    "unitary-heads": (sets.Heads(sets.ScaledCayleyUnitary(), 3), True),
    "rebased-heads": (sets.Heads(sets.Rebased(sets.ScaledCayley(1), 2), 2), True),
    "few-reflectors-in-heads": (sets.Heads(sets.Householder(1), 2), False),
    "enrnn-uncoupled": (sets.EigenvalueNormalized(4, 2, coupling=False), True),
}
NOT_ORTHOGONAL = (sets.Antisymmetric, sets.Unstructured, sets.RealSchur)
each = pytest.mark.parametrize(("kind", "invertible"), SETS.values(), ids=SETS)


def values_of(kind, seed=0):
    """Free variables in float64 as they start, those that are trained moved a bit."""
    random = np.random.default_rng(seed)
    found = []
    for variable in kind.variables(N):
        start = variable.initializer(variable.shape, dtype=variable.dtype or "float64")
        value = ops.convert_to_numpy(start)
        if variable.trainable and variable.group != "unitary":
            value = value + 0.1 * random.normal(size=variable.shape)
        found.append(ops.convert_to_tensor(value))
    return found


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


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        (sets.ScaledCayley(7), 6, "`negative_ones`"),
        (sets.Heads(sets.ScaledCayley(), 4), 6, "`units`"),
        (sets.Householder(7), 6, "`reflections`"),
        (sets.GivensUnitary(2), 5, "even"),
        (sets.EigenvalueNormalized(4, 2), 5, "The number of units must be"),
    ],
)
def test_sizes_that_there_are_not(kind, size, message):
    with pytest.raises(ValueError, match=f"{message}.*Received"):
        kind.variables(size)


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


def test_orders_without_a_distance():
    for made, order in (
        (sets.Heads(sets.ScaledCayley(), 2), 5),
        (sets.EigenvalueNormalized(2, 2), 3),
    ):
        with pytest.raises(ValueError, match="Received"):
            made.distance(np.eye(order))


def test_arrays_of_another_shape_are_not_repeated():
    for name in ("radii", "angles", "upper"):
        given = {f"{name}_initializer": np.array([0.5])}
        layer = OrthoRNN(8, sets.RealSchur(**given))
        with pytest.raises(ValueError, match=f"{name}_initializer.*Received"):
            layer.build((None, 3, 2))


ONES = np.ones(3, "float16")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sets.scaled_cayley(ONES, ONES), "`entries` must be of float32"),
        (lambda: sets.skew_exponential(ONES), "`entries` must be of float32"),
        (lambda: sets.skew_exponential(np.arange(3)), "`entries` must be of float32"),
        (lambda: sets.householder_product(ONES, 2), "`reflectors` must be of float32"),
        (
            lambda: sets.householder_product(np.ones(3), 2, columns=5),
            "`columns` must lie between 0 and the order, 2",
        ),
        (
            lambda: sets.spectral_radius(np.eye(3, dtype="float16")),
            "`matrix` must be of float32",
        ),
        (lambda: sets.givens_orthogonal(np.ones(3)), "`angles` must have the shape"),
        (lambda: sets.givens_orthogonal(ONES[None]), "`angles` must be of float32"),
        (lambda: UnitaryComposition()(()), "`shape` must be"),
        (lambda: sets.spectral_deviation(np.ones(3)), "`matrix` must be a matrix"),
        (lambda: sets.spectral_deviation(1j * np.eye(3)), "`matrix` must contain real"),
        (lambda: sets.antisymmetry_error(1j * np.eye(3)), "`matrix` must contain real"),
        (lambda: sets.svd_inverse(1j * np.eye(3)), "`matrix` must contain real"),
    ],
)
def test_other_dtypes_and_shapes(make, message):
    with pytest.raises(ValueError, match=f"{message}.*Received"):
        make()


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


@pytest.mark.parametrize("size", [1.5, "many", 0, -1])
def test_random_matrices_of_no_order(size):
    for draw in (sets.random_orthogonal, sets.random_unitary):
        with pytest.raises(ValueError, match="`size` must be .* Received: size="):
            draw(size)


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
