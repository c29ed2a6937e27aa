import keras
import numpy as np
import pytest

from keras_ortho import ScoRNN
from keras_ortho.layers.carried_state import CarriedState
from keras_ortho.tasks import characters
from keras_ortho.tasks.pipeline import batches
from keras_ortho.training_callbacks import ResetStates, TestFigures

pytestmark = [
    pytest.mark.backends,
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]

BATCH, UNROLL, CLASSES = 2, 3, 4
# What takes less than tracing a function, and more than compiling it.
EAGERLY = keras.backend.backend() == "tensorflow"


def make_data(seed=0):
    symbols = np.random.default_rng(seed).integers(0, CLASSES, 31).astype("int32")
    return batches(*characters.windows(symbols, BATCH, UNROLL), batch_size=BATCH)


def make_model(rate=0.05):
    keras.utils.set_random_seed(0)
    inputs = keras.Input(batch_shape=(BATCH, UNROLL), dtype="int32")
    # With tanh no state is zero by itself, as it may be with modReLU.
    layer = ScoRNN(5, activation="tanh", return_sequences=True, return_state=True)
    outputs = CarriedState(layer)(keras.layers.Embedding(CLASSES, 3)(inputs))
    model = keras.Model(inputs, keras.layers.Dense(CLASSES)(outputs))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(rate), loss, run_eagerly=EAGERLY)
    return model


def carrying(model):
    return next(x for x in model.layers if isinstance(x, CarriedState))


def has_state(model):
    return np.any(keras.ops.convert_to_numpy(carrying(model).states[0]))


class Starts(keras.callbacks.Callback):
    """Notes which batches of training begin from zero."""

    def __init__(self):
        super().__init__()
        self.zero = []

    def on_train_batch_begin(self, batch, logs=None):
        self.zero.append(not has_state(self.model))


def test_an_epoch_begins_from_zero():
    starts = Starts()
    callbacks = [ResetStates(), starts]
    make_model().fit(make_data(), epochs=2, callbacks=callbacks, verbose=0)
    assert starts.zero == [True, False, False, False, False] * 2


def test_training_goes_on_after_validation():
    """As if there had been none, with the state that it had."""
    models, starts = [make_model(), make_model()], Starts()
    given = {"steps_per_epoch": 2, "epochs": 4, "verbose": 0}
    given["callbacks"] = [ResetStates(every=5), starts]
    for model, valid in zip(models, [None, make_data(seed=1)], strict=True):
        model.fit(make_data().repeat(), validation_data=valid, **given)
    assert starts.zero == [number % 5 == 0 for number in range(8)] * 2
    for value, wanted in zip(models[1].weights, models[0].weights, strict=True):
        np.testing.assert_array_equal(value, wanted)


def test_evaluation_begins_from_zero():
    model, data = make_model(), make_data()
    first = model.evaluate(data, verbose=0)
    assert model.evaluate(data, verbose=0) != first
    assert model.evaluate(data, callbacks=[ResetStates()], verbose=0) == first
    # That puts the state of before back, also where there was none.
    assert has_state(model)
    carrying(model).reset_state()
    model.evaluate(data, callbacks=[ResetStates()], verbose=0)
    assert not has_state(model)
    assert not keras.ops.convert_to_numpy(carrying(model).has_begun)


def test_test_figures():
    model, valid, test = make_model(), make_data(seed=1), make_data(seed=2)
    callbacks = [ResetStates(), TestFigures(test, [ResetStates()])]
    given = {"validation_data": valid, "callbacks": callbacks, "verbose": 0}
    history = model.fit(make_data(), epochs=3, **given).history
    assert len(history["val_loss"]) == len(history["test_loss"]) == 3
    expected = model.evaluate(test, callbacks=[ResetStates()], verbose=0)
    assert history["test_loss"][-1] == expected
    assert history["test_loss"] != history["val_loss"]


def test_bad_arguments():
    with pytest.raises(ValueError, match="Received: every=0"):
        ResetStates(every=0)
    with pytest.raises(ValueError, match="`data`.*Received: NoneType "):
        TestFigures(None)
    if keras.backend.backend() == "torch":  # Keras takes one step at a time there.
        return
    model = make_model()
    model.compile("sgd", model.loss, steps_per_execution=2)
    with pytest.raises(ValueError, match=r"Received: steps=5, steps_per_execution=2"):
        model.fit(make_data(), callbacks=[ResetStates(every=5)], verbose=0)
