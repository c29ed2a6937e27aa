"""Any Keras layer with a weight that free variables make."""

import re

import keras
import numpy as np
import pytest
from keras import layers, ops
from keras.src import testing

from keras_ortho import freeze, parametrize
from keras_ortho.diagnostics import manifold_distances
from keras_ortho.diagnostics.matrices import recurrent_matrices
from keras_ortho.initializers import HenaffSkew
from keras_ortho.layers import ParametrizedLayer
from keras_ortho.optimizers import group_of
from keras_ortho.parametrizations import (
    Householder,
    Rebased,
    ScaledCayley,
    ScaledCayleyUnitary,
    SkewExponential,
)
from keras_ortho.training_callbacks import Rebase
from tests.cells.test_program import FACTORIZATIONS, LOOPS, Program
from tests.gradients import weight_gradients
from tests.saving import reloaded, saved_copy

pytestmark = [
    pytest.mark.backends,
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]
RECURRENT = "recurrent_kernel"
SEQUENCES, IMAGES = (2, 5, 4), (2, 6, 5, 3)
# A layer, the weight, the shape of inputs, and the axes of inputs in the weight.
LAYERS = {
    "dense": (lambda **k: layers.Dense(3, **k), "kernel", SEQUENCES, 1),
    "dense of more outputs": (lambda **k: layers.Dense(6, **k), "kernel", (2, 4), 1),
    "einsum": (
        lambda **k: layers.EinsumDense("bti,ohi->btoh", output_shape=(5, 3, 2), **k),
        *("kernel", SEQUENCES, None),
    ),
    "conv 2d": (lambda **k: layers.Conv2D(4, 3, **k), "kernel", IMAGES, 3),
    "conv 3d": (lambda **k: layers.Conv3D(2, 2, **k), "kernel", (2, 3, 3, 3, 1), 4),
    "simple rnn": (lambda **k: layers.SimpleRNN(4, **k), RECURRENT, SEQUENCES, 1),
    "lstm": (lambda **k: layers.LSTM(4, **k), RECURRENT, SEQUENCES, "gates"),
    "gru": (lambda **k: layers.GRU(4, **k), RECURRENT, SEQUENCES, "gates"),
    "cells": (
        lambda **k: layers.RNN([layers.LSTMCell(4, **k), layers.GRUCell(3, **k)], **k),
        *(RECURRENT, SEQUENCES, "gates"),
    ),
    "bidirectional": (
        lambda **k: layers.Bidirectional(layers.LSTM(3, **k), **k),
        *(RECURRENT, SEQUENCES, "gates"),
    ),
    "attention": (
        lambda **k: layers.MultiHeadAttention(2, 2, **k),
        *("query/kernel", SEQUENCES, 1),
    ),
}
TORCH = keras.backend.backend() == "torch"


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def inputs_of(shape, dtype="float32"):
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def call(layer, x):
    """The output of a layer; attention is that of the sequence to itself."""
    return layer(x, x) if "attention" in layer.name else layer(x)


def model_of(layer, shape):
    """A model with a layer in the middle."""
    x = keras.Input(shape[1:], batch_size=shape[0])
    y = layers.Flatten()(call(layer, layers.Dense(shape[-1])(x)))
    model = keras.Model(x, layers.Dense(1)(y))
    model.compile("adam", "mse")
    return model


