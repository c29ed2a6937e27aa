"""The pair of optimizers, with the package's variables, through Keras's training."""

from collections.abc import Mapping
from typing import ClassVar

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import (
    FullURNN,
    RecurrentCell,
    ScoRNN,
    ScoRNNCell,
)
from keras_ortho.optimizers import (
    RMSpropTF1,
    group_of,
    paper_optimizer,
    two_rate_adam,
)
from tests.saving import reloaded

pytestmark = [
    pytest.mark.backends,
    pytest.mark.filterwarnings("ignore:Skipping variable loading"),
]

TIME, FEATURES, UNITS = 6, 3, 5
# Without XLA JAX runs one operation after the other: what `run_eagerly` does, too.
XLA = [True] if keras.backend.backend() == "jax" else [False, True]
EPS = np.finfo("float32").eps


def make_model(optimizer=None, jit_compile=XLA[0], nested=False):
    keras.utils.set_random_seed(0)
    layer = ScoRNN(UNITS, kernel_initializer="glorot_uniform")
    if nested:
        layer = keras.layers.Bidirectional(
            keras.layers.RNN([ScoRNNCell(UNITS), ScoRNNCell(UNITS)])
        )
    layers = keras.Input((TIME, FEATURES)), layer, keras.layers.Dense(2)
    model = keras.Sequential(layers)
    model.compile(optimizer or paper_optimizer(), "mse", jit_compile=jit_compile)
    return model


def data(batches=4):
    x = np.random.default_rng(0).normal(size=(8 * batches, TIME, FEATURES))
    return x.astype("float32"), x.sum(axis=1)[:, :2].astype("float32")


def fit(model, epochs=1, **kwargs):
    model.fit(*data(), batch_size=8, epochs=epochs, shuffle=False, verbose=0, **kwargs)


def assert_same_weights(model, expected, atol):
    for value, wanted in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_allclose(value, wanted, atol=atol)


def of_optimizer(model, wanted):
    """Names of the variables that one of the two holds slots for."""
    (found,) = [o for o in model.optimizer.optimizers if isinstance(o, wanted)]
    return {v.path.split("/")[-1] for v in found._trainable_variables}


@pytest.mark.parametrize("nested", [False, True])
def test_which_variable_gets_which(nested):
    model = make_model(nested=nested)
    fit(model)
    assert of_optimizer(model, RMSpropTF1) == {"recurrent_skew"}
    assert of_optimizer(model, keras.optimizers.Adam) == {"kernel", "bias"}
    recurrent = next(o for o in model.optimizer.optimizers if type(o) is RMSpropTF1)
    assert len(recurrent._trainable_variables) == (4 if nested else 1)


def test_two_rates():
    """Both Adams are as given, and each has its variables."""
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    optimizer = two_rate_adam(schedule, 2e-3, beta_2=0.9, global_clipnorm=2.0)
    fit(make_model(optimizer))
    recurrent, others = optimizer.optimizers
    assert float(recurrent.learning_rate.numpy()) == pytest.approx(2e-3)
    # After the four updates of `fit`.
    assert float(others.learning_rate) == pytest.approx(0.1 * 0.5**0.4)
    for adam, names in ((recurrent, {"recurrent_skew"}), (others, {"kernel", "bias"})):
        assert (adam.beta_2, adam.global_clipnorm) == (0.9, 2.0)
        assert {v.name for v in adam._trainable_variables} == names


def test_two_rates_with_gradients_of_several_batches():
    """A mean of two means of four is one of eight."""
    models = []
    for steps, batch in ((None, 8), (2, 4)):
        keras.utils.set_random_seed(0)
        layers = FullURNN(2, return_sequences=True), ScoRNN(3), keras.layers.Dense(2)
        model = keras.Sequential([keras.Input((TIME, FEATURES)), *layers])
        model.compile(two_rate_adam(gradient_accumulation_steps=steps), "mse")
        before = [np.array(v) for v in model.trainable_variables]
        model.fit(*data(), batch_size=batch, shuffle=False, verbose=0)
        models.append(model)
    # A rate of 3e-3 times the relative error of a gradient, of some hundred sums.
    assert_same_weights(*models, atol=1e-5)
    for old, new in zip(before, model.trainable_variables, strict=True):
        assert np.abs(np.array(new) - old).max() > 1e-4, new.path


