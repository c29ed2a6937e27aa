"""A base that follows the training: the paper's algorithm, on paper and in layers."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import OrthoDense, OrthoRNN, ScoRNN, ScuRNN
from keras_ortho import parametrizations as sets
from keras_ortho.optimizers import paper_optimizer
from keras_ortho.parametrizations import random_orthogonal
from keras_ortho.parametrizations.cayley import diagonal_signs
from keras_ortho.training_callbacks import Rebase
from tests import reference
from tests.saving import reloaded

pytestmark = [
    pytest.mark.backends,
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]

EPS = np.finfo("float64").eps
N = 5


def cayley(entries):
    return reference.scaled_cayley(entries, diagonal_signs(N, 2))


MAPS = {
    "cayley": (sets.ScaledCayley(2), cayley),
    "exponential": (sets.SkewExponential(), lambda a: reference.exponential(a, N)),
}
both = pytest.mark.parametrize(("kind", "map"), MAPS.values(), ids=MAPS)


def products(y_true, y_pred):
    """A loss with the gradient `y_true` of the sum over a batch."""
    return ops.sum(y_true * y_pred, axis=-1)


def dense(kind):
    """A layer whose output for the identity is the matrix."""
    keras.utils.set_random_seed(0)
    layer = OrthoDense(N, kind, use_bias=False, dtype="float64")
    model = keras.Sequential([keras.Input((N,), dtype="float64"), layer])
    entries = np.random.default_rng(1).normal(size=N * (N - 1) // 2)
    skew_of(layer).assign(entries)
    return model, layer, entries


def skew_of(layer):
    (found,) = layer.trainable_variables
    return found


def values(layer):
    return {v.name: ops.convert_to_numpy(v) for v in layer.variables}


def descend(map, entries, gradient, rate, updates, every):
    """The paper's algorithm with plain descent, by central differences."""
    base, start = np.eye(N), map(np.zeros_like(entries))
    step = EPS ** (1 / 3)
    for update in range(updates):
        if update and update % every == 0:
            base = base @ map(entries) @ start.T
            entries = np.zeros_like(entries)
        slope = reference.central_differences(
            lambda a, base=base: np.sum((base @ map(a)) * gradient), entries, step
        )
        entries = entries - rate * slope
    return base @ map(entries)


@both
@pytest.mark.parametrize("by", ["itself", "itself, compiled", "a callback"])
def test_is_the_algorithm_of_the_paper(kind, map, by):
    kind = (
        sets.Rebased(kind) if by == "a callback" else sets.Rebased(kind, rebase_every=3)
    )
    model, layer, entries = dense(kind)
    gradient = np.random.default_rng(2).normal(size=(N, N))
    rate, updates = 0.1, 8
    # The loss is the mean over the rows of the identity.
    optimizer = keras.optimizers.SGD(N * rate)
    model.compile(optimizer, products, jit_compile=by == "itself, compiled")
    model.fit(
        np.tile(np.eye(N), (2, 1)),
        np.tile(gradient, (2, 1)),
        batch_size=N,
        epochs=updates // 2,
        shuffle=False,
        verbose=0,
        callbacks=[Rebase(every=3)] if by == "a callback" else [],
    )
    expected = descend(map, entries, gradient, rate, updates, every=3)
    without = descend(map, entries, gradient, rate, updates, every=updates)
    tolerance = 100 * updates * N * EPS ** (2 / 3)
    np.testing.assert_allclose(layer.kernel_matrix(), expected, atol=tolerance)
    assert np.abs(expected - without).max() > 100 * tolerance
    found = values(layer)
    if by == "a callback":
        assert np.abs(found["recurrent_skew_origin"]).max() == 0
    else:
        assert found["recurrent_passes"] == 2
        assert np.abs(found["recurrent_skew_origin"]).max() > 0.1
    assert np.abs(found["recurrent_base"] - np.eye(N)).max() > 0.1


def test_only_training_counts():
    model, layer, _ = dense(sets.Rebased(sets.ScaledCayley(), rebase_every=1))
    x = np.eye(N)
    expected = ops.convert_to_numpy(layer.kernel_matrix())
    model.compile("sgd", "mse")
    model.predict(x, verbose=0)
    model.evaluate(x, x, verbose=0)
    model(x)
    assert values(layer)["recurrent_passes"] == 0
    model(x, training=True)
    assert values(layer)["recurrent_passes"] == 1
    before = values(layer)["recurrent_base"]
    np.testing.assert_array_equal(before, np.eye(N))
    model(x, training=True)
    assert values(layer)["recurrent_passes"] == 1
    assert np.abs(values(layer)["recurrent_base"] - before).max() > 0.1
    np.testing.assert_allclose(layer.kernel_matrix(), expected, atol=1e3 * EPS)


