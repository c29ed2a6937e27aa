"""`from_paper`: the papers' settings, where the defaults are others."""

from typing import ClassVar

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ENRNN, EURNN, GORU, ScoRNN, ScoRNNCell, ScuRNN
from tests.cells.architectures import ARCHITECTURES

pytestmark = pytest.mark.backends

# What the papers, or their authors' code, have and the layers have not.
SMALL = {"kernel_initializer": "small_uniform"}
SMOOTHED = {"activation": "smoothed_modrelu"}
OTHERS = {
    "ScoRNN": SMALL,
    "ENRNN": SMALL,
    "GORU": SMALL,
    "EURNN": SMALL | SMOOTHED,
    "ScuRNN": SMOOTHED,
    "RestrictedURNN": SMOOTHED,
    "FullURNN": SMOOTHED,
}
each = pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str)


@each
def test_differs_from_the_defaults_in_these_alone(architecture):
    expected = OTHERS.get(architecture.layer.__name__, {})
    given = architecture.arguments | {"name": "same"}
    for cls in (architecture.layer, architecture.cell):
        usual, paper = (make(**given).get_config() for make in (cls, cls.from_paper))
        assert {name for name in usual if usual[name] != paper[name]} == set(expected)
        assert paper == cls(**given, **expected).get_config()


@each
def test_what_is_given_comes_first(architecture):
    given = architecture.arguments | {
        "kernel_initializer": "he_normal",
        "activation": "tanh",
    }
    usual, paper = (
        make(**given, name="same").get_config()
        for make in (architecture.layer, architecture.layer.from_paper)
    )
    assert usual == paper


@pytest.mark.parametrize(
    ("make", "units"),
    [(ScoRNN, (6,)), (ENRNN, (4, 2)), (GORU, (8,)), (EURNN, (6,))],
)
def test_the_scale_of_the_input_kernel(make, units):
    """Glorot's, uniform within sqrt(6 / (m + n)), or the papers' 0.01."""
    features = 50
    for made, largest in (
        (make.from_paper(*units), 0.01),
        (make(*units), None),
    ):
        made.build((None, None, features))
        kernel = ops.convert_to_numpy(made.cell.kernel)
        bound = largest or np.sqrt(6 / sum(kernel.shape))
        # The largest of 300 or more lies in the upper tenth, but for one in 10^13.
        assert 0.9 * bound <= np.abs(kernel).max() <= bound


def test_a_class_of_ones_own():
    class Slow(ScoRNNCell):
        paper_arguments: ClassVar = {**ScoRNNCell.paper_arguments, "dropout": 0.25}

    cell = Slow.from_paper(4, 1)
    assert (type(cell), cell.dropout, cell.negative_ones) == (Slow, 0.25, 1)


@pytest.mark.slow
def test_in_a_model():
    layer = ScuRNN.from_paper(4, return_sequences=True)
    model = keras.Sequential([keras.Input((None, 3)), layer])
    assert layer.activation == "smoothed_modrelu"
    assert model(np.ones((2, 5, 3))).shape == (2, 5, 8)
