import keras
import numpy as np
import pytest

from experiments.layers import parts_of
from experiments.optimizers import Plateau, make_optimizer, parse
from keras_ortho import FullURNN, ScuRNN


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
    optimizer = make_optimizer(rules, 1)
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


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        ("scornn", {"recurrent"}),
        ("enrnn", {"recurrent"}),
        ("goru", {"recurrent"}),
        ("scurnn", {"phases", "recurrent"}),
        ("restricted-urnn", {"phases", "recurrent"}),
        ("eurnn", {"phases", "recurrent"}),
        ("full-urnn", {"unitary"}),
        ("antisymmetric-gated", {"recurrent"}),
        ("antisymmetric-ablation", set()),
        ("lstm", set()),
    ],
)
def test_the_parts_of_a_layer_are_those_of_its_variables(model, parts):
    assert parts_of(model) == parts


def test_a_network_loads_with_the_package_alone():
    """Its optimizers are of the package, unless the phases have one."""
    rules = {"others": "adam 1e-3", "recurrent": "rmsprop 1e-4"}
    config = keras.optimizers.serialize(make_optimizer(rules, 1))
    assert config["config"]["optimizer_map"]["class_name"] == "OptimizerGroups"


def test_reads_a_rule():
    optimizer = parse("rmsprop 1e-3 clip 2", 1)
    assert float(optimizer.learning_rate) == pytest.approx(1e-3)
    assert optimizer.clipvalue == 2
    adam = parse("adam 2e-3 betas 0 0.9 clip 1", 1)
    assert (adam.beta_1, adam.beta_2, adam.clipvalue) == (0, 0.9, 1)
    assert isinstance(make_optimizer({"others": "sgd 0.1"}, 1), keras.optimizers.SGD)
    assert parse("stiefel-rms 1e-4", 1).rms_scaling
    assert not parse("stiefel 1e-4", 1).rms_scaling


def test_a_rate_that_decays_does_so_after_each_pass():
    optimizer = parse("sgd 0.5 decay 0.9", updates=3)
    weight = keras.Variable(1.0)
    optimizer.build([weight])
    rates = []
    for _ in range(7):
        rates.append(float(optimizer.learning_rate))
        optimizer.apply([keras.ops.ones(())])
    expected = [0.5] * 3 + [0.45] * 3 + [0.405]
    np.testing.assert_allclose(rates, expected, rtol=1e-6)


@pytest.mark.backends
@pytest.mark.parametrize("scaled", [False, True])
def test_a_rate_falls_where_validation_does_not_improve(scaled, tmp_path):
    """A model of one number whose validation loss is what the test says."""
    rules = {"others": "sgd 0.5 plateau 0.5", "recurrent": "sgd 0.25"}
    figures = [3.0, 9.0, 2.0, 9.0, 2.0, 9.0, 1.5, 9.0, 1.5, 9.0, 1.4, 9.0]

    def rates(epochs, first=0, weights=None):
        model = keras.Sequential([keras.Input((4, 2)), ScuRNN(3)])
        optimizer = make_optimizer(rules, 1)
        # In half precision one that scales the loss is around it.
        outer = keras.optimizers.LossScaleOptimizer(optimizer) if scaled else optimizer
        model.compile(outer, "mse")
        model.optimizer.build(model.trainable_variables)
        if weights:
            model.load_weights(weights)
        callback = Plateau("val_loss", every=2)
        callback.set_model(model)
        found = []
        for epoch in range(first, first + epochs):
            # Of every second epoch the figure is another.
            figure = figures[epoch] if epoch % 2 == 0 else figures[epoch - 1]
            callback.on_epoch_end(epoch, {"val_loss": figure})
            found.append([float(each.learning_rate) for each in optimizer.optimizers])
        model.save_weights(tmp_path / "state.weights.h5")
        return np.array(found)

    unbroken = rates(12)
    others = {tuple(column) for column in unbroken.T}
    falls = (0.5,) * 5 + (0.25,) * 4 + (0.125,) * 3
    assert others == {falls, (0.25,) * 12}
    first = rates(7)
    rest = rates(5, 7, tmp_path / "state.weights.h5")
    np.testing.assert_array_equal(np.concatenate([first, rest]), unbroken)


@pytest.mark.parametrize(
    "rule",
    [
        "adam",
        "adan 1e-3",
        "adam fast",
        "adam 1 clip",
        "adam -1",
        "adam 1 clip 0",
        "adam 1 betas 0.9",
        "adam 1 betas 0.9 1",
        "sgd 1 betas 0 0.9",
        "adam 1 momentum 0.9",
        "sgd 1 decay 0",
        "sgd 1 plateau -1",
        "sgd 1 decay 0.5 plateau 0.5",
        "sgd 1 nesterov",
    ],
)
def test_a_rule_that_is_none_is_named(rule):
    with pytest.raises(ValueError, match="Received: "):
        parse(rule, 1)
