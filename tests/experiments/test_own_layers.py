"""A layer of a user's own, by its module or its file."""

import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from experiments.layers import build, kind_of, make_layer, own_maker, parts_of
from experiments.options import read_task

MODULE = '''
import keras
from keras import ops

from keras_ortho import RecurrentCell
from keras_ortho.parametrizations import ScaledCayley


class Leaky(keras.layers.Layer):
    """h_t = (1 - rate) h_{t-1} + rate tanh(W x_t), as a cell."""

    def __init__(self, units, rate=0.5, **kwargs):
        super().__init__(**kwargs)
        self.units, self.rate = units, rate
        self.state_size = self.output_size = units

    def build(self, input_shape):
        self.kernel = self.add_weight(shape=(input_shape[-1], self.units))

    def call(self, inputs, states):
        state = states[0]
        new = ops.tanh(inputs @ self.kernel)
        state = (1 - self.rate) * state + self.rate * new
        return state, [state]


class Wide(keras.layers.GRU):
    pass


def made(units, activation="tanh"):
    return keras.layers.SimpleRNN(units, activation=activation)


class Odd(keras.layers.SimpleRNN):
    def __init__(self, units, colour, **kwargs):
        if units % 2 == 0:
            raise ValueError(f"`units` must be odd. Received: units={units}")
        super().__init__(units, **kwargs)
        self.colour = colour

    def get_config(self):
        return {**super().get_config(), "colour": self.colour}


class Rotation(RecurrentCell):
    def __init__(self, units, **kwargs):
        kwargs = {"recurrent_initializer": "henaff_skew", **kwargs}
        super().__init__(units, parametrization=ScaledCayley(0), **kwargs)


dense = keras.layers.Dense
number = 3
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    own_maker.cache_clear()
    (tmp_path / "ownlayers.py").write_text(MODULE)
    (tmp_path / "json.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ownlayers", raising=False)
    return tmp_path / "ownlayers.py"


def test_a_cell_becomes_a_layer(module):
    layer = make_layer("ownlayers:Leaky", 5, {"rate": 0.25}, return_sequences=True)
    assert type(layer) is keras.layers.RNN
    assert layer.cell.rate == 0.25
    x = np.ones((2, 3, 4), "float32")
    new = np.tanh(np.ones(4) @ keras.ops.convert_to_numpy(_kernel(layer, x)))
    outputs = keras.ops.convert_to_numpy(layer(x))
    # Constant inputs: 1 - (1 - rate)^t of what the state comes to.
    expected = np.stack([(1 - 0.75**t) * new for t in (1, 2, 3)])
    # Sums of four numbers in float32.
    np.testing.assert_allclose(outputs, [expected] * 2, atol=1e-6)


def _kernel(layer, x):
    layer.build(x.shape)
    return layer.cell.kernel


@pytest.mark.parametrize("where", ["ownlayers", "{file}"])
def test_classes_and_functions(module, where):
    where = where.format(file=module)
    wide = make_layer(f"{where}:Wide", 5, {"reset_after": False}, return_state=True)
    assert (type(wide).__name__, wide.units, wide.return_state) == ("Wide", 5, True)
    assert wide.get_config()["reset_after"] is False
    made = make_layer(f"{where}:made", 4, {"activation": "relu"})
    assert (made.units, made.activation) == (4, keras.activations.relu)
    assert make_layer(f"{where}:Rotation", 4, {"dropout": 0.5}).cell.dropout == 0.5
    assert kind_of(f"{where}:Wide").title == "Wide"
    assert parts_of(f"{where}:Wide") == set()


def test_a_layer_has_its_own_units_and_arguments(module, tmp_path):
    options = ["--model", "ownlayers:Odd", "--out", str(tmp_path / "out"), "--units"]

    def made(*given):
        settings = read_task("adding", "", [*options, *given])
        return build(
            lambda layer: keras.Sequential([keras.Input((4, 2)), layer]), settings
        )

    model, settings = made("63", "--argument", "colour=red")
    assert (settings.units, model.layers[0].colour) == (63, "red")
    assert set(settings.rates) == {"others"}
    with pytest.raises(ValueError, match="must be odd. Received: units=64"):
        made("64", "--argument", "colour=red")
    with pytest.raises(ValueError, match=r"argument: 'colour'. Received: units=63"):
        made("63")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("ownlayers:Missing", "has no class or function Missing"),
        ("ownlayers:number", "has no class or function number"),
        ("nomodule:Layer", "No module named 'nomodule'"),
        ("missing.py:Layer", "No module named 'missing'"),
        ("json.py:Layer", "another module is named json"),
        ("ownlayers:", "has no class or function"),
        ("ownlayers:dense", "cell"),
        ("chess", "must be one of"),
    ],
)
def test_what_is_no_layer_is_named(module, model, message):
    with pytest.raises((ValueError, ImportError), match=message):
        make_layer(model, 4)


def test_arguments_of_a_class_are_checked(module):
    with pytest.raises(ValueError, match=r"'color'.* Received: "):
        make_layer("ownlayers:made", 4, {"color": "red"})


@pytest.mark.slow
def test_the_command_finds_what_lies_where_it_is_run(module, tmp_path):
    example = Path(__file__).resolve().parents[2] / "examples" / "adding.py"
    own = ["--model", "ownlayers:Leaky", "--seeds", "2", "--jobs", "2", "--out", "out"]
    subprocess.run([sys.executable, example, "--smoke", *own], cwd=tmp_path, check=True)
    table = (tmp_path / "out/comparison.md").read_text()
    assert "| Leaky (here) | 8 |" in table