def test_names_and_rates_of_the_groups_that_there_are():
    model = make_model(two_rate_adam())
    schedule = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    logs = model.fit(*data(), callbacks=[schedule], verbose=0).history
    rates = {name: log for name, log in logs.items() if name != "loss"}
    assert set(rates) == {"learning_rate_recurrent", "learning_rate_others"}
    assert rates["learning_rate_recurrent"] == pytest.approx([1.5e-4])
    optimizer = model.optimizer
    message = r"`optimizer.optimizers\[0\].*Received: .* 0: recurrent, 1: others"
    with pytest.raises(AttributeError, match=message):
        optimizer.learning_rate = 0.1
    with pytest.raises(AttributeError, match=message):
        _ = optimizer.learning_rate


def test_two_rates_with_averages_of_the_weights():
    """Of which Keras's callback asks all optimizers, also those without variables."""
    model = make_model(two_rate_adam())
    averages = None
    for x, y in zip(*(np.split(part, 4) for part in data()), strict=True):
        model.fit(x, y, batch_size=8, verbose=0)
        weights = model.get_weights()
        before = averages or weights  # Keras begins with the first update.
        averages = [(a + w) / 2 for a, w in zip(before, weights, strict=True)]
    averaging = make_model(two_rate_adam(ema_momentum=0.5))
    validate = keras.callbacks.SwapEMAWeights()
    history = averaging.fit(
        *data(),
        batch_size=8,
        shuffle=False,
        validation_data=data(),
        callbacks=[validate],
        verbose=0,
    )
    # A rate of 3e-3 times the relative error of a gradient, of some hundred sums.
    for value, wanted in zip(averaging.get_weights(), averages, strict=True):
        np.testing.assert_allclose(value, wanted, atol=1e-5)
    (loss,) = history.history["val_loss"]
    assert loss == pytest.approx(averaging.evaluate(*data(), verbose=0), rel=1e-5)


def test_an_optimizer_of_another_model():
    optimizer = paper_optimizer()
    make_model(optimizer).fit(*data(), verbose=0)
    model = make_model(optimizer)
    message = "`trainable_variables` must .* Received: .*kernel"
    with pytest.raises(ValueError, match=message):
        model.fit(*data(), verbose=0)
    with pytest.raises(ValueError, match=message):
        optimizer.apply(
            [0 * v for v in model.trainable_variables], model.trainable_variables
        )


def test_a_group_without_gradients_stays():
    model = make_model(two_rate_adam())
    layer = model.layers[0]
    matrix = [w for w in layer.trainable_variables if group_of(w) == "recurrent"]
    before = [np.array(w) for w in model.trainable_variables]
    gradients = [
        None if any(w is m for m in matrix) else ops.ones(w.shape)
        for w in model.trainable_variables
    ]
    with pytest.warns(UserWarning, match="Gradients do not exist.*recurrent_skew"):
        model.optimizer.apply(gradients, model.trainable_variables)
    for gradient, old, new in zip(
        gradients, before, model.trainable_variables, strict=True
    ):
        assert np.array_equal(old, np.array(new)) == (gradient is None), new.path
    with pytest.raises(ValueError, match="No gradients"):
        model.optimizer.apply([None] * len(gradients), model.trainable_variables)
    with pytest.raises(ValueError, match="one-to-one"):
        model.optimizer.apply(gradients[1:], model.trainable_variables)


def test_what_has_no_weight_decay():
    decaying = keras.optimizers.SGD(0.1, weight_decay=0.5)
    optimizer = paper_optimizer(keras.optimizers.SGD(0.1, weight_decay=0.5), decaying)
    optimizer.exclude_from_weight_decay(var_names=["bias", "recurrent_skew"])
    model = make_model(optimizer)
    before = {w.path: np.array(w) + 1.0 for w in model.trainable_variables}
    for w in model.trainable_variables:
        w.assign(before[w.path])
    gradients = [ops.zeros(w.shape) for w in model.trainable_variables]
    optimizer.apply(gradients, model.trainable_variables)
    for w in model.trainable_variables:
        kept = "bias" in w.path or "recurrent_skew" in w.path
        factor = 1.0 if kept else 1 - 0.1 * 0.5
        expected = factor * before[w.path]
        np.testing.assert_allclose(np.array(w), expected, rtol=8 * EPS)


