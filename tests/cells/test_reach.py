"""Which recurrent matrices training can reach.

From its own initializer to a random target, by L-BFGS on the free variables of each
cell whose parametrization is of full capacity, in float64.
"""

import keras
import numpy as np
import pytest
from keras import ops
from scipy import optimize

from keras_ortho import (
    AntisymmetricRNNCell,
    EURNNCell,
    FactorizedRNNCell,
    GORUCell,
    NNRNNCell,
    ORNNCell,
    ScoRNNCell,
    ScuRNNCell,
    SVDRNNCell,
)
from tests import reference

N = 4
# To the target in 1e-6: L-BFGS stops where the gradient is below 1e-12, and the
# distance is of the order of the gradient.
REACHED = 1e-6

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="one backend will do"
)


def orthogonal(seed, determinant):
    matrix, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(N, N)))
    matrix[0] *= determinant * np.linalg.det(matrix)
    return matrix


def unitary(seed, determinant=1):
    random = np.random.default_rng(seed)
    matrix, _ = np.linalg.qr(random.normal(size=(2, N, N)).T @ [1, 1j])
    matrix[0] *= determinant / np.linalg.det(matrix)
    return reference.complex_block(matrix)


def spectrum(seed, margin, determinant=1):
    """A matrix of singular values in 1 +- 0.9 of the margin."""
    values = 1 + 0.9 * margin * np.linspace(-1, 1, N)
    left, right = orthogonal(seed, determinant), orthogonal(seed + 1, 1)
    return left * values @ right


def general(seed):
    return np.random.default_rng(seed).normal(size=(N, N))


def antisymmetric(seed, diffusion):
    matrix = general(seed)
    return matrix - matrix.T - diffusion * np.eye(N)


def descend(function, start, target):
    """The distance from the target that L-BFGS comes to, in float64."""
    splits = np.cumsum([x.size for x in start])[:-1]

    def free(flat):
        parts = np.split(flat, splits)
        return [x.reshape(y.shape) for x, y in zip(parts, start, strict=True)]

    import tensorflow as tf

    @tf.function(autograph=False)  # Traced once for hundreds of steps.
    def value_and_gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = ops.sum(ops.square(function(*x) - target))
        return loss, tape.gradient(loss, x)

    def value_and_gradient(flat):
        loss, found = value_and_gradients([tf.constant(x) for x in free(flat)])
        return float(loss), np.concatenate([g.numpy().ravel() for g in found])

    result = optimize.minimize(
        value_and_gradient,
        np.concatenate([x.ravel() for x in start]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 3000, "ftol": 0, "gtol": 1e-12, "maxcor": 50},
    )
    return float(np.sqrt(result.fun))


def found_distance(cell, target):
    cell.build((None, 3))
    variables = [
        variable
        for variable in cell.trainable_variables
        if variable.name == "recurrent_kernel"
        or not variable.name.endswith(("kernel", "bias"))
    ]
    start = [np.asarray(v) for v in variables]

    def function(*values):
        with keras.StatelessScope(list(zip(variables, values, strict=True))):
            return cell.recurrent_matrix()

    return descend(function, start, target)


def determinant_of(cell):
    cell.build((None, 3))
    return np.sign(np.linalg.det(np.asarray(cell.recurrent_matrix())))


def make(cell, seed=0, **arguments):
    keras.utils.set_random_seed(seed)
    return cell(N, dtype="float64", trainable_initial_state=False, **arguments)


@pytest.mark.parametrize(
    ("cell", "arguments", "target"),
    [
        (ScoRNNCell, {"negative_ones": 1}, orthogonal(1, -1)),
        (ScoRNNCell, {"negative_ones": 2}, orthogonal(2, 1)),
        (ScuRNNCell, {}, unitary(3)),
        (ScuRNNCell, {}, unitary(4, -1)),
        (SVDRNNCell, {"spectral_margin": 0.5}, None),
        (ORNNCell, {}, None),
        (EURNNCell, {"capacity": N}, unitary(5, 1j)),
        (GORUCell, {"style": "tunable", "capacity": N}, None),
        (NNRNNCell, {"map": "exponential"}, general(6)),
        (NNRNNCell, {"map": "cayley"}, general(6)),
        (FactorizedRNNCell, {"spectral_margin": 0.5}, None),
        (AntisymmetricRNNCell, {"diffusion": 0.1}, antisymmetric(7, 0.1)),
        (AntisymmetricRNNCell, {"antisymmetric": False}, None),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_training_reaches_a_random_target(cell, arguments, target):
    if target is None:
        determinant = determinant_of(make(cell, **arguments))
        target = {
            SVDRNNCell: spectrum(8, 0.5, determinant),
            ORNNCell: orthogonal(9, determinant),
            GORUCell: orthogonal(9, determinant),
            FactorizedRNNCell: spectrum(10, 0.5, determinant),
            AntisymmetricRNNCell: general(11),
        }[cell]
    assert found_distance(make(cell, **arguments), target) <= REACHED


@pytest.mark.parametrize("negative_ones", [0, 1])
def test_scornn_stays_on_its_determinant(negative_ones):
    """A matrix of the other determinant is at least 2 away, in the Frobenius norm.

    Of `Q = W^T target`, orthogonal of determinant -1, one eigenvalue is -1:
    `||W - target||_F^2 = 2 n - 2 tr Q >= 4`.
    """
    wrong = orthogonal(12, 1 if negative_ones else -1)
    cell = make(ScoRNNCell, negative_ones=negative_ones)
    assert found_distance(cell, wrong) >= 2 - REACHED
    for determinant in (1, -1):
        block = unitary(12, determinant)
        assert found_distance(make(ScuRNNCell), block) <= REACHED
