"""A base that follows the training: the paper's algorithm, on paper and in layers."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import OrthoDense, ScoRNN, ScuRNN
from keras_ortho import parametrizations as sets
from keras_ortho.optimizers import paper_optimizer
from keras_ortho.training_callbacks import Rebase
from tests import reference
from tests.saving import reloaded

pytestmark = [
    pytest.mark.backends,
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]
EPS, EPS32 = np.finfo("float64").eps, np.finfo("float32").eps
N, SIGNS = 5, [1, 1, 1, -1, -1]
TORCH = keras.backend.backend() == "torch"


@keras.saving.register_keras_serializable(package="tests")
def products(y_true, y_pred):
    """A loss with the gradient `y_true` of the sum over a batch."""
    return ops.sum(y_true * y_pred, axis=-1)


def dense(kind=None, **kwargs):
    """A layer whose output for the identity is the matrix."""
    keras.utils.set_random_seed(0)
    kind = kind or sets.Rebased(sets.ScaledCayley())
    layer = OrthoDense(N, kind, use_bias=False, dtype="float64", **kwargs)
    model = keras.Sequential([keras.Input((N,), dtype="float64"), layer])
    entries = np.random.default_rng(1).normal(size=N * (N - 1) // 2)
    layer.trainable_variables[0].assign(entries)
    return model, layer, entries


def values(layer):
    return {v.name: ops.convert_to_numpy(v) for v in layer.variables}


def descend(map, entries, gradient, rate, updates, every):
    """The paper's algorithm with plain descent, by central differences."""
    base, start = np.eye(N), map(np.zeros_like(entries))
    for update in range(updates):
        if update and update % every == 0:
            base = base @ map(entries) @ start.T
            entries = np.zeros_like(entries)
        slope = reference.central_differences(
            lambda a, base=base: np.sum((base @ map(a)) * gradient),
            entries,
            EPS ** (1 / 3),
        )
        entries = entries - rate * slope
    return base @ map(entries)