def matrices_of(weight, inputs):
    """The matrices of a weight, which should have orthonormal rows or columns."""
    if inputs == "gates":
        return np.split(weight, weight.shape[1] // len(weight), axis=1)
    if inputs is None:  # That of "bti,ohi->btoh" has the outputs first.
        return [weight.reshape(-1, weight.shape[-1]).T]
    return [weight.reshape(np.prod(weight.shape[:inputs]), -1)]


def error_of(matrix):
    tall = matrix if len(matrix) >= matrix.shape[1] else matrix.T
    return np.linalg.norm(tall.T @ tall - np.eye(tall.shape[1]))


def values_of(layer):
    return [ops.convert_to_numpy(value) for _, value in layer.made_weights()]


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.usefixtures("double")  # Some layers of Keras ignore their `dtype`.
def test_equals_the_layer_with_orthogonal_weights(name):
    if keras.backend.backend() == "jax" and name == "simple rnn":
        pytest.skip("Keras's own fails in float64 on JAX")
    make, weight, shape, inputs = LAYERS[name]
    layer = parametrize(make(), weight, Householder())
    x = inputs_of(shape, "float64")
    outputs = call(layer, x)
    values = {id(v): ops.convert_to_numpy(made) for v, made in layer.made_weights()}
    assert len(values) == (2 if name in ("cells", "bidirectional") else 1)
    for value in values.values():
        # Products of at most 27 reflectors, each of which rounds once.
        assert all(error_of(m) < 1e-13 for m in matrices_of(value, inputs))
    assert all(error < 1e-13 for error in layer.distances().values())
    plain = make()
    call(plain, x)
    for new in plain.weights:
        end = "/" + unnumbered(new).partition("/")[2]
        (old,) = (v for v in layer.layer.weights if unnumbered(v).endswith(end))
        new.assign(values.get(id(old), old))
    # Of sums of at most 27 products; XLA's tanh is single precision, but always so.
    np.testing.assert_allclose(call(plain, x), outputs, rtol=1e-12, atol=1e-13)


def unnumbered(variable):
    return re.sub(r"_\d+", "", variable.path)


@pytest.mark.parametrize("name", ["dense", "einsum", "conv 2d", "lstm", "attention"])
@pytest.mark.usefixtures("double")
def test_gradients_are_central_differences(name):
    if keras.backend.backend() == "jax" and name in ("lstm", "attention"):
        pytest.skip("XLA's tanh and exp are of single precision on CPUs")
    make, weight, shape, _ = LAYERS[name]
    layer = parametrize(make(), weight, ScaledCayley())
    x = inputs_of(shape, "float64")
    call(layer, x)
    args = (x, x) if name == "attention" else (x,)
    found = weight_gradients(layer, lambda y: ops.sum(y**2), *args)[1]
    variable = layer.trainable_weights[0]
    assert "skew" in variable.name
    start = ops.convert_to_numpy(variable)
    along = np.random.default_rng(1).normal(size=start.shape)
    step = 1e-5

    def loss(sign):
        variable.assign(start + sign * step * along)
        return float(ops.sum(call(layer, x) ** 2))

    # The error is of the order of the square of the step, and rounding over the step.
    slope, atol = (loss(1) - loss(-1)) / (2 * step), 1e-9 * max(1.0, loss(0))
    found = np.sum(found[variable.name] * along)
    np.testing.assert_allclose(found, slope, rtol=1e-7, atol=atol)


@pytest.mark.parametrize(
    "name", ["dense", "conv 2d", "cells", "bidirectional", "attention"]
)
def test_trains_saves_and_is_frozen(name, tmp_path):
    make, weight, shape, _ = LAYERS[name]
    layer = parametrize(make(), weight, ScaledCayley())
    model = model_of(layer, shape)
    x = inputs_of(shape)
    before = model.get_weights()
    model.fit(x, np.ones(2), epochs=2, verbose=0)
    free = [w for w in layer.trainable_weights if "skew" in w.name]
    assert {group_of(w) for w in free} == {"recurrent"}
    for old, new in zip(before, model.weights, strict=True):
        # Keys of attention only shift what the softmax normalizes.
        if new.trainable and not new.path.endswith("key/bias"):
            assert not np.array_equal(old, ops.convert_to_numpy(new)), new.path
    loaded = reloaded(model, tmp_path, x)
    config, own = (m.get_layer(layer.name).get_config() for m in (loaded, model))
    assert all(config[key] == own[key] for key in own.keys() - {"layer"})
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    outputs = model.predict(x, verbose=0)
    np.testing.assert_array_equal(copy.predict(x, verbose=0), outputs)
    frozen = freeze(model)
    assert type(frozen.get_layer(layer.name)) is type(layer.layer)
    close(frozen.predict(x, verbose=0), outputs)
    # What the free variables make is no weight besides them.
    assert not any(w is v for w in model.weights for v, _ in layer.made_weights())


@pytest.mark.skipif(TORCH, reason="PyTorch compiles no program")
def test_matrices_are_made_outside_of_the_loop():
    layer = parametrize(layers.LSTM(4), RECURRENT, ScaledCayley())
    found = Program("training", layer)
    assert sum(found.counts["outside"][op] for op in LOOPS) >= 2
    assert FACTORIZATIONS.isdisjoint(found.counts["inside"])
    assert found.num_factorizations > 0


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_keras_is_asked_for_its_fused_kernel(kind, monkeypatch):
    """As without parametrization, with the matrix that was made."""
    given = []

    def fused(*args, recurrent_kernel, **kwargs):
        given.append(ops.convert_to_numpy(recurrent_kernel))
        raise NotImplementedError  # As on a CPU.

    monkeypatch.setattr(f"keras.src.backend.{kind.lower()}", fused)
    layer = parametrize(getattr(layers, kind)(4), RECURRENT, ScaledCayley())
    layer(inputs_of(SEQUENCES))
    np.testing.assert_array_equal(given[0], values_of(layer)[0])


def test_config():
    given = {"gates": ["cell"], "initializer": "henaff_skew"}
    layer = parametrize(layers.LSTM(4), RECURRENT, ScaledCayley(), **given)
    copy = saved_copy(layer)
    assert copy.gates == ["cell"]
    assert type(copy.initializer) is type(layer.initializer) is HenaffSkew


def test_masks_states_and_training():
    """As for the layer itself, of which dropout is off in inference."""
    lstm = layers.LSTM(4, return_sequences=True, return_state=True, dropout=0.5)
    layer = parametrize(lstm, RECURRENT, ScaledCayley())
    x, mask = inputs_of(SEQUENCES), np.array([[1, 1, 0, 1, 1], [1, 1, 1, 1, 0]], bool)
    initial = [np.ones((2, 4), "float32")] * 2
    found = layer(x, mask=mask, initial_state=initial)
    plain = freeze(layer)
    for a, b in zip(found, plain(x, mask=mask, initial_state=initial), strict=True):
        close(a, b)
    assert not np.allclose(layer(x, training=True)[0], layer(x)[0])
    gru = parametrize(layers.GRU(4, return_sequences=True), RECURRENT, Householder())
    masking = layers.Embedding(9, 4, mask_zero=True)
    masked = keras.Sequential([masking, gru, layers.LSTM(2)])
    tokens = np.array([[1, 2, 3, 0, 0], [1, 2, 3, 4, 5]])
    shorter = masked(tokens[:1, :3])
    close(masked(tokens)[:1], shorter)


def test_stateful():
    layer = parametrize(layers.GRU(4, stateful=True), RECURRENT, Householder())
    x = inputs_of(SEQUENCES)
    found = [ops.convert_to_numpy(layer(x)) for _ in range(2)]
    plain = freeze(layer)
    expected = [ops.convert_to_numpy(plain(x)) for _ in range(2)]
    close(found, expected)
    assert not np.allclose(*found)


@keras.saving.register_keras_serializable(package="tests")
class Counts(layers.Dense):
    """A dense layer that counts its calls in training, and adds a loss."""

    def build(self, input_shape):
        super().build(input_shape)
        self.calls = self.add_weight(name="calls", trainable=False, initializer="zeros")

    def call(self, inputs, training=False):
        if training:
            self.calls.assign(self.calls + 1)
        self.add_loss(ops.sum(self.kernel) * 0.0 + 7.0)
        return super().call(inputs)


def test_updates_and_losses_of_the_layer_are_kept():
    layer = parametrize(Counts(3), "kernel", Householder())
    model = keras.Sequential([keras.Input((4,)), layer])
    model.compile("sgd", "mse")
    x = np.zeros((6, 4), "float32")
    history = model.fit(x, x[:, :3], batch_size=2, epochs=2, verbose=0)
    assert float(layer.layer.calls) == 6
    np.testing.assert_allclose(history.history["loss"], 7, rtol=1e-6)


def test_mixed_precision():
    """The matrix is made in float32."""
    layer = layers.LSTM(4, dtype="mixed_bfloat16")
    layer = parametrize(layer, RECURRENT, ScaledCayley())
    exact = parametrize(layers.LSTM(4), RECURRENT, ScaledCayley())
    x = inputs_of(SEQUENCES)
    assert keras.backend.standardize_dtype(layer(x).dtype) == "bfloat16"
    exact(x)
    exact.set_weights(layer.get_weights())
    assert max(layer.distances().values()) < 1e-5
    # Each of five steps rounds a few sums of terms that are at most one.
    found = ops.convert_to_numpy(ops.cast(layer(x), "float32"))
    np.testing.assert_allclose(found, exact(x), atol=20 * 2.0**-7)


def test_a_built_layer_begins_as_it_is():
    x = inputs_of(SEQUENCES)
    orthogonal = layers.SimpleRNN(4)
    expected = orthogonal(x)
    layer = parametrize(orthogonal, RECURRENT, ScaledCayley())
    close(layer(x), expected)
    # An exponential of a skew-symmetric matrix has determinant 1.
    based = Rebased(SkewExponential())
    whole = [((4, 4), Householder()), ((4, 4), SkewExponential())]
    for shape, kind in [((7, 3), based), ((3, 7), based), *whole]:
        dense = layers.Dense(shape[1])
        dense.build((None, shape[0]))
        kernel = ops.convert_to_numpy(dense.kernel)
        left, _, right = np.linalg.svd(kernel, full_matrices=False)
        if isinstance(kind, SkewExponential):
            left[:, -1] *= np.linalg.det(left @ right)
        layer = parametrize(dense, "kernel", kind)
        layer(np.zeros((1, shape[0]), "float32"))
        np.testing.assert_allclose(values_of(layer)[0], left @ right, atol=1e-5)
    dense = layers.Dense(3)
    given = parametrize(dense, "kernel", Householder(), initializer="identity")
    given(np.zeros((1, 3), "float32"))
    np.testing.assert_allclose(values_of(given)[0], np.eye(3), atol=1e-6)


def test_only_some_gates():
    """In a program that XLA compiles, too."""
    lstm = layers.LSTM(4)
    lstm.build((None, None, 3))
    before = ops.convert_to_numpy(lstm.cell.recurrent_kernel)
    layer = parametrize(lstm, RECURRENT, ScaledCayley(), gates=["forget", "cell"])
    model = model_of(layer, (2, 5, 3))
    model.compile("adam", "mse", jit_compile=not TORCH)
    (made,) = values_of(layer)
    model.fit(inputs_of((2, 5, 3)), np.ones(2), verbose=0)
    (trained,) = values_of(layer)
    for gate in range(4):
        block = slice(4 * gate, 4 * gate + 4)
        chosen = gate in (1, 2)
        assert np.array_equal(before[:, block], made[:, block]) != chosen
        assert not np.array_equal(made[:, block], trained[:, block])
        assert (error_of(trained[:, block]) < 1e-5) == chosen


def test_diagnostics_see_the_matrices():
    recurrent = parametrize(layers.LSTM(4, name="lstm"), RECURRENT, ScaledCayley())
    dense = parametrize(layers.Dense(3, name="dense"), "kernel", ScaledCayley())
    model = keras.Sequential([keras.Input((5, 4)), recurrent, dense])
    (kernel,) = values_of(recurrent)
    found = recurrent_matrices(model)
    gates = ["lstm/input", "lstm/forget", "lstm/cell", "lstm/output"]
    assert list(found) == gates
    np.testing.assert_array_equal(np.concatenate([*found.values()], axis=1), kernel)
    distances = manifold_distances(model)
    assert list(distances) == [*gates, "dense/kernel"]
    assert max(distances.values()) < 1e-5


def test_the_base_of_a_parametrization_moves():
    layer = parametrize(layers.GRU(4), RECURRENT, Rebased(ScaledCayley()))
    model = model_of(layer, SEQUENCES)
    x, y = inputs_of(SEQUENCES), np.ones(2)
    model.fit(x, y, verbose=0, callbacks=[Rebase(every=1)])
    skew = [w for w in layer.trainable_weights if w.name.endswith("skew")]
    assert len(skew) == 3
    assert not any(np.any(ops.convert_to_numpy(w)) for w in skew)
    counted = parametrize(layers.Dense(4), "kernel", Rebased(ScaledCayley(), 1))
    model = model_of(counted, SEQUENCES)
    model.fit(x, y, epochs=2, verbose=0)
    assert int(next(w for w in counted.weights if "passes" in w.name)) == 1


def test_two_weights_of_a_layer():
    inner = parametrize(layers.SimpleRNN(4), RECURRENT, ScaledCayley())
    layer = parametrize(inner, "kernel", Householder())
    x = inputs_of(SEQUENCES)
    outputs = layer(x)
    plain = freeze(layer)
    assert type(plain) is layers.SimpleRNN
    close(plain(x), outputs)
    assert all(error_of(ops.convert_to_numpy(w)) < 1e-5 for w in plain.weights[:2])


LSTM, CONSTRAINED = layers.LSTM, {"recurrent_constraint": "max_norm"}
REFUSED = [
    (lambda: layers.LSTMCell(3), RECURRENT, {}, "the layer around it"),
    (lambda: "lstm", RECURRENT, {}, "`layer` must be"),
    (lambda: LSTM(3), 3, {}, "`weight` must be"),
    (lambda: LSTM(3), "kern", {}, "one of"),
    (lambda: LSTM(3), "bias", {}, "at least two axes"),
    (lambda: LSTM(3, **CONSTRAINED), RECURRENT, {}, "no constraint"),
    (lambda: LSTM(3), RECURRENT, {"gates": ["update"]}, "`gates` must be"),
    (lambda: LSTM(3), RECURRENT, {"gates": []}, "`gates` must be"),
    (lambda: layers.Dense(3), "kernel", {"gates": ["cell"]}, "`gates` must be `None`"),
]


@pytest.mark.parametrize(("make", "weight", "given", "message"), REFUSED)
def test_refused(make, weight, given, message):
    with pytest.raises(ValueError, match=f"{message}.*Received: "):
        parametrize(make(), weight, Householder(), **given)(inputs_of(SEQUENCES))
    with pytest.raises(ValueError, match="real matrices"):
        parametrize(layers.Dense(3), "kernel", ScaledCayleyUnitary())


@pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="it compares attributes of the backend"
)
def test_keras_layer_checks():
    given = {"layer": layers.Dense(3), "weight": "kernel", "gates": None}
    given |= {"parametrization": Householder(), "initializer": "normal_reflectors"}
    testing.TestCase().run_layer_test(
        ParametrizedLayer,
        given,
        input_shape=(2, 5),
        expected_output_shape=(2, 3),
        expected_num_trainable_weights=2,
        expected_num_non_trainable_weights=0,
        expected_num_seed_generators=0,
        expected_num_losses=0,
        supports_masking=True,
    )


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="needs PyTorch")
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("kind", ["SimpleRNN", "LSTM"])
def test_equals_pytorch(kind):
    """Values and gradients, beside `torch.nn.utils.parametrizations.orthogonal`."""
    import torch

    n, x = 4, inputs_of(SEQUENCES, "float64")
    layer = parametrize(getattr(layers, kind)(n), RECURRENT, SkewExponential())
    outputs = layer(x)
    free = [w for w in layer.trainable_weights if w.name.endswith("skew")]
    kernel, bias = layer.trainable_weights[-2:]
    theirs = getattr(torch.nn, kind.removeprefix("Simple"))(4, n, batch_first=True)
    theirs = theirs.double()
    blocks = []
    for skew in free:
        block = torch.nn.Linear(n, n, bias=False).double()
        torch.nn.utils.parametrizations.orthogonal(
            block, "weight", "matrix_exp", use_trivialization=False
        )
        original = np.zeros((n, n))
        # It multiplies columns, and reads the lower triangle.
        original.T[np.triu_indices(n, 1)] = ops.convert_to_numpy(skew)
        parameter = block.parametrizations.weight.original
        parameter.data = torch.from_numpy(original)
        blocks.append((block, parameter))
    made = torch.cat([block.weight for block, _ in blocks])
    values = {"weight_ih_l0": ops.convert_to_numpy(kernel).T, "bias_hh_l0": 0 * bias}
    values["bias_ih_l0"] = bias
    values = {k: torch.tensor(ops.convert_to_numpy(v)) for k, v in values.items()}
    weights = {"weight_hh_l0": made, **values}
    found = torch.func.functional_call(theirs, weights, (torch.from_numpy(x),))[0]
    last = found[:, -1]
    np.testing.assert_allclose(outputs.detach().numpy(), last.detach(), atol=1e-12)
    loss = (last**2).sum()
    theirs = torch.autograd.grad(loss, [parameter for _, parameter in blocks])
    for skew, gradient in zip(free, theirs, strict=True):
        own = torch.autograd.grad(ops.sum(outputs**2), skew.value, retain_graph=True)
        upper = np.triu_indices(n, 1)
        np.testing.assert_allclose(own[0], gradient.numpy().T[upper], atol=1e-12)
