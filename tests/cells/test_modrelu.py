"""modReLU by its names, exact and smoothed, in the cells of complex units."""

import zipfile

import keras
import numpy as np
import pytest
from keras import ops

from experiments.layers import LAYERS, make_layer
from keras_ortho import (
    EURNN,
    EURNNCell,
    FullURNN,
    FullURNNCell,
    RestrictedURNN,
    RestrictedURNNCell,
    ScoRNN,
    ScoRNNCell,
    ScuRNN,
    ScuRNNCell,
)
from keras_ortho.activations import complex_modrelu, modrelu, smoothed_modrelu
from keras_ortho.backend import in_graph
from tests import reference
from tests.gradients import weight_gradients

pytestmark = pytest.mark.backends

LAYERS_OF_COMPLEX_UNITS = [ScuRNN, RestrictedURNN, FullURNN, EURNN]
CELLS = [ScuRNNCell, RestrictedURNNCell, FullURNNCell, EURNNCell]
EPS = np.finfo("float64").eps


@pytest.mark.parametrize("cls", LAYERS_OF_COMPLEX_UNITS)
def test_the_norm_is_kept(cls):
    """Over 2 000 steps without input and bias; the smoothed form loses some of it."""
    n, steps = 64, 2000
    arguments = {"bias_initializer": "zeros", "dtype": "float64"}
    layer = cls(n, **arguments)
    start = np.random.default_rng(0).normal(size=(1, 2 * n))
    start /= np.linalg.norm(start)
    x = np.zeros((1, steps, 1))

    def norm_after(layer, x):
        end = in_graph(lambda x, h: layer(x, initial_state=[h]))(x, start)
        return float(np.linalg.norm(end))

    layer.build(x.shape)
    # A step is a product with a matrix that is unitary to some n eps; a sum of 2n
    # products is exact to 2n eps of the sum of their moduli, at most sqrt(2n) times
    # the norm of the state: 7e-10 in all.
    matrix = np.asarray(layer.recurrent_matrix())
    off = np.linalg.norm(matrix.T @ matrix - np.eye(2 * n), 2)
    bound = steps * (off + 2 * n * np.sqrt(2 * n) * EPS)
    assert bound < 1e-8
    assert abs(norm_after(layer, x) - 1) <= bound

    smoothed = cls(n, activation="smoothed_modrelu", **arguments)
    smoothed.build(x.shape)
    smoothed.set_weights(layer.get_weights())
    # About 1e-5 / |z| a step, with |z| about 1 / sqrt(n) of a unit state.
    assert 0.01 < 1 - norm_after(smoothed, x[:, :500]) < 0.1


@pytest.mark.parametrize(
    ("form", "function"),
    [
        ("modrelu", reference.complex_modrelu),
        ("smoothed_modrelu", reference.smoothed_modrelu),
    ],
)
def test_layer_and_stock_loop_against_numpy(form, function):
    layer = ScuRNN(4, activation=form, kernel_initializer="ones", dtype="float64")
    x = np.random.default_rng(0).normal(size=(2, 5, 3))
    layer.build(x.shape)
    cell = layer.cell
    cell.bias.assign([0.2, 0.0, -0.3, 0.1])
    kernel, bias, state = (
        ops.convert_to_numpy(w) for w in (cell.kernel, cell.bias, cell.initial_state)
    )
    matrix = ops.convert_to_numpy(layer.recurrent_matrix())
    for t in range(x.shape[1]):
        z = reference.as_complex(x[:, t] @ kernel + state @ matrix)
        state = reference.as_reals(function(z, bias))
    stock = keras.layers.RNN(cell, dtype="float64")
    stock.build(x.shape)
    for found in (layer, stock):
        np.testing.assert_allclose(found(x), state, atol=100 * EPS)
    upstream = np.random.default_rng(1).normal(size=state.shape)
    (_, own), (_, expected) = (
        weight_gradients(each, lambda h: ops.sum(h * upstream), x)
        for each in (layer, stock)
    )
    for name, gradient in own.items():
        np.testing.assert_allclose(
            gradient, expected[name], atol=1000 * EPS, err_msg=name
        )


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("stock", [False, True])
def test_a_state_of_zero_has_a_gradient(dtype, stock):
    """Blank inputs, no initial state, and biases of either sign."""
    layer = ScuRNN(3, trainable_initial_state=False, dtype=dtype)
    x = np.zeros((2, 4, 2), "float32")
    x[:, 3] = 1e-3
    x = x.astype(dtype)
    layer.build(x.shape)
    layer.cell.bias.assign([0.5, 0.0, -0.5])
    layer = keras.layers.RNN(layer.cell, dtype=dtype) if stock else layer
    layer.build(x.shape)
    _, found = weight_gradients(layer, lambda h: ops.sum(ops.cast(h, "float32")), x)
    for name, gradient in found.items():
        assert np.isfinite(gradient).all(), name