@pytest.mark.parametrize(
    ("kind", "map"),
    [
        (sets.ScaledCayley(2), lambda a: reference.scaled_cayley(a, SIGNS)),
        (sets.SkewExponential(), lambda a: reference.exponential(a, N)),
    ],
    ids=["cayley", "exponential"],
)
@pytest.mark.parametrize("by", ["itself", "itself, compiled", "a callback"])
def test_is_the_algorithm_of_the_paper(kind, map, by, tmp_path):
    """Also in a run that is broken off, and goes on from what was saved."""
    called = by == "a callback"
    model, _, entries = dense(sets.Rebased(kind, None if called else 3))
    gradient = np.random.default_rng(2).normal(size=(N, N))
    rate, updates = 0.1, 8
    # The loss is the mean over the rows of the identity.
    optimizer = keras.optimizers.SGD(N * rate)
    model.compile(optimizer, products, jit_compile=by == "itself, compiled")
    x, y = (np.tile(each, (2, 1)) for each in (np.eye(N), gradient))
    fit = {"batch_size": N, "epochs": updates // 4, "shuffle": False, "verbose": 0}
    for _ in range(2):
        model = reloaded(model, tmp_path)
        model.fit(x, y, **fit, callbacks=[Rebase(every=3)] if called else [])
        model.predict(x, verbose=0)  # Only training counts.
        model.evaluate(x, y, verbose=0)
    layer = model.layers[-1]
    expected = descend(map, entries, gradient, rate, updates, every=3)
    without = descend(map, entries, gradient, rate, updates, every=updates)
    tolerance = 100 * updates * N * EPS ** (2 / 3)
    np.testing.assert_allclose(layer.kernel_matrix(), expected, atol=tolerance)
    assert np.abs(expected - without).max() > 100 * tolerance
    found = values(layer)
    assert found["recurrent_passes"] == (0 if called else 2)
    assert (np.abs(found["recurrent_skew_origin"]).max() > 0.1) != called
    assert np.abs(found["recurrent_base"] - np.eye(N)).max() > 0.1


@pytest.mark.parametrize("n", [16, pytest.param(171, marks=pytest.mark.slowest)])
@pytest.mark.slow_on_jax
def test_orthogonal_after_10_000_updates(n):
    """Under a constant torque, which drives `A` to where it would be without a base."""
    torque = np.random.default_rng(0).normal(size=n * (n - 1) // 2).astype("float32")

    def energy(entries):
        return -ops.sum(entries * torque)

    kind = sets.Rebased(sets.ScaledCayley(1), 20)
    layer = OrthoDense(n, kind, use_bias=False, kernel_regularizer=energy)
    model = keras.Sequential([keras.Input((n,)), layer])
    sgd, together = keras.optimizers.SGD(0.1), 1 if TORCH else 500
    model.compile(sgd, lambda y, x: 0.0 * ops.sum(x), steps_per_execution=together)
    eye = np.tile(np.eye(n, dtype="float32"), (500, 1))
    model.fit(eye, eye, batch_size=n, epochs=20, verbose=0)
    assert np.abs(values(layer)["recurrent_skew"]).max() > 1e3
    assert sets.orthogonality_error(layer.kernel_matrix()) <= n * EPS32


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("cls", [ScoRNN, ScuRNN])
def test_a_base_in_few_bits(cls):
    """A move leaves the matrix as it is, to the rounding of float32."""
    n, moves = 8, 20
    layer = cls(n, rebase_every=1, dtype="float16")
    layer.build((None, None, 1))
    before = ops.convert_to_numpy(layer.recurrent_matrix())
    for _ in range(moves + 1):
        layer(np.ones((1, 2, 1)), training=True)
    matrix = ops.convert_to_numpy(layer.recurrent_matrix())
    base = ops.convert_to_numpy(layer.cell.recurrent_base)
    assert np.abs(base - np.eye(*base.shape)).max() > 0.01
    # Each move has a product of two matrices of norm 1.
    np.testing.assert_allclose(matrix, before, atol=2 * moves * n * EPS32)
    assert sets.orthogonality_error(matrix) <= n * EPS32


AVERAGING = keras.optimizers.SGD(use_ema=True)
AVERAGES = "`optimizer` must not average .*(sgd|recurrent)[_0-9]*$"


@pytest.mark.parametrize(
    ("every", "optimizer", "message"),
    [
        (None, keras.optimizers.SGD(), "`model` must contain .* Received"),
        (9, keras.optimizers.LossScaleOptimizer(AVERAGING), AVERAGES),
        (9, paper_optimizer(AVERAGING), AVERAGES),
    ],
)
def test_what_the_callback_refuses(every, optimizer, message):
    model = keras.Sequential([keras.Input((3, 1)), ScoRNN(4, rebase_every=every)])
    model.compile(optimizer, "mse")
    with pytest.raises(ValueError, match=message):
        model.fit(np.ones((2, 3, 1)), np.ones((2, 4)), callbacks=[Rebase()], verbose=0)


@pytest.mark.parametrize(
    ("together", "accumulated", "every", "batches", "epochs", "expected"),
    [
        (1, None, 5, 8, 2, [5, 10, 15]),
        (2, None, 5, 8, 2, [6, 10, 16]),
        (2, None, 3, 3, 4, [3, 6, 9, 12]),  # Two executions of three batches.
        (1, 2, 3, 14, 1, [3, 6]),  # Every six batches.
    ],
)
def test_a_run_that_goes_on_moves_the_base_as_if_it_had_not_ended(
    together, accumulated, every, batches, epochs, expected
):
    if together > 1 and TORCH:
        pytest.skip("Keras takes one step at a time there")
    moved = []
    model, layer, _ = dense()
    layer.rebase = lambda: moved.append(int(model.optimizer.iterations))
    sgd = keras.optimizers.SGD(0.1, gradient_accumulation_steps=accumulated)
    model.compile(sgd, products, steps_per_execution=together)
    x = np.tile(np.eye(N), (batches, 1))
    fit = {"batch_size": N, "verbose": 0, "callbacks": [Rebase(every=every)]}
    for epoch in range(epochs):
        model.fit(x, x, epochs=epoch + 1, initial_epoch=epoch, **fit)
    assert moved == expected
