import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import givens, orthogonality_error
from keras_ortho.parametrizations.givens_inverse import (
    givens_orthogonal_inverse,
    givens_unitary_inverse,
)
from keras_ortho.parametrizations.givens_layers import MAX_UNROLLED
from tests import reference
from tests.gradients import gradients
from tests.parametrizations.rotations import one_by_one, random_unitary, real_form

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
STEP = EPS ** (1 / 3)
# The code is the same on every backend, and JAX compiles each operation for each
# size: there, a few do.
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
# Odd numbers of stages, more layers than units, and, first, a loop over them.
TUNABLE = [(6, MAX_UNROLLED + 4), (4, 6), (2, 2), (6, 2), (10, 10)]
FFT = [8, 2, 4, 16]
if not ON_TENSORFLOW:
    TUNABLE, FFT = TUNABLE[:2], FFT[:1]
ORDERS = [2, 4, 6, 16, 60] if ON_TENSORFLOW else [6]
LAYOUTS = [("tunable", n, k) for n, k in TUNABLE] + [("fft", n, None) for n in FFT]


def draw(style, n, capacity, seed=0):
    random = np.random.default_rng(seed)
    shape = givens.angles_shape(n, style, capacity)
    angles, phases = random.uniform(-4, 4, size=(2, *shape))
    return angles, phases, random.uniform(-4, 4, size=n)


@pytest.mark.parametrize(("style", "n", "capacity"), LAYOUTS)
def test_unitary_is_the_product_of_its_rotations(style, n, capacity):
    free = draw(style, n, capacity)
    found = ops.convert_to_numpy(givens.givens_unitary(*free, style))
    assert found.dtype == "float64"
    layers = 1 + 2 * len(free[0])
    np.testing.assert_allclose(
        found, real_form(one_by_one(style, *free)), atol=10 * layers * EPS
    )
    assert orthogonality_error(found) <= 2 * n * layers * EPS


@pytest.mark.parametrize(("style", "n", "capacity"), LAYOUTS)
def test_orthogonal_is_the_product_of_its_rotations(style, n, capacity):
    angles, _, _ = draw(style, n, capacity)
    signs = np.where(np.arange(n) % 3 == 1, -1.0, 1.0)
    expected = one_by_one(style, angles, 0 * angles, np.zeros(n)).real
    atol = 10 * (1 + 2 * len(angles)) * EPS
    found = ops.convert_to_numpy(givens.givens_orthogonal(angles, style=style))
    np.testing.assert_allclose(found, expected, atol=atol)
    found = ops.convert_to_numpy(givens.givens_orthogonal(angles, signs, style))
    np.testing.assert_allclose(found, expected * signs, atol=atol)


@pytest.mark.parametrize("n", [2, 8, 32] if ON_TENSORFLOW else [8])
def test_fft_style_holds_the_butterflies_of_the_fft(n):
    """With every angle pi / 4 and no phase: the Walsh-Hadamard matrix, by recursion."""
    angles = np.full(givens.angles_shape(n, "fft", None), np.pi / 4)
    butterfly = np.array([[1, 1], [-1, 1]]) / np.sqrt(2)
    expected = np.ones((1, 1))
    for _ in range(n.bit_length() - 1):
        expected = np.kron(expected, butterfly)
    found = ops.convert_to_numpy(givens.givens_orthogonal(angles, style="fft"))
    np.testing.assert_allclose(found, expected, atol=10 * n * EPS)


@pytest.mark.parametrize(("style", "n", "capacity"), LAYOUTS)
def test_gradient_of_unitary(style, n, capacity):
    free = draw(style, n, capacity)
    upstream = np.random.default_rng(1).normal(size=(2 * n, 2 * n))
    found = gradients(
        lambda *x: ops.sum(givens.givens_unitary(*x, style) * upstream), *free
    )
    sizes = [x.size for x in free]

    def by_definition(flat):
        parts = np.split(flat, np.cumsum(sizes)[:-1])
        parts = [x.reshape(y.shape) for x, y in zip(parts, free, strict=True)]
        return np.sum(real_form(one_by_one(style, *parts)) * upstream)

    flat = np.concatenate([x.ravel() for x in free])
    expected = reference.central_differences(by_definition, flat, STEP)
    np.testing.assert_allclose(
        np.concatenate([x.ravel() for x in found]),
        expected,
        atol=100 * n * EPS ** (2 / 3),
    )


@pytest.mark.parametrize(("style", "n", "capacity"), LAYOUTS)
def test_gradient_of_orthogonal(style, n, capacity):
    angles, _, _ = draw(style, n, capacity)
    upstream = np.random.default_rng(1).normal(size=(n, n))
    (found,) = gradients(
        lambda x: ops.sum(givens.givens_orthogonal(x, style=style) * upstream), angles
    )
    expected = reference.central_differences(
        lambda x: np.sum(one_by_one(style, x, 0 * x, np.zeros(n)).real * upstream),
        angles,
        STEP,
    )
    np.testing.assert_allclose(found, expected, atol=100 * n * EPS ** (2 / 3))