@pytest.mark.backends
def test_some_of_the_variables():
    # As Adam's own step on these alone: the others, and their optimizers, stay.
    model = make_model(two_rate_adam())
    model.optimizer.build(model.trainable_variables)
    before = [ops.convert_to_numpy(variable) for variable in model.trainable_variables]
    trained = model.layers[-1].trainable_variables
    gradients = [ops.ones(variable.shape) for variable in trained]
    alone = [keras.Variable(ops.convert_to_numpy(variable)) for variable in trained]
    adam = keras.optimizers.Adam(3e-3, beta_2=0.95, global_clipnorm=1.0)
    for _ in range(2):
        model.optimizer.apply(gradients, trained)
        adam.apply(gradients, alone)
    for variable, expected in zip(trained, alone, strict=True):
        np.testing.assert_allclose(
            # Weights below 1 after two steps of float32: some units of 6e-8.
            *map(ops.convert_to_numpy, (variable, expected)),
            rtol=0,
            atol=1e-6,
        )
    paths = {variable.path for variable in trained}
    for variable, old in zip(model.trainable_variables, before, strict=True):
        stays = np.array_equal(ops.convert_to_numpy(variable), old)
        assert stays == (variable.path not in paths)
    assert int(model.optimizer.iterations) == 2


class RotationCell(RecurrentCell):
    """A cell whose variables have names that nothing else has."""

    optimizer_groups: ClassVar[Mapping[str, str]] = {"zoom": "others"}

    def __init__(self, units=2, *, recurrent_initializer="ones", **kwargs):
        super().__init__(units, recurrent_initializer=recurrent_initializer, **kwargs)

    def build_recurrent(self):
        self.turn = self.add_weight(shape=(), name="turn", initializer="ones")
        self.zoom = self.add_weight(shape=(), name="zoom", initializer="ones")

    def recurrent_matrix(self):
        zoom, turn = 1.0 * self.zoom, 1.0 * self.turn
        rows = [ops.stack([zoom, turn]), ops.stack([-turn, zoom])]
        return ops.stack(rows) / ops.sqrt(zoom**2 + turn**2)


def test_a_cell_of_ones_own(tmp_path):
    keras.saving.register_keras_serializable(package="tests")(RotationCell)
    model = keras.Sequential(
        [keras.Input((TIME, FEATURES)), keras.layers.RNN(RotationCell())]
    )
    model.compile(paper_optimizer(), "mse", jit_compile=False)
    fit(model)
    assert of_optimizer(model, RMSpropTF1) == {"turn"}
    assert of_optimizer(model, keras.optimizers.Adam) == {"kernel", "bias", "zoom"}
    assert of_optimizer(reloaded(model, tmp_path), RMSpropTF1) == {"turn"}


@pytest.mark.parametrize("jit_compile", XLA)
def test_resumes_to_the_same_result(jit_compile, tmp_path):
    unbroken = make_model(jit_compile=jit_compile)
    fit(unbroken, epochs=4)
    model = make_model(jit_compile=jit_compile)
    fit(model, epochs=2)
    loaded = reloaded(model, tmp_path)
    assert isinstance(loaded.optimizer, keras.optimizers.MultiOptimizer)
    saved = [np.asarray(v) for v in model.optimizer.variables]
    for value, expected in zip(loaded.optimizer.variables, saved, strict=True):
        np.testing.assert_array_equal(value, expected)
    fit(loaded, epochs=2)
    assert_same_weights(loaded, unbroken, atol=10 * EPS)


@pytest.mark.parametrize("clipping", ["clipnorm", "global_clipnorm", "clipvalue"])
def test_clipping_reaches_the_free_entries(clipping):
    """Their gradient is dense: a sparse one would pass unclipped."""
    recurrent = keras.optimizers.SGD(1.0, **{clipping: 1e-4})
    model = make_model(paper_optimizer(recurrent))
    before = model.layers[0].get_weights()[1]
    x, y = data()
    model.train_on_batch(x, 100 * y)
    moved = model.layers[0].get_weights()[1] - before
    length = np.abs(moved).max() if clipping == "clipvalue" else np.linalg.norm(moved)
    assert length == pytest.approx(1e-4, rel=1e-2)


def test_loss_scaling():
    """Under the loss scaling of float16 the steps are those without it."""
    plain, scaled = make_model(), make_model()
    scaled.compile(
        keras.optimizers.LossScaleOptimizer(paper_optimizer(), initial_scale=128.0),
        "mse",
        jit_compile=XLA[0],
    )
    fit(plain)
    fit(scaled)
    assert_same_weights(scaled, plain, atol=100 * EPS)
