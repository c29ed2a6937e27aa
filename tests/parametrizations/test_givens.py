import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho.parametrizations import givens
from tests import reference
from tests.reference import random_orthogonal, random_unitary

pytestmark = pytest.mark.backends

EPS = np.finfo("float64").eps
# The code is the same on every backend, and JAX compiles each operation for each
# size: there, a few do.
ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
ORDERS = [2, 4, 6, 16, 60] if ON_TENSORFLOW else [6]


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


def assert_reached(matrix, eps=EPS):
    units = len(matrix)
    free = givens.givens_unitary_inverse(matrix)
    assert free[0].shape == free[1].shape == (units // 2, units - 1)
    np.testing.assert_allclose(
        givens.givens_unitary(*free),
        reference.complex_block(matrix),
        atol=10 * units * eps,
    )
    if np.isrealobj(matrix):
        angles, signs = givens.givens_orthogonal_inverse(matrix)
        assert np.prod(signs) == np.sign(np.linalg.det(matrix))
        found = givens.givens_orthogonal(angles, signs)
        np.testing.assert_allclose(found, matrix, atol=10 * units * eps)


@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("seed", range(2))
def test_every_matrix_is_reached(n, seed):
    orthogonal = random_orthogonal(n, seed)
    for matrix in (random_unitary(n, seed), orthogonal, orthogonal[::-1]):
        assert_reached(matrix)


@pytest.mark.parametrize(
    "matrix",
    [np.eye(6), -np.eye(6), np.eye(6)[::-1], np.eye(6)[[2, 0, 1, 4, 5, 3]]],
    ids=["identity", "minus", "backwards", "cycles"],
)
def test_matrices_with_many_zeros_are_reached(matrix):
    assert_reached(matrix)
    assert_reached(1j * matrix)


def test_a_matrix_of_low_precision_is_reached_in_its_precision():
    assert_reached(random_unitary(8).astype("complex64"), np.finfo("float32").eps)


@pytest.mark.skipif(not ON_TENSORFLOW, reason="JAX compiles with XLA always")
@pytest.mark.parametrize("capacity", [2, 2 * givens.MAX_UNROLLED])
def test_compiles_and_many_layers_are_one_loop(capacity):
    import tensorflow as tf

    random = np.random.default_rng(0)
    shape = givens.angles_shape(6, "tunable", capacity)
    free = [tf.constant(random.uniform(-4, 4, size)) for size in (shape, shape, 6)]

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
    assert len(loops) == (2 if capacity > givens.MAX_UNROLLED else 0)
