import re

import keras
import numpy as np
import pytest

from keras_ortho.optimizers import RMSpropTF1, StiefelDescent
from keras_ortho.optimizers.groups import OptimizerGroups, group_of, set_group
from keras_ortho.optimizers.rules import paper_optimizer, two_rate_adam
from tests.cells.architectures import ARCHITECTURES
from tests.saving import saved_copy

adam = keras.optimizers.Adam
# The variables of the recurrent matrix; all but these are of the others.
RECURRENT = {
    "ScoRNN": "recurrent_skew",
    "ScuRNN": "recurrent_skew_real recurrent_skew_imag recurrent_phases",
    "ENRNN": "recurrent_skew",
    "AntisymmetricRNN": "recurrent_skew",
    "SVDRNN": "left_reflectors right_reflectors singular_logits",
    "ORNN": "reflectors",
    "RestrictedURNN": "recurrent_phases recurrent_reflectors",
    "FullURNN": "",
    "EURNN": "recurrent_angles recurrent_phases output_phases",
    "GORU": "recurrent_skew",
    "NNRNN": "recurrent_skew",
    "FactorizedRNN": "left_skew right_skew singular_logits",
}


@pytest.mark.parametrize("name", RECURRENT)
def test_which_variables_make_a_recurrent_matrix(name):
    (architecture,) = (a for a in ARCHITECTURES if str(a) == name)
    layer = architecture.layer(**architecture.arguments)
    layer.build((None, 6, 4))
    found = {"recurrent": [], "unitary": [], "others": []}
    for variable in layer.trainable_variables:
        found[group_of(variable)].append(variable.name)
    assert set(found["recurrent"]) == set(RECURRENT[name].split())
    assert found["unitary"] == ["recurrent_unitary"] * (name == "FullURNN")


def test_defaults():
    defaults = {paper_optimizer: [1e-4, 1e-3, 1e-3], two_rate_adam: [3e-4, 1e-3, 3e-3]}
    for make, expected in defaults.items():
        rates = [float(each.learning_rate.numpy()) for each in make().optimizers]
        assert rates == pytest.approx(expected)
    made = paper_optimizer("rmsprop", "adam", "sgd").optimizers
    kinds = (keras.optimizers.RMSprop, keras.optimizers.SGD, adam)
    # On PyTorch, Keras makes one of a class of its own below each.
    assert all(map(isinstance, made, kinds))


def test_configs():
    for optimizer in (
        RMSpropTF1(0.1, rho=0.8, clipnorm=2.0, initial_accumulator_value=0.5),
        StiefelDescent(0.1, rms_scaling=True, rho=0.8, epsilon=1e-6, reproject=True),
    ):
        saved_copy(optimizer)
        name = keras.saving.get_registered_name(type(optimizer))
        assert name == f"keras_ortho>{type(optimizer).__name__}"


WRONG = keras.Variable(np.zeros((2, 3, 4)))
ERRORS = [
    (lambda: two_rate_adam(beta_2=1.0), "`beta_2` must be"),
    (lambda: two_rate_adam(global_clipnorm=0.0), "`global_clipnorm` must be"),
    (lambda: OptimizerGroups(adam(), {"input": adam()}), "`group` must be"),
    (lambda: set_group(keras.Variable([1.0]), "skew"), "`group` must be"),
    (lambda: RMSpropTF1(initial_accumulator_value=-1), "`initial_accumulator_value`"),
    (lambda: StiefelDescent(use_ema=True), "`use_ema`"),
    (lambda: StiefelDescent().build([WRONG]), "of shape (2, n, n)"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors(call, message):
    with pytest.raises(ValueError, match=f"{re.escape(message)}.*Received: "):
        call()