def test_names():
    for given, known in {
        "modrelu": "modrelu",
        "exact_modrelu": "modrelu",
        "smoothed_modrelu": "smoothed_modrelu",
        complex_modrelu: "modrelu",
        modrelu: "modrelu",
        smoothed_modrelu: "smoothed_modrelu",
    }.items():
        assert ScuRNNCell(2, activation=given).activation == known
        if known == "modrelu":
            cell = ScoRNNCell(2, activation=given)
            assert cell.get_config()["activation"] == cell.activation == known
    with pytest.raises(ValueError, match="Received: activation='smoothed_modrelu'"):
        ScoRNN(2, activation="smoothed_modrelu")
    with pytest.raises(
        ValueError, match="Received: activation='smoothed_modrelu', use"
    ):
        ScuRNN(2, activation="smoothed_modrelu", use_bias=False)


@pytest.mark.parametrize("cls", [*CELLS, *LAYERS_OF_COMPLEX_UNITS])
def test_configs(cls):
    for name in ("modrelu", "smoothed_modrelu"):
        config = cls(4, activation=name).get_config()
        assert cls.from_config(config).activation == name
    # As it was saved when there was one form, the smoothed one.
    config["activation"] = "modrelu"
    assert cls.from_config(config).activation == "smoothed_modrelu"
    assert cls(4).activation == "modrelu"


@pytest.mark.slow_on_jax
def test_what_was_saved_before_gives_what_it_gave(tmp_path):
    inputs = keras.Input((6, 2))
    layers = [
        ScuRNN(4, activation="smoothed_modrelu"),
        keras.layers.RNN(EURNNCell(4, activation="smoothed_modrelu")),
        keras.layers.Bidirectional(FullURNN(3, activation="smoothed_modrelu")),
    ]
    model = keras.Model(inputs, [layer(inputs) for layer in layers])
    model.save(tmp_path / "new.keras")
    # The file as it was written before the other form was there.
    with (
        zipfile.ZipFile(tmp_path / "new.keras") as new,
        zipfile.ZipFile(tmp_path / "old.keras", "w") as old,
    ):
        for name in new.namelist():
            content = new.read(name)
            if name == "config.json":
                assert content.count(b"smoothed_modrelu") >= 3
                content = content.replace(b"smoothed_modrelu", b"modrelu")
            old.writestr(name, content)
    loaded = keras.saving.load_model(tmp_path / "old.keras")
    x = np.random.default_rng(0).normal(size=(3, 6, 2)).astype("float32")
    for found, expected in zip(loaded(x), model(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_papers_runs_have_their_authors_form():
    names = set()
    for model in LAYERS:
        units = (4, 4) if model == "enrnn" else 4
        layer = make_layer(model, units)
        if getattr(layer, "activation", None) == "smoothed_modrelu":
            assert layer.cell.complex_state
            names.add(model)
            exact = make_layer(model, units, {"activation": "modrelu"})
            assert exact.activation == "modrelu"
    assert names >= {"scurnn", "restricted-urnn", "full-urnn", "eurnn"}