@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("seed", range(2))
def test_every_unitary_matrix_is_reached(n, seed):
    matrix = random_unitary(n, seed)
    angles, phases, output_phases = givens_unitary_inverse(matrix)
    assert angles.shape == phases.shape == (n // 2, n - 1)
    found = givens.givens_unitary(angles, phases, output_phases)
    np.testing.assert_allclose(found, real_form(matrix), atol=10 * n * EPS)


@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("determinant", [-1, 1])
def test_every_orthogonal_matrix_is_reached(n, determinant):
    matrix = np.linalg.qr(np.random.default_rng(n).normal(size=(n, n)))[0]
    matrix[0] *= determinant * np.sign(np.linalg.det(matrix))
    angles, signs = givens_orthogonal_inverse(matrix)
    assert np.prod(signs) == determinant
    found = givens.givens_orthogonal(angles, signs)
    np.testing.assert_allclose(found, matrix, atol=10 * n * EPS)


@pytest.mark.parametrize(
    "matrix",
    [np.eye(6), -np.eye(6), np.eye(6)[::-1], np.eye(6)[[2, 0, 1, 4, 5, 3]]],
    ids=["identity", "minus", "backwards", "cycles"],
)
def test_matrices_with_many_zeros_are_reached(matrix):
    found = givens.givens_orthogonal(*givens_orthogonal_inverse(matrix))
    np.testing.assert_allclose(found, matrix, atol=60 * EPS)
    found = givens.givens_unitary(*givens_unitary_inverse(1j * matrix))
    np.testing.assert_allclose(found, real_form(1j * matrix), atol=60 * EPS)


def test_a_matrix_of_low_precision_is_reached_in_its_precision():
    matrix = random_unitary(8).astype("complex64")
    found = ops.convert_to_numpy(givens.givens_unitary(*givens_unitary_inverse(matrix)))
    assert orthogonality_error(found) <= 200 * EPS
    np.testing.assert_allclose(
        found, real_form(matrix), atol=8 * np.finfo("float32").eps
    )


@pytest.mark.parametrize("inverse", [givens_unitary_inverse, givens_orthogonal_inverse])
@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3), r"of even order. Received: matrix.shape=\(3, 3\)"),
        (np.ones((2, 4)), r"square. Received: matrix.shape=\(2, 4\)"),
        (2 * np.eye(4), "a distance of 6.0"),
        (np.full((2, 2), np.nan), "NaN or infinite"),
    ],
)
def test_matrices_without_angles(inverse, matrix, message):
    with pytest.raises(ValueError, match=f"`matrix` must be .*{message}"):
        inverse(matrix)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, "tunable", 2), '`units` must be even for style="tunable".*units=5'),
        ((6, "fft", None), "`units` must be a power of two.*Received: units=6"),
        ((1, "fft", None), "`units` must be a power of two.*Received: units=1"),
        ((4, "tunable", 3), "`capacity` must be .*Received: capacity=3"),
        ((4, "tunable", 0), "`capacity` must be .*Received: capacity=0"),
        ((4, "tunable", -2), "`capacity` must be .*Received: capacity=-2"),
        ((4, "tunable", 2.0), "`capacity` must be .*Received: capacity=2.0"),
        ((4, "tunable", None), "`capacity` must be .*Received: capacity=None"),
        ((4, "banded", 2), "`style` must be .*Received: style='banded'"),
    ],
)
def test_layouts_that_there_are_not(arguments, message):
    with pytest.raises(ValueError, match=message):
        givens.angles_shape(*arguments)


@pytest.mark.parametrize(
    ("shapes", "name"),
    [
        (((1, 4), (1, 4), (5,)), "units"),
        (((1, 3), (1, 1), (4,)), "phases"),
        (((1, 3), (1, 3), (3,)), "output_phases"),
    ],
)
def test_shapes_must_agree(shapes, name):
    with pytest.raises(ValueError, match=f"`{name}` must .*Received: {name}"):
        givens.givens_unitary(*(np.zeros(shape) for shape in shapes))
    with pytest.raises(ValueError, match="`angles` must .*Received: angles.shape"):
        givens.givens_orthogonal(np.zeros((3, 2)), style="fft")


@pytest.mark.skipif(not ON_TENSORFLOW, reason="JAX compiles with XLA always")
@pytest.mark.parametrize("capacity", [2, 2 * MAX_UNROLLED])
def test_compiles_and_many_layers_are_one_loop(capacity):
    import tensorflow as tf

    free = [tf.constant(x) for x in draw("tunable", 6, capacity)]

    def value_and_gradient(*free):
        with tf.GradientTape() as tape:
            tape.watch(free)
            value = tf.reduce_sum(givens.givens_unitary(*free) ** 3)
        return value, tape.gradient(value, free)

    graph = tf.function(value_and_gradient)
    compiled = tf.function(value_and_gradient, jit_compile=True)(*free)
    for found, expected in zip(
        tf.nest.flatten(compiled), tf.nest.flatten(graph(*free)), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e4 * EPS)
    nodes = graph.get_concrete_function(*free).graph.as_graph_def().node
    loops = [node for node in nodes if "While" in node.op]
    assert len(loops) == (2 if capacity > MAX_UNROLLED else 0)
