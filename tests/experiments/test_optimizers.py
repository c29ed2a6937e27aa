import keras
import pytest

from keras_ortho import FullURNN, ScuRNN
from keras_ortho.experiments.optimizers import make_optimizer, parse


def test_each_part_has_its_own():
    rules = {
        "others": "adam 1e-3",
        "recurrent": "rmsprop 1e-4",
        "phases": "adagrad 1e-2 clip 1",
        "unitary": "stiefel 1e-5",
    }
    model = keras.Sequential(
        [keras.Input((4, 2)), ScuRNN(3, return_sequences=True), FullURNN(3)]
    )
    optimizer = make_optimizer(rules)
    optimizer.build(model.trainable_variables)
    found = {
        variable.path.rpartition("/")[2]: type(each).__name__
        for each in optimizer.optimizers
        for variable in each._trainable_variables
    }
    assert found == {
        "kernel": "Adam",
        "bias": "Adam",
        "initial_state": "Adam",
        "recurrent_skew_real": "RMSpropTF1",
        "recurrent_skew_imag": "RMSpropTF1",
        "recurrent_phases": "Adagrad",
        "recurrent_unitary": "StiefelDescent",
    }


def test_reads_a_rule():
    optimizer = parse("rmsprop 1e-3 clip 2")
    assert float(optimizer.learning_rate) == pytest.approx(1e-3)
    assert optimizer.clipvalue == 2
    assert isinstance(make_optimizer({"others": "sgd 0.1"}), keras.optimizers.SGD)
    assert parse("stiefel-rms 1e-4").rms_scaling
    assert not parse("stiefel 1e-4").rms_scaling


@pytest.mark.parametrize(
    "rule",
    [
        "adam",
        "adan 1e-3",
        "adam fast",
        "adam 1 clip",
        "",
        "adam -1",
        "sgd 0",
        "adam nan",
        "adam inf",
        "adam 1 clip -1",
        "adam 1 clip 0",
    ],
)
def test_a_rule_that_is_none_is_named(rule):
    with pytest.raises(ValueError, match="Received: "):
        parse(rule)


@pytest.mark.parametrize("rules", [{}, {"others": "adam 1", "bias": "adam 1"}])
def test_parts_that_are_none_are_named(rules):
    with pytest.raises(ValueError, match="`rules` must be"):
        make_optimizer(rules)
