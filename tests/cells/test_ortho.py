"""`OrthoRNN`: the other architectures, by their parametrization alone."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ENRNN, FactorizedRNN, FullURNN, OrthoRNN, OrthoRNNCell, ScuRNN
from keras_ortho.optimizers import group_of, paper_optimizer
from keras_ortho.parametrizations import (
    EigenvalueNormalized,
    FactorizedCayley,
    FreeVariable,
    FullUnitary,
    Householder,
    Parametrization,
    ScaledCayleyUnitary,
)
from tests.saving import reloaded

pytestmark = pytest.mark.backends


@keras.saving.register_keras_serializable(package="tests")
class Rotation(Parametrization):
    """The plane's, by an angle: a parametrization of one's own."""

    def variables(self, size, initializer=None):
        return [FreeVariable("angle", (), initializer or keras.initializers.Ones())]

    def matrix(self, *values):
        (angle,) = values
        cosine, sine = ops.cos(angle), ops.sin(angle)
        return ops.stack([ops.stack([cosine, sine]), ops.stack([-sine, cosine])])


@pytest.mark.parametrize(
    ("layer", "units", "parametrization"),
    [
        (ScuRNN(4), 4, ScaledCayleyUnitary()),
        (ENRNN(4, 2), 6, EigenvalueNormalized(4, 2)),
        (FullURNN(4), 4, FullUnitary()),
        (FactorizedRNN(4, activation="modrelu"), 4, FactorizedCayley()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_equals_the_class(layer, units, parametrization):
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    other = OrthoRNN(
        units,
        parametrization,
        trainable_initial_state=layer.cell.trainable_initial_state,
    )
    expected = ops.convert_to_numpy(layer(x))
    other.build(x.shape)
    assert [w.name for w in other.weights] == [w.name for w in layer.weights]
    assert list(map(group_of, other.weights)) == list(map(group_of, layer.weights))
    other.set_weights(layer.get_weights())
    # The same program, compiled at another time.
    np.testing.assert_allclose(other(x), expected, rtol=1e-5, atol=1e-6)


def test_a_parametrization_of_ones_own(tmp_path):
    keras.utils.set_random_seed(0)
    layer = OrthoRNN(2, Rotation(), return_sequences=True, activation="linear")
    model = keras.Sequential([keras.Input((None, 2)), layer])
    model.compile(paper_optimizer(), "mse")
    x = np.random.default_rng(0).normal(size=(8, 5, 2)).astype("float32")
    model.fit(x, x, epochs=2, verbose=0)
    angle = float(layer.cell.angle)
    assert angle != 1.0
    np.testing.assert_allclose(
        layer.recurrent_matrix(),
        [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]],
        atol=1e-6,
    )
    reloaded(model, tmp_path, x)


class Wrong(Parametrization):
    """One that takes an argument, and keeps it by another name."""

    def __init__(self, scale=1.0):
        self.factor = scale

    def variables(self, size, initializer=None):
        return [FreeVariable("entries", (size, size), "zeros")]

    def matrix(self, entries):
        return entries[:2]


class OneVariable(Wrong):
    """One with a variable in the place of a list."""

    def variables(self, size, initializer=None):
        return FreeVariable("entries", (size, size), "zeros")


class Named(Parametrization):
    """One whose variable has a given name."""

    def __init__(self, name):
        self.name = name

    def variables(self, size, initializer=None):
        return [FreeVariable(self.name, (size, size), "orthogonal")]

    def matrix(self, entries):
        return entries


@pytest.mark.parametrize("name", ["kernel", "bias", "initial_state", "units", "seed"])
def test_variables_named_like_what_the_cell_has(name):
    x = np.ones((2, 3, 4), "float32")
    OrthoRNN(4, Named("w"), activation="linear", seed=1)(x)
    with pytest.raises(ValueError, match=f"`Named.variables` .*Received: {name}$"):
        OrthoRNN(4, Named(name), activation="linear", seed=1)(x)


class Returns(Parametrization):
    """One that makes something other than a real matrix."""

    def __init__(self, made):
        self.made = made

    def variables(self, size, initializer=None):
        return [FreeVariable("entries", (size, size), "zeros")]

    def matrix(self, entries):
        return self.made


@pytest.mark.parametrize("made", [None, [[1.0]], 1j * np.eye(4)])
def test_what_is_no_real_matrix(made):
    x = np.ones((2, 3, 1), "float32")
    with pytest.raises(ValueError, match=r"`Returns.matrix` must return a real tensor"):
        OrthoRNN(4, Returns(made))(x)


def test_parametrizations_that_lack_something():
    """What a user sees who writes the first one."""
    x = np.ones((2, 3, 1), "float32")
    with pytest.raises(ValueError, match=r"`Wrong.matrix`.*\(4, 4\).*Received.*\(2, 4"):
        OrthoRNN(4, Wrong())(x)
    with pytest.raises(ValueError, match="`OneVariable.variables` .*Received: Free"):
        OrthoRNN(4, OneVariable())(x)
    with pytest.raises(ValueError, match="`Wrong` must store .*Received: .* scale"):
        Wrong().get_config()
    for name, call in {
        "variables": lambda: Parametrization().variables(4),
        "matrix": lambda: Parametrization().matrix(x),
    }.items():
        with pytest.raises(NotImplementedError, match=f"must have `{name}`"):
            call()


@pytest.mark.parametrize("activation", ["modrelu", "smoothed_modrelu"])
def test_complex_units_are_saved(activation, tmp_path):
    layer = OrthoRNN(4, ScaledCayleyUnitary(), activation=activation)
    model = keras.Sequential([keras.Input((5, 3)), layer])
    layer.cell.bias.assign(-0.1 * np.ones(4))
    model.save(tmp_path / "complex.keras")
    again = keras.saving.load_model(tmp_path / "complex.keras")
    assert again.layers[0].activation == activation
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    np.testing.assert_array_equal(again(x), model(x))


def test_the_eigenvalues_of_a_free_block_are_divided_while_they_are_large():
    layer = OrthoRNN(6, EigenvalueNormalized(4, 2))
    layer.build((None, None, 1))
    for scale, radius in ((3.0, 1.0), (0.5, 0.5)):
        layer.cell.short_term_matrix.assign(scale * np.eye(2))
        layer(np.ones((2, 3, 1)), training=True)
        block = ops.convert_to_numpy(layer.recurrent_matrix())[4:, 4:]
        np.testing.assert_allclose(block, radius * np.eye(2), atol=1e-5)


@pytest.mark.parametrize("value", [None, "cayley", Householder])
def test_what_is_no_parametrization(value):
    with pytest.raises(ValueError, match="`parametrization` must be .* Received: "):
        OrthoRNNCell(4, value)


def test_a_map_without_an_inverse():
    layer = OrthoRNN(4, Householder(2))
    layer.build((None, None, 1))
    before = ops.convert_to_numpy(layer.recurrent_matrix())
    with pytest.raises(ValueError, match="`reflections` .* Received"):
        layer.set_recurrent_matrix(np.eye(4))
    np.testing.assert_array_equal(layer.recurrent_matrix(), before)
