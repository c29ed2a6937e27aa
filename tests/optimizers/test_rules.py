import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import FullURNN, ScoRNN
from keras_ortho.optimizers import group_of, paper_optimizer, two_rate_adam

pytestmark = pytest.mark.backends

TIME, FEATURES, UNITS = 6, 3, 5
XLA = keras.backend.backend() == "jax"  # Without it, JAX runs each operation by itself.
EPS = np.finfo("float32").eps


def make_model(optimizer=None, *recurrent):
    keras.utils.set_random_seed(0)
    recurrent = recurrent or [ScoRNN(UNITS, kernel_initializer="glorot_uniform")]
    layers = [keras.Input((TIME, FEATURES)), *recurrent, keras.layers.Dense(2)]
    model = keras.Sequential(layers)
    model.compile(optimizer or paper_optimizer(), "mse", jit_compile=XLA)
    return model


def data():
    x = np.random.default_rng(0).normal(size=(32, TIME, FEATURES)).astype("float32")
    return x, x.sum(axis=1)[:, :2]


def fit(model, batch_size=8, **kwargs):
    return model.fit(*data(), batch_size, shuffle=False, verbose=0, **kwargs).history


def values(variables):
    return [ops.convert_to_numpy(variable) for variable in variables]


def assert_same(found, expected, atol):
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=0, atol=atol)


def test_two_rates():
    """Both Adams are as given, and callbacks log the rates of those that there are."""
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    model = make_model(two_rate_adam(schedule, 2e-3, beta_2=0.9, global_clipnorm=2.0))
    fit(model)
    recurrent, others = model.optimizer.optimizers
    assert float(recurrent.learning_rate.numpy()) == pytest.approx(2e-3)
    # After the four updates of `fit`.
    assert float(others.learning_rate) == pytest.approx(0.1 * 0.5**0.4)
    for adam, names in ((recurrent, {"recurrent_skew"}), (others, {"kernel", "bias"})):
        assert (adam.beta_2, adam.global_clipnorm) == (0.9, 2.0)
        assert {v.name for v in adam._trainable_variables} == names
    halved = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    logs = fit(make_model(two_rate_adam()), callbacks=[halved])
    assert set(logs) == {"loss", "learning_rate_recurrent", "learning_rate_others"}
    assert logs["learning_rate_recurrent"] == pytest.approx([1.5e-4])


def test_two_rates_with_gradients_of_several_batches():
    """A mean of two means of four is one of eight."""
    found = []
    for steps, batch_size in ((None, 8), (2, 4)):
        keras.utils.set_random_seed(0)
        layers = FullURNN(2, return_sequences=True), ScoRNN(3)
        model = make_model(two_rate_adam(gradient_accumulation_steps=steps), *layers)
        before = model.get_weights()
        fit(model, batch_size=batch_size)
        found.append(model.get_weights())
    # A rate of 3e-3 times the relative error of a gradient, of some hundred sums.
    assert_same(*found, atol=1e-5)
    moved = [np.abs(a - b).max() > 1e-4 for a, b in zip(before, found[1], strict=True)]
    assert sum(moved) == len(model.trainable_variables)


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
    swap = keras.callbacks.SwapEMAWeights()
    (loss,) = fit(averaging, validation_data=data(), callbacks=[swap])["val_loss"]
    # A rate of 3e-3 times the relative error of a gradient, of some hundred sums.
    assert_same(averaging.get_weights(), averages, atol=1e-5)
    assert loss == pytest.approx(averaging.evaluate(*data(), verbose=0), rel=1e-5)


def test_an_optimizer_of_another_model():
    optimizer = paper_optimizer()
    make_model(optimizer).fit(*data(), verbose=0)
    with pytest.raises(ValueError, match="`trainable_variables` .* Received: .*kernel"):
        make_model(optimizer).fit(*data(), verbose=0)


def test_a_group_without_gradients_stays():
    model = make_model(two_rate_adam())
    variables = model.trainable_variables
    stay = [group_of(variable) == "recurrent" for variable in variables]
    before = values(variables)
    pairs = zip(variables, stay, strict=True)
    gradients = [None if stays else ops.ones(v.shape) for v, stays in pairs]
    with pytest.warns(UserWarning, match="Gradients do not exist.*recurrent_skew"):
        model.optimizer.apply(gradients, variables)
    after = values(variables)
    assert [np.array_equal(*pair) for pair in zip(before, after, strict=True)] == stay
    with pytest.raises(ValueError, match="No gradients"):
        model.optimizer.apply([None] * len(stay), variables)


def test_what_has_no_weight_decay():
    decayed = [keras.optimizers.SGD(0.1, weight_decay=0.5) for _ in range(2)]
    optimizer = paper_optimizer(*decayed)
    optimizer.exclude_from_weight_decay(var_names=["bias", "recurrent_skew"])
    variables = make_model(optimizer).trainable_variables
    for variable in variables:
        variable.assign(ops.ones(variable.shape))
    optimizer.apply([0 * variable for variable in variables], variables)
    for variable in variables:
        kept = variable.name in ("bias", "recurrent_skew")
        assert_same(values([variable]), [1.0 if kept else 1 - 0.1 * 0.5], atol=8 * EPS)


def test_some_of_the_variables():
    """As Adam's own step on these alone: the others, and their optimizers, stay."""
    model = make_model(two_rate_adam())
    model.optimizer.build(model.trainable_variables)
    trained = model.layers[-1].trainable_variables
    others = model.layers[0].trainable_variables
    before = values(others)
    alone = [keras.Variable(value) for value in values(trained)]
    adam = keras.optimizers.Adam(3e-3, beta_2=0.95, global_clipnorm=1.0)
    gradients = [ops.ones(variable.shape) for variable in trained]
    for _ in range(2):
        model.optimizer.apply(gradients, trained)
        adam.apply(gradients, alone)
    # Weights below 1 after two steps of float32: some units of 6e-8.
    assert_same(values(trained), values(alone), atol=1e-6)
    assert_same(values(others), before, atol=0)
    assert int(model.optimizer.iterations) == 2


@pytest.mark.parametrize("clipping", ["clipnorm", "global_clipnorm", "clipvalue"])
def test_clipping_reaches_the_free_entries(clipping):
    """Their gradient is dense: a sparse one would pass unclipped."""
    model = make_model(paper_optimizer(keras.optimizers.SGD(1.0, **{clipping: 1e-4})))
    before = model.layers[0].get_weights()[1]
    x, y = data()
    model.train_on_batch(x, 100 * y)
    moved = model.layers[0].get_weights()[1] - before
    length = np.abs(moved).max() if clipping == "clipvalue" else np.linalg.norm(moved)
    assert length == pytest.approx(1e-4, rel=1e-2)


def test_loss_scaling():
    """Under the loss scaling of float16 the steps are those without it."""
    plain = make_model()
    scaling = keras.optimizers.LossScaleOptimizer
    scaled = make_model(scaling(paper_optimizer(), initial_scale=128.0))
    fit(plain)
    fit(scaled)
    assert_same(scaled.get_weights(), plain.get_weights(), atol=100 * EPS)