@pytest.mark.slow
@pytest.mark.parametrize("make", [ScoRNN, ScuRNN])
def test_a_layer_of_the_package_rebases_itself(make, tmp_path):
    """And a run that was broken off goes on to the same weights."""
    x = np.random.default_rng(0).normal(size=(12, 6, 2)).astype("float32")
    y = x.sum(axis=1)

    def trained(broken_after):
        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [keras.Input((6, 2)), make(8, rebase_every=2), keras.layers.Dense(2)]
        )
        model.compile(keras.optimizers.RMSprop(1e-2), "mse")
        fit = {"batch_size": 4, "shuffle": False, "verbose": 0}
        model.fit(x, y, epochs=broken_after, **fit)
        if broken_after < 3:
            model = reloaded(model, tmp_path)
            model.fit(x, y, epochs=3 - broken_after, **fit)
        return model

    whole, broken = trained(3), trained(1)
    cell = whole.layers[0].cell
    assert cell.rebase_every == 2
    assert int(cell.recurrent_passes) == 1  # Of nine passes.
    assert np.abs(cell.recurrent_base - np.eye(*cell.recurrent_base.shape)).max() > 0.01
    # The same program, compiled at another time.
    for a, b in zip(whole.get_weights(), broken.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_without_a_base_the_weights_are_those_of_before():
    layer = ScoRNN(4)
    layer.build((None, None, 1))
    names = {w.name for w in layer.weights}
    assert names == {"kernel", "recurrent_skew", "recurrent_signs", "bias"}


@pytest.mark.parametrize("kind", [sets.ScaledCayley(1), sets.SkewExponential()])
def test_any_orthogonal_matrix_can_be_the_base(kind):
    for turn in (1.0, -1.0):
        matrix = np.diag([turn, 1, 1, 1]) @ random_orthogonal(4, 0)
        layer = OrthoRNN(4, sets.Rebased(kind), recurrent_initializer=matrix)
        layer.build((None, None, 1))
        np.testing.assert_allclose(layer.recurrent_matrix(), matrix, atol=1e-6)
        layer.set_recurrent_matrix(matrix.T)
        np.testing.assert_allclose(layer.recurrent_matrix(), matrix.T, atol=1e-6)


@pytest.mark.parametrize("n", [16, pytest.param(171, marks=pytest.mark.slowest)])
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(sets.SkewExponential(), marks=pytest.mark.slow),
        sets.ScaledCayley(1),
    ],
)
@pytest.mark.slow_on_jax
def test_orthogonal_after_10_000_updates(kind, n):
    """Under a constant torque, which drives `A` to where it would be without a base."""
    every, rate, updates = 20, 0.1, 10_000
    torque = np.random.default_rng(0).normal(size=n * (n - 1) // 2).astype("float32")
    layer = OrthoDense(
        n,
        sets.Rebased(kind, every),
        use_bias=False,
        kernel_regularizer=lambda entries: -ops.sum(entries * torque),
    )
    model = keras.Sequential([keras.Input((n,)), layer])
    sgd = keras.optimizers.SGD(rate)
    at_once = 1 if keras.backend.backend() == "torch" else 500
    model.compile(sgd, lambda y, x: 0.0 * ops.sum(x), steps_per_execution=at_once)
    eye = np.tile(np.eye(n, dtype="float32"), (500, 1))
    for _ in range(updates // 500):
        model.fit(eye, eye, batch_size=n, verbose=0)
    entries = ops.convert_to_numpy(skew_of(layer))
    assert np.abs(entries).max() > 1e3
    near = entries - values(layer)["recurrent_skew_origin"]
    # The sum of ten thousand numbers in float32.
    room = updates * np.finfo("float32").eps * np.abs(entries).max()
    assert np.abs(near).max() <= every * rate * np.abs(torque).max() + room
    error = sets.orthogonality_error(layer.kernel_matrix())
    assert error <= n * np.finfo("float32").eps


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("cls", [ScoRNN, ScuRNN])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_base_in_few_bits(cls, dtype):
    """A move leaves the matrix as it is, to the rounding of float32."""
    n, moves = 8, 20
    layer = cls(n, rebase_every=1, dtype=dtype)
    layer.build((None, None, 1))
    before = ops.convert_to_numpy(layer.recurrent_matrix())
    for _ in range(moves + 1):
        layer(np.ones((1, 2, 1)), training=True)
    matrix = ops.convert_to_numpy(layer.recurrent_matrix())
    # Each move has a product of two matrices of norm 1.
    room = 2 * moves * n * np.finfo("float32").eps
    np.testing.assert_allclose(matrix, before, atol=room)
    assert sets.orthogonality_error(matrix) <= n * np.finfo("float32").eps


def test_without_a_base():
    layer = ScoRNN(4)
    with pytest.raises(ValueError, match="built"):
        layer.rebase()
    layer.build((None, None, 1))
    with pytest.raises(ValueError, match="`rebase` requires .* Received: Scaled"):
        layer.rebase()
    model = keras.Sequential([keras.Input((3, 1)), layer])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="`model` must contain .* Received: "):
        model.fit(np.ones((2, 3, 1)), np.ones((2, 4)), callbacks=[Rebase()], verbose=0)


def test_no_averages_of_several_bases():
    model = keras.Sequential([keras.Input((3, 1)), ScoRNN(4, rebase_every=100)])
    averaging = keras.optimizers.SGD(use_ema=True)
    scaled = keras.optimizers.LossScaleOptimizer(averaging)
    for optimizer in (averaging, scaled, paper_optimizer(averaging)):
        model.compile(optimizer, "mse")
        with pytest.raises(
            ValueError, match="`Rebase` requires .*(sgd|recurrent) with"
        ):
            model.fit(
                np.ones((2, 3, 1)), np.ones((2, 4)), callbacks=[Rebase()], verbose=0
            )


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="Keras refuses it there")
def test_updates_where_an_execution_is_not_full():
    """Keras counts two batches where one was left of three."""
    model, _, _ = dense(sets.Rebased(sets.ScaledCayley()))
    moved = []

    class Watched(Rebase):
        def act(self):
            moved.append(int(self.model.optimizer.iterations))

    model.compile("sgd", products, steps_per_execution=2)
    x = np.tile(np.eye(N), (3, 1))
    model.fit(x, x, batch_size=N, epochs=4, verbose=0, callbacks=[Watched(every=3)])
    assert moved == [3, 6, 9, 12]


