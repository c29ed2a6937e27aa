"""Which recurrent matrices training can reach.

From its own initializer to a random target, by L-BFGS on the free variables of each
cell whose parametrization is of full capacity, in float64.
"""

import keras
import numpy as np
import pytest
from keras import ops
from scipy import optimize

import keras_ortho
from tests.reference import complex_block, random_unitary

N = 4
# To the target in 1e-6: L-BFGS stops where the gradient is below 1e-12, and the
# distance is of the order of the gradient.
REACHED = 1e-6

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="one backend will do"
)


# Random matrices: real ones of the determinant that the cell starts with.


def orthogonal(determinant, seed=7):
    matrix, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(N, N)))
    matrix[0] *= determinant * np.linalg.det(matrix)
    return matrix


def unitary(_):
    return complex_block(random_unitary(N, 3))


def of_spectrum(determinant, margin=0.5):
    """A matrix of singular values in 1 +- 0.9 of the margin."""
    values = 1 + 0.9 * margin * np.linspace(-1, 1, N)
    return orthogonal(determinant) * values @ orthogonal(1, seed=9)


def general(_):
    return np.random.default_rng(6).normal(size=(N, N))


def antisymmetric(_, diffusion=0.1):
    return general(0) - general(0).T - diffusion * np.eye(N)


def make(name, **arguments):
    cell = getattr(keras_ortho, f"{name}Cell")(
        N, dtype="float64", trainable_initial_state=False, **arguments
    )
    cell.build((None, 3))
    return cell


def distance_after_descent(cell, target):
    """The distance from the target that L-BFGS comes to, in float64."""
    variables = [
        variable
        for variable in cell.trainable_variables
        if variable.name == "recurrent_kernel"
        or not variable.name.endswith(("kernel", "bias"))
    ]
    shapes = [tuple(variable.shape) for variable in variables]
    splits = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])[:-1]
    import tensorflow as tf

    @tf.function(autograph=False)  # Traced once for hundreds of steps.
    def value_and_gradients(values):
        with tf.GradientTape() as tape:
            tape.watch(values)
            with keras.StatelessScope(list(zip(variables, values, strict=True))):
                matrix = cell.recurrent_matrix()
            loss = ops.sum(ops.square(matrix - target))
        return loss, tape.gradient(loss, values)

    def function(flat):
        parts = zip(np.split(flat, splits), shapes, strict=True)
        loss, found = value_and_gradients([tf.constant(x.reshape(s)) for x, s in parts])
        return float(loss), np.concatenate([np.ravel(g) for g in found])

    start = np.concatenate([np.ravel(variable) for variable in variables])
    options = {"maxiter": 3000, "ftol": 0, "gtol": 1e-12, "maxcor": 50}
    result = optimize.minimize(
        function, start, jac=True, method="L-BFGS-B", options=options
    )
    return float(np.sqrt(result.fun))


@pytest.mark.parametrize(
    ("cell", "arguments", "target"),
    [
        ("ScoRNN", {"negative_ones": 1}, orthogonal),
        ("ScoRNN", {"negative_ones": 2}, orthogonal),
        ("ScuRNN", {}, unitary),
        ("SVDRNN", {"spectral_margin": 0.5}, of_spectrum),
        ("ORNN", {}, orthogonal),
        ("EURNN", {"capacity": N}, unitary),
        ("GORU", {"style": "tunable", "capacity": N}, orthogonal),
        ("NNRNN", {"map": "exponential"}, general),
        ("NNRNN", {"map": "cayley"}, general),
        ("FactorizedRNN", {"spectral_margin": 0.5}, of_spectrum),
        ("AntisymmetricRNN", {"diffusion": 0.1}, antisymmetric),
        ("AntisymmetricRNN", {"antisymmetric": False}, general),
    ],
)
def test_training_reaches_a_random_target(cell, arguments, target):
    made = make(cell, **arguments)
    determinant = np.sign(np.linalg.det(np.asarray(made.recurrent_matrix())))
    assert distance_after_descent(made, target(determinant)) <= REACHED


@pytest.mark.parametrize("negative_ones", [0, 1])
def test_scornn_stays_on_its_determinant(negative_ones):
    """A matrix of the other determinant is at least 2 away, in the Frobenius norm.

    Of `Q = W^T target`, orthogonal of determinant -1, one eigenvalue is -1:
    `||W - target||_F^2 = 2 n - 2 tr Q >= 4`.
    """
    wrong = orthogonal(1 if negative_ones else -1)
    cell = make("ScoRNN", negative_ones=negative_ones)
    assert distance_after_descent(cell, wrong) >= 2 - REACHED
