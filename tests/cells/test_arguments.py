"""The arguments of a class of one's own: its own, those it changes, and the others."""

import keras
import pytest

from keras_ortho import ORNNCell, RecurrentCell, RecurrentLayer, ScoRNN
from keras_ortho.activations import LeakyReLU
from keras_ortho.parametrizations import ScaledCayley

pytestmark = pytest.mark.backends


class LoudCell(ORNNCell):
    def __init__(self, units, volume=1.0, **kwargs):
        kwargs.setdefault("dropout", 0.125)
        super().__init__(units, **kwargs)
        self.volume = volume


class Loud(RecurrentLayer):
    cell_class = LoudCell


class FixedCell(RecurrentCell):
    """Gives the class above by itself what that needs."""

    def __init__(self, units, **kwargs):
        super().__init__(units, ScaledCayley(0), use_bias=True, **kwargs)

    @classmethod
    def argument_names(cls):
        return [name for name in super().argument_names() if name != "use_bias"]


class Fixed(RecurrentLayer):
    cell_class = FixedCell


@pytest.mark.parametrize("cls", [LoudCell, Loud])
def test_defaults_of_the_class_and_of_those_above_it(cls):
    made = cls(4)
    assert isinstance(made.activation, LeakyReLU)
    defaults = {"dropout": 0.125, "volume": 1.0, "reflections": None, "use_bias": True}
    config = made.get_config()
    assert {name: config[name] for name in defaults} == defaults
    given = cls(4, 2.0, dropout=0.75, reflections=3, trainable_initial_state=False)
    expected = {"volume": 2.0, "dropout": 0.75, "reflections": 3}
    expected["trainable_initial_state"] = False
    config = given.get_config()
    assert {name: config[name] for name in expected} == expected
    assert cls.from_config(config).get_config() == config


@pytest.mark.parametrize("cls", [FixedCell, Fixed])
def test_an_argument_that_the_class_gives_itself(cls):
    config = cls(4).get_config()
    assert "use_bias" not in config
    assert cls.from_config(config).get_config() == config


def test_a_layer_says_what_it_needs():
    with pytest.raises(TypeError, match="FixedCell.* missing .*'units'"):
        Fixed()
    with pytest.raises(ValueError, match="passed to Loud: .*noise"):
        Loud(4, noise=1)
    with pytest.raises(TypeError, match="`cell_class`. Received: RecurrentLayer$"):
        RecurrentLayer(4)


@pytest.mark.backends
@pytest.mark.parametrize(
    ("name", "value"),
    [("rebase_every", 3), ("heads", 2), ("trainable_initial_state", True)],
)
def test_weights_saved_with_another_argument(name, value, tmp_path):
    """The error says with which, in either direction."""
    models = []
    for given in ({}, {name: value}):
        model = keras.Sequential([keras.Input((3, 4)), ScoRNN(4, **given)])
        model.save_weights(tmp_path / f"{len(models)}.weights.h5")
        models.append(model)
    with pytest.raises(ValueError, match=f"saved with `{name}=.*Received: {name}="):
        models[0].load_weights(tmp_path / "1.weights.h5")
    with pytest.raises(ValueError, match=f"saved with `{name}=.*Received: {name}="):
        models[1].load_weights(tmp_path / "0.weights.h5")
