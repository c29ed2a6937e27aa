"""Theorems of the papers in numbers, for the layers that they are about."""

import numpy as np
import pytest
from keras import ops

from keras_ortho import ENRNN, SVDRNN, BNPDense, diagnostics, freeze
from tests import reference
from tests.cells.building import built, lively, weights_of
from tests.gradients import weight_gradients

pytestmark = pytest.mark.backends
EPS, normal = np.finfo("float64").eps, np.random.default_rng(0).normal


def linear_svdrnn(n, x, target, readout, **values):
    """The risk for `o = Y sum W^i x^(i-1)`, its gradient for `W`, and `W`."""
    given = {"activation": "linear", "use_bias": False, "spectral_margin": 0.5}
    given |= {"kernel_initializer": "identity", "dtype": "float64", "features": n}
    # With a weight for the initial state, what is frozen is no layer of Keras.
    given |= {"trainable_initial_state": True, "initial_state_initializer": "zeros"}
    layer = lively(built(SVDRNN, n, **given), names=["singular_logits"])
    for weight in layer.weights:
        weight.assign(values.get(weight.name, weight))
    # The last comes first, and a zero at the end, for one more product with W.
    frames = np.concatenate([x[:, ::-1], 0 * x[:, :1]], axis=1)

    def risk(h):
        return ops.sum((ops.matmul(h, readout.T) - target) ** 2) / len(x)

    _, found = weight_gradients(freeze(layer), risk, frames)
    matrix = ops.convert_to_numpy(layer.recurrent_matrix())
    return float(risk(layer(frames))), found["recurrent_kernel"].T, matrix.T


def test_claim_1_of_zhang_2018():
    """`R = ||(Y W - A) Sigma^(1/2)||^2 + C`, and its gradient, for column vectors."""
    x, noise, y = normal(size=(6, 4, 3)), normal(size=(6, 3)), normal(size=(3, 3))
    a, flat = normal(size=(3, 12)), x.reshape(6, 12)
    # With both signs of the noise, its mean for each input is zero.
    target = np.concatenate([flat @ a.T + noise, flat @ a.T - noise])
    risk, gradient, w = linear_svdrnn(3, np.concatenate([x, x]), target, y)
    power = [np.linalg.matrix_power(w, i) for i in range(5)]
    error, sigma = y @ np.hstack(power[1:]) - a, flat.T @ flat / 6
    expected = np.trace(error @ sigma @ error.T) + np.sum(noise**2) / 6
    # Some hundred roundings: sums of 12 products, after 5 steps.
    assert risk == pytest.approx(expected, rel=1000 * EPS)
    # With 2 Y^T, as printed, for changes that commute with W (the remark of A.6).
    parts = np.split(2 * y.T @ error @ sigma, 4, axis=1)
    printed = sum((i + 1) * parts[i] @ power[i].T for i in range(4))
    slopes = (np.tensordot(power, each) for each in (gradient, printed))
    np.testing.assert_allclose(*slopes, rtol=0, atol=1e4 * EPS * np.abs(printed).max())


def test_theorem_5_of_zhang_2018():
    """It holds for one step. For more, the parts `E_i` of its proof may cancel."""
    x, a = normal(size=(9, 1, 3)), normal(size=(3, 3))
    risk, gradient, w = linear_svdrnn(3, x, x[:, 0] @ a.T, np.eye(3))
    least, _, largest = np.linalg.eigvalsh(x[:, 0].T @ x[:, 0] / 9)
    bound = 4 * least**2 * np.sum((w - a) ** 2)  # Equal if along one axis only.
    assert np.sum(gradient**2) > bound > 4 * least**2 / largest * risk > 0
    # n = 1, t = 2, Sigma = I: R' = 4 w^3 - 2 w - 0.2 is zero at two singular values of
    # the layer, which are between 0.5 and 1.5, but R is not the same there.
    x, a, risks = 2**0.5 * np.eye(2)[:, :, None], np.array([[0.1], [1.0]]), []
    for w in [w for w in np.roots([4, 0, -2, -0.2]) if abs(w) > 0.5]:
        values = {"left_reflectors": [np.sign(w)], "right_reflectors": [1.0]}
        values["singular_logits"] = [np.log((abs(w) - 0.5) / (1.5 - abs(w)))]
        risk, slope, _ = linear_svdrnn(1, x, 2**0.5 * a, np.eye(1), **values)
        assert abs(slope[0, 0]) < 100 * EPS  # A few terms of at most 4.
        risks.append(risk)
    assert max(risks) > min(risks) + 0.2


@pytest.mark.parametrize(("norm", "bias"), [(0.9, 0.5), (0.3, 100.0)])
def test_theorem_2_7_1_of_the_dissertation(norm, bias):
    """Equation 2.83, an equality if `W_S` is a scaled rotation and all ReLUs active."""
    given = {"features": 2, "activation": "relu", "dtype": "float64"}
    layer = lively(built(ENRNN, 3, 4, **given), seed=1)
    short = reference.random_orthogonal(4, 0) if bias > 1 else normal(size=(4, 4))
    layer.cell.short_term_matrix.assign(norm * short / np.linalg.norm(short, 2))
    layer.cell.bias.assign(np.full(7, bias))
    x, units = normal(size=(2, 6, 2)), slice(3, None)
    states = diagnostics.end_to_end_jacobians(layer, x, units=units)
    inputs = diagnostics.input_sensitivity(layer, x, units=units)
    lags = np.subtract.outer(np.arange(6), np.arange(6))
    most = np.linalg.norm(weights_of(layer)["kernel"][:, 3:], 2) * norm**lags
    pairs = [(np.linalg.norm(states, 2, (1, 2)), np.full(2, norm**6))]
    for found, bound in [*pairs, (inputs, np.where(lags < 0, 0, most))]:
        assert np.all(found <= bound + 100 * EPS)  # Of six products, as norms.
        if bias > 1:
            np.testing.assert_allclose(found, bound, rtol=1e-9)


def test_equations_3_24_to_3_26_of_the_dissertation():
    h, epsilon = np.array([0.01, 1.0, 1.0, 100.0]) * (1 + normal(size=(12, 4))), 1e-12
    p, d = np.eye(5), np.diag([1, *(h.var(axis=0) + epsilon) ** -0.5])
    p[0, 1:] = -h.mean(axis=0)
    wide, centered = (np.insert(x, 0, 1, axis=1) for x in (h, h - h.mean(axis=0)))
    np.testing.assert_allclose(wide @ p, centered, atol=1000 * EPS)  # 3.25
    # Of L = a^2 / 2, units with the columns of M = P D have the gradient M M^T dL(M), M
    # times the Hessian for z. M^-1 multiplies rounding by a mean over a deviation.
    layer = built(BNPDense, 5, epsilon, features=4, dtype="float64")
    layer.set_weights([(p @ d)[1:], (p @ d)[0]])
    found = weight_gradients(layer, lambda a: ops.sum(a**2) / 24, h)[1]
    hessian = np.linalg.solve(p @ d, np.vstack([found["bias"], found["kernel"]]))
    whole = wide @ p @ d  # 3.24, with S = I / N:
    np.testing.assert_allclose(hessian, whole.T @ whole / 12, rtol=0, atol=1e4 * EPS)
    # 3.26, squared: the condition number of the Hessian is that of H P D, squared.
    least = min(np.linalg.cond(whole * np.exp(normal(size=5))) for _ in range(1000))
    assert np.linalg.cond(hessian) <= 5 * least**2 < np.linalg.cond(wide @ p) ** 2
