"""`OrthoRNN`: the other architectures, by their parametrization alone."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_ortho import ENRNN, FactorizedRNN, FullURNN, OrthoRNN, ScuRNN
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
    """One that takes arguments, and keeps one of them by another name."""

    def __init__(self, scale=1.0, name="entries", made=None):
        self.factor, self.name, self.made = scale, name, made

    def variables(self, size, initializer=None):
        variable = FreeVariable(self.name, (size, size), "zeros")
        return [variable] if self.name else variable

    def matrix(self, entries):
        return entries if self.made is None else self.made


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (Wrong(name="kernel"), "`Wrong.variables` .*Received: kernel$"),
        (Wrong(name="units"), "`Wrong.variables` .*Received: units$"),
        (Wrong(name=""), "`Wrong.variables` .*Received: Free"),
        (Wrong(made=[[1.0]]), "`Wrong.matrix` must return a real tensor"),
        (Wrong(made=1j * np.eye(4)), "`Wrong.matrix` must return a real tensor"),
        (Wrong(made=np.ones((2, 4))), r"`Wrong.matrix`.*\(4, 4\).*Received.*\(2, 4"),
        (Householder(5), "`reflections` .*Received"),
    ],
)
def test_parametrizations_that_lack_something(own, message):
    """What a user sees who writes the first one."""
    with pytest.raises(ValueError, match=message):
        OrthoRNN(4, own)(np.ones((2, 3, 1), "float32"))
    if isinstance(own, Wrong):
        with pytest.raises(ValueError, match="`Wrong` must store .*Received: .* scale"):
            own.get_config()


@pytest.mark.parametrize("activation", ["modrelu", "smoothed_modrelu"])
def test_complex_units_are_saved(activation, tmp_path):
    layer = OrthoRNN(4, ScaledCayleyUnitary(), activation=activation)
    model = keras.Sequential([keras.Input((5, 3)), layer])
    layer.cell.bias.assign(-0.1 * np.ones(4))
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("float32")
    assert reloaded(model, tmp_path, x).layers[0].activation == activation


def test_the_eigenvalues_of_a_free_block_are_divided_while_they_are_large():
    layer = OrthoRNN(6, EigenvalueNormalized(4, 2))
    layer.build((None, None, 1))
    for scale, radius in ((3.0, 1.0), (0.5, 0.5)):
        layer.cell.short_term_matrix.assign(scale * np.eye(2))
        layer(np.ones((2, 3, 1)), training=True)
        block = ops.convert_to_numpy(layer.recurrent_matrix())[4:, 4:]
        np.testing.assert_allclose(block, radius * np.eye(2), atol=1e-5)