@pytest.mark.parametrize(
    ("together", "expected"),
    [(1, [5, 10, 15]), (2, [6, 12]), (8, [8, 16])],
)
def test_a_run_that_goes_on_moves_the_base_as_if_it_had_not_ended(together, expected):
    if together > 1 and keras.backend.backend() == "torch":
        pytest.skip("Keras takes one step at a time there")
    moved = []

    class Watched(Rebase):
        def act(self):
            moved.append(int(self.model.optimizer.iterations))

    model, _, _ = dense(sets.Rebased(sets.ScaledCayley()))
    model.compile("sgd", products, steps_per_execution=together)
    x = np.tile(np.eye(N), (8, 1))
    for epoch in range(2):
        model.fit(
            x,
            x,
            batch_size=N,
            epochs=epoch + 1,
            initial_epoch=epoch,
            verbose=0,
            callbacks=[Watched(every=5)],
        )
    assert moved == expected


@pytest.mark.parametrize("several", [False, True])
def test_updates_of_accumulated_gradients(several):
    """Every three updates are every six batches."""
    model, layer, _ = dense(sets.Rebased(sets.ScaledCayley()))
    bases = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if keras.backend.backend() == "jax":
                self.model.jax_state_sync()
            bases.append(values(layer)["recurrent_base"])

    accumulating = keras.optimizers.SGD(0.1, gradient_accumulation_steps=2)
    optimizer = paper_optimizer(accumulating) if several else accumulating
    model.compile(optimizer, products)
    x = np.tile(np.eye(N), (14, 1))
    model.fit(x, x, batch_size=N, verbose=0, callbacks=[Rebase(every=3), Watch()])
    moved = [i for i in range(1, 14) if np.any(bases[i] != bases[i - 1])]
    assert moved == [5, 11]
