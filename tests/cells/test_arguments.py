"""The arguments of a class of one's own: its own, those it changes, and the others."""

import inspect
from typing import ClassVar

import keras
import pytest

from keras_ortho import ENRNN, ORNNCell, RecurrentCell, RecurrentLayer, ScoRNN
from keras_ortho.activations import LeakyReLU
from keras_ortho.parametrizations import ScaledCayley

pytestmark = pytest.mark.backends


class QuietCell(ORNNCell):
    default_arguments: ClassVar = {"dropout": 0.25}


class LoudCell(QuietCell):
    default_arguments: ClassVar = {"recurrent_dropout": 0.5, "dropout": 0.125}

    def __init__(self, units, volume=1.0, **kwargs):
        super().__init__(units, **{**self.default_arguments, **kwargs})
        self.volume = volume


class InitializedCell(RecurrentCell):
    """Gives the class above by itself what that needs."""

    def __init__(self, units, **kwargs):
        kwargs = {"recurrent_initializer": "henaff_skew", **kwargs}
        super().__init__(units, parametrization=ScaledCayley(0), **kwargs)


class Initialized(RecurrentLayer):
    cell_class = InitializedCell


class Loud(RecurrentLayer):
    cell_class = LoudCell


# Of the class itself, and of those that it inherits from.
DEFAULTS = {
    ORNNCell: {"dropout": 0.0, "recurrent_dropout": 0.0, "reflections": None},
    QuietCell: {"dropout": 0.25, "recurrent_dropout": 0.0, "reflections": None},
    LoudCell: {"dropout": 0.125, "recurrent_dropout": 0.5, "volume": 1.0},
    Loud: {"dropout": 0.125, "recurrent_dropout": 0.5, "volume": 1.0},
}


@pytest.mark.parametrize("cls", DEFAULTS, ids=lambda cls: cls.__name__)
def test_defaults(cls):
    expected = DEFAULTS[cls] | {"trainable_initial_state": True, "use_bias": True}
    signature = inspect.signature(cls).parameters
    made = cls(4)
    assert isinstance(made.activation, LeakyReLU)
    for name, value in expected.items():
        assert signature[name].default == value
        assert getattr(made, name) == value
        assert made.get_config()[name] == value
    assert signature["dropout"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("cls", DEFAULTS, ids=lambda cls: cls.__name__)
def test_what_is_given_comes_before_them(cls):
    made = cls(4, dropout=0.75, trainable_initial_state=False)
    assert (made.dropout, made.trainable_initial_state) == (0.75, False)
    again = cls.from_config(made.get_config())
    assert again.get_config() == made.get_config()


def test_a_layer_says_what_it_needs():
    with pytest.raises(TypeError, match=r"Received: ENRNN\(units=4\)$"):
        ENRNN(units=4)
    assert Initialized(4).units == 4
    with pytest.raises(TypeError, match=r"`Initialized` requires `units`. Received: "):
        Initialized()
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
