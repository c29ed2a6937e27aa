"""The standards that every cell and layer meets.

A layer is held against single steps of its cell, and against Keras's layer around it;
`test_properties.py` holds both against loops in NumPy, with their gradients.
"""

import inspect
import json
import threading

import keras
import ml_dtypes
import numpy as np
import pytest
from keras import ops
from keras.src import testing

from keras_ortho.cells import layer as recurrent_layer
from keras_ortho.cells.cell import CellArguments
from keras_ortho.cells.layer import LayerArguments
from keras_ortho.diagnostics.matrices import manifold_parts
from keras_ortho.optimizers import group_of
from keras_ortho.parametrizations import Parametrization
from tests import reference
from tests.cells.architectures import ARCHITECTURES, SHARED
from tests.cells.building import lively
from tests.gradients import weight_gradients

BATCH, TIME, FEATURES = 4, 5, 4
# Whole, padded behind, padded in front and within, all of it.
MASK = np.ones((BATCH, TIME), bool)
MASK[1, 3:] = MASK[2, 0] = MASK[2, 2] = MASK[3] = False
ORDINARY = ("kernel", "bias", "initial_state")
# Without XLA JAX runs one operation after the other: `make properties` does.
XLA = [True] if keras.backend.backend() == "jax" else [False, True]
# Ten steps' worth of products of a handful of numbers of order one.
ATOL = 100 * np.finfo("float32").eps
EPS64 = np.finfo("float64").eps

pytestmark = [
    pytest.mark.backends,
    pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str),
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]


def sequences(seed=0, shape=(BATCH, TIME, FEATURES)):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def states(architecture, seed=1, rows=BATCH):
    return sequences(seed, (rows, architecture.units))


def make_layer(architecture, **kwargs):
    layer = architecture.layer(**architecture.arguments, **kwargs)
    layer.build((BATCH if kwargs.get("stateful") else None, TIME, FEATURES))
    return lively(layer, seed=3, names=ORDINARY)


def make_cell(architecture, **kwargs):
    cell = architecture.cell(**architecture.arguments, **kwargs)
    cell.build((None, FEATURES))
    return lively(cell, seed=3, names=ORDINARY)


def steps(cell, x, state=None, mask=None):
    """A loop in Python over single calls of a cell."""
    state = cell.get_initial_state(len(x)) if state is None else [state]
    outputs = []
    for t in range(x.shape[1]):
        _, new = cell(x[:, t], state)
        if mask is not None:
            new = [ops.where(mask[:, t, None], new[0], state[0])]
        state = new
        outputs.append(ops.convert_to_numpy(state[0]))
    return np.stack(outputs, axis=1)


def close(found, expected, **kwargs):
    np.testing.assert_allclose(found, expected, **{"atol": ATOL} | kwargs)


def dtype_of(tensor):
    return keras.backend.standardize_dtype(tensor.dtype)


@pytest.mark.parametrize(
    ("unroll", "go_backwards", "start"),
    [
        (False, False, "trained"),
        (False, True, "one for all"),
        (True, False, "zero"),
        (True, True, "given"),
    ],
)
def test_layer_equals_its_cell(architecture, unroll, go_backwards, start):
    """With a mask: `test_inputs_and_states_of_any_dtype` and others have none."""
    x, way = sequences(), slice(None, None, -1 if go_backwards else 1)
    flipped = MASK[:, way]
    options = {"unroll": unroll, "go_backwards": go_backwards, "return_state": True}
    layer = make_layer(
        architecture,
        return_sequences=True,
        trainable_initial_state=start == "trained",
        **options,
    )
    rows = {"given": BATCH, "one for all": 1}.get(start)
    given = states(architecture, rows=rows) if rows else None
    before = np.repeat(given, BATCH // rows, axis=0) if rows else None
    expected = steps(layer.cell, x[:, way], before, flipped)
    _, state = keras.layers.RNN(layer.cell, **options)(
        x, initial_state=before, mask=MASK
    )
    close(state, expected[:, -1])
    for zero in (False, True):
        layer.return_sequences, layer.zero_output_for_mask = True, zero
        outputs, state = layer(x, initial_state=given, mask=MASK)
        close(state, expected[:, -1])
        # A masked step repeats the output before it, zero where there is none.
        counts = flipped if zero else np.cumsum(flipped, axis=1) > 0
        shown = np.where(counts[:, :, None], expected, 0)
        close(outputs, shown)
        layer.return_sequences = False
        last, _ = layer(x, initial_state=given, mask=MASK)
        close(last, shown[:, -1])


def test_masks_of_keras_layers(architecture):
    """Also beside an initial state, where Keras hands none over."""
    x, start = sequences(), states(architecture)
    x[~MASK] = 0
    layer = make_layer(architecture)
    inputs, state = keras.Input((TIME, FEATURES)), keras.Input((architecture.units,))
    masked = keras.layers.Masking()(inputs)
    outputs = [layer(masked), layer(masked, initial_state=state)]
    found = keras.Model([inputs, state], outputs)([x, start])
    for each, given in zip(found, (None, start), strict=True):
        close(each, layer(x, initial_state=given, mask=MASK))


def test_inputs_and_states_of_any_dtype(architecture):
    """As `LSTM` takes them: all is computed in the compute dtype."""
    x = np.random.default_rng(0).integers(0, 2, (BATCH, TIME, FEATURES))
    start = np.ones((BATCH, architecture.units))
    layer = make_layer(architecture, return_sequences=True)
    expected = steps(layer.cell, x.astype("float32"), start.astype("float32"))
    for dtype in ("bool", "int64", "float16", "float64"):
        inputs, state = x.astype(dtype), start.astype(dtype)
        outputs = layer(inputs, initial_state=[state])
        _, state = layer.cell(inputs[:, 0], state)
        assert dtype_of(outputs) == dtype_of(state) == "float32"
        close(outputs, expected)
        close(state, expected[:, 0])


def test_says_what_it_needs(architecture):
    """What the base classes refuse for all is in `test_arguments.py`."""
    name, cell = str(architecture), architecture.cell.__name__
    arguments = architecture.arguments
    with pytest.raises(TypeError, match=rf"^{name}\.__init__.* missing .*units'"):
        architecture.layer()
    none = dict.fromkeys([each for each in arguments if each.endswith("units")], 0)
    with pytest.raises(ValueError, match="units` must be a positive integer. Received"):
        architecture.layer(**arguments | none)
    within = rf"`{name}` is a layer, .* `keras.layers.RNN\({cell}\(...\)\)`. Received: "
    with pytest.raises(ValueError, match=within):
        keras.layers.RNN(architecture.layer(**arguments))(sequences())


@pytest.mark.parametrize("trained", [False, True])
def test_stateful(architecture, trained):
    x = sequences()
    options = {"stateful": True, "trainable_initial_state": trained}
    layer = make_layer(architecture, **options)
    whole = steps(layer.cell, x)
    close(layer(x[:, :2]), whole[:, 1])
    close(layer(x[:, 2:]), whole[:, -1])
    layer.reset_state()
    start = layer.cell.initial_state if trained else 0.0
    close(layer.states[0], np.broadcast_to(start, layer.states[0].shape))
    close(layer(x), whole[:, -1])
    if not trained:
        return
    # The first batch alone begins from it, and trains it, whatever it was at the build.
    layer.reset_state()
    for begins in (True, False):
        _, found = weight_gradients(layer, ops.sum, x)
        assert np.all((found["initial_state"] != 0) == begins)
        layer(x)  # JAX's gradient leaves the layer as it was.
    layer.reset_state()
    layer.cell.initial_state.assign(-0.5 * layer.cell.initial_state)
    close(layer(x), steps(layer.cell, x)[:, -1])


@pytest.mark.parametrize("unroll", [False, True])
def test_dropout(architecture, unroll):
    """The same masks at all steps, by the seed; none in inference."""
    x, generator = sequences(), keras.random.SeedGenerator(1)
    input_mask, state_mask = (
        keras.random.dropout(ops.ones((BATCH, size)), 0.5, seed=generator)
        for size in (FEATURES, architecture.units)
    )
    options = {"dropout": 0.5, "recurrent_dropout": 0.5, "seed": 1, "unroll": unroll}
    layer, cell = make_layer(architecture, **options), make_cell(architecture)
    cell.set_weights(layer.get_weights())
    state = cell.get_initial_state(BATCH)[0]
    for t in range(TIME):
        kept = state * state_mask
        left = state - kept if cell.residual else 0
        state = cell(x[:, t] * input_mask, kept)[1] + left
    found = layer(x, training=True)
    close(found, state[:, : cell.output_size])
    assert np.abs(found - layer(x, training=True)).max() > 0.01  # Other masks.
    for inferring in (layer, keras.layers.RNN(layer.cell)):
        close(inferring(x, training=False), steps(cell, x)[:, -1])


def test_the_layer_leaves_the_loop_of_keras(architecture, monkeypatch):
    def loop(*args, **kwargs):
        raise AssertionError("Keras's loop has been called")

    monkeypatch.setattr(recurrent_layer, "rnn", loop)
    assert np.isfinite(make_layer(architecture)(sequences(), training=True)).all()
    with pytest.raises(AssertionError, match="Keras's loop"):
        make_layer(architecture, unroll=True)(sequences())


@pytest.mark.parametrize("jit_compile", XLA)
@pytest.mark.parametrize("stock", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_trains(architecture, jit_compile, stock):
    layer = architecture.layer(**architecture.arguments, return_sequences=True)
    if stock:
        layer = keras.layers.RNN(layer.cell, return_sequences=True)
    model = keras.Sequential([keras.Input((TIME, FEATURES)), layer])
    model.add(keras.layers.Dense(2))
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=jit_compile)
    x = sequences(shape=(96, TIME, FEATURES))
    y = np.cumsum(x, axis=1)[:, :, :2]
    before = [np.array(weight) for weight in model.trainable_weights]
    losses = model.fit(x, y, epochs=10, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]
    for weight, old in zip(model.trainable_weights, before, strict=True):
        assert not np.array_equal(weight, old), weight.path
    close(model.predict(x, verbose=0), model(x), atol=ATOL * np.abs(y).max())


def test_starts_from_a_matrix_or_is_set_to_one(architecture):
    layer = make_layer(architecture, dtype="float64")
    for matrix in architecture.start_matrices():
        given = {**architecture.arguments, "recurrent_initializer": matrix}
        started = architecture.layer(**given, dtype="float64")
        started.build((None, TIME, FEATURES))
        found = started.recurrent_matrix()
        if not isinstance(matrix, str):
            is_complex = np.iscomplexobj(matrix)
            expected = reference.complex_block(matrix) if is_complex else matrix
            close(found, expected)  # Weights are drawn in float32.
            layer.set_recurrent_matrix(matrix)
            close(layer.recurrent_matrix(), expected, rtol=0, atol=1000 * EPS64)
        layer.set_recurrent_matrix(found)
        close(layer.recurrent_matrix(), found, rtol=0, atol=1000 * EPS64)


@pytest.mark.slow
def test_is_built_within_fit(architecture):
    """Where the weights are made while a training step is being traced."""
    matrices = architecture.start_matrices()
    for start in ({}, *({"recurrent_initializer": matrix} for matrix in matrices)):
        layer = architecture.layer(**architecture.arguments | start)
        model = keras.Sequential([layer, keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(sequences(), np.zeros((BATCH, 1)), verbose=0)
        assert np.isfinite(layer.recurrent_matrix()).all()


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(architecture, policy):
    x, compute = sequences(), policy.removeprefix("mixed_")
    layer, exact = make_layer(architecture, dtype=policy), make_layer(architecture)
    for bias in (each for each in layer.weights if each.name == "bias"):
        bias.assign(-np.abs(bias))  # With a positive one, modReLU jumps at 0.
    exact.set_weights(layer.get_weights())
    outputs = layer(x)
    assert dtype_of(outputs) == compute
    # The kernel is rounded, not what it is made from.
    close(layer.recurrent_matrix(), exact.recurrent_matrix(), atol=0)
    with layer.cell.reading(x[:, 0]):
        assert dtype_of(layer.cell._thread.sequence.recurrent_kernel) == compute
    # Each of the steps rounds its products and the state.
    atol = 4 * TIME * float(ml_dtypes.finfo(compute).eps)
    close(ops.cast(outputs, "float32"), exact(x), atol=atol)
    model = keras.Sequential([keras.Input((TIME, FEATURES)), layer])
    model.compile("sgd", "mse")
    model.train_on_batch(x, np.ones((BATCH, architecture.units)))
    for weight, old in zip(layer.weights, exact.get_weights(), strict=True):
        assert np.isfinite(weight).all()
        assert weight.name != "kernel" or not np.array_equal(weight, old)


@pytest.mark.parametrize("kind", ["cell", "layer"])
def test_config_holds_every_argument(architecture, kind):
    cls = getattr(architecture, kind)
    assert keras.saving.get_registered_name(cls) == f"keras_ortho>{cls.__name__}"
    shared = {"cell": CellArguments, "layer": LayerArguments}[kind].__annotations__
    keras_own = inspect.signature(keras.layers.Layer.__init__).parameters
    declared = {*inspect.signature(cls).parameters, *shared} - {*keras_own}
    given = {**architecture.arguments, **SHARED, **architecture.others}
    if kind == "layer":
        added = {*LayerArguments.__annotations__} - {*CellArguments.__annotations__}
        given |= dict.fromkeys(added, True)
    # Every argument is given, with a value that is not its default.
    assert set(given) == declared
    usual = cls(**architecture.arguments).get_config()
    config = cls(**given, name="named", dtype="mixed_bfloat16").get_config()
    for name in declared - {*architecture.arguments}:
        assert config[name] != usual[name], name
    again = cls.from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    assert (again.name, again.dtype_policy.name) == ("named", "mixed_bfloat16")
    for name, value in given.items():
        if isinstance(value, int | float):
            assert getattr(again if hasattr(again, name) else again.cell, name) == value


def test_shared_arguments_have_an_effect(architecture):
    """None of them is taken and then forgotten."""
    given = {name: value for name, value in SHARED.items() if name != "use_bias"}
    layer = architecture.layer(**architecture.arguments, **given)
    layer(sequences())
    cell = layer.cell
    assert np.abs(cell.kernel).max() > 0.1
    np.testing.assert_array_equal(cell.bias, 1)
    np.testing.assert_array_equal(cell.initial_state, 1)
    assert cell.bias.constraint is given["bias_constraint"]
    regularized = {w.regularizer for w in cell.weights} - {None}
    assert {given["recurrent_regularizer"], given["bias_regularizer"]} <= regularized
    assert sum(map(float, layer.losses)) > 0
    if len(cell.kernel.shape) == 2:  # Heads with inputs of their own: `test_heads.py`.
        assert cell.kernel.constraint is given["kernel_constraint"]
        assert given["kernel_regularizer"] in regularized
    for name, value in vars(keras.layers.SimpleRNN).items():
        if type(value) is property and name != "recurrent_constraint":
            assert getattr(layer, name) is getattr(cell, name)
    options = {"use_bias": False, "activation": "tanh", "trainable": False}
    biasless = architecture.layer(**architecture.arguments, **options)
    biasless.build((None, TIME, FEATURES))
    assert "bias" not in {weight.name for weight in biasless.weights}
    assert biasless.trainable_weights == biasless.cell.trainable_weights == []


def halved(x):
    """A regularizer that Keras does not know by its name."""
    return 0.5 * x


@pytest.mark.parametrize("wrapped", [False, True])
def test_saves_and_loads(architecture, wrapped, tmp_path):
    options = {"trainable_initial_state": True, "bias_regularizer": halved}
    layer = architecture.layer(**architecture.arguments, **options)
    if wrapped:
        cells = [architecture.cell(**architecture.arguments) for _ in range(2)]
        layer = keras.layers.Bidirectional(keras.layers.RNN(cells))
    model = keras.Sequential([keras.Input((TIME, FEATURES)), layer])
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    for weight in model.trainable_variables:  # No initializer gives such values.
        weight.assign(weight + 0.01)
    for weight in model.non_trainable_variables:
        if weight.name.endswith("signs"):  # No argument tells which.
            weight.assign(weight[::-1])
    x = sequences()
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    objects = {"halved": halved}
    loaded = keras.saving.load_model(tmp_path / "model.keras", custom_objects=objects)
    np.testing.assert_array_equal(loaded(x), model(x))
    assert len(loaded.optimizer.variables) == len(model.optimizer.variables)
    with keras.saving.custom_object_scope(objects):
        clone = keras.models.clone_model(model)
    clone.load_weights(tmp_path / "model.weights.h5")
    for weight, saved in zip(clone.weights, model.weights, strict=True):
        np.testing.assert_array_equal(weight, saved, err_msg=weight.path)


def test_keras_layer_checks(architecture):
    """Keras's own, of the layer and of the stock one around the cell."""
    shape, check = (BATCH, TIME, architecture.units), testing.TestCase().run_layer_test
    common = {"input_shape": (BATCH, TIME, FEATURES), "supports_masking": True}
    options = {"return_sequences": True, "go_backwards": True, "dropout": 0.5}
    check(
        architecture.layer,
        architecture.arguments | options,
        call_kwargs={"training": True},
        expected_output_shape=shape,
        expected_num_seed_generators=1,
        **common,
    )
    cell = architecture.cell(**architecture.arguments)
    check(keras.layers.RNN, {"cell": cell}, expected_output_shape=shape[::2], **common)


def test_stack_of_cells(architecture):
    cells = [architecture.cell(**architecture.arguments) for _ in range(2)]
    stack = keras.layers.RNN(cells, return_state=True)
    stack.build((BATCH, TIME, FEATURES))
    lively(stack, names=ORDINARY)
    start = [states(architecture, seed) for seed in range(2)]
    first = steps(cells[0], sequences(), start[0], MASK)
    second = steps(cells[1], first, start[1], MASK)
    output, (state,), (last,) = stack(
        sequences(), initial_state=[[each] for each in start], mask=MASK
    )
    # Of a row that is masked as a whole Keras shows another output on JAX.
    close(output[:3], second[:3, -1])
    close(state, first[:, -1])  # In a list each, as of `SimpleRNNCell`.
    close(last, second[:, -1])


def test_two_ways(architecture):
    options = {"return_sequences": True, "return_state": True}
    both = keras.layers.Bidirectional(make_layer(architecture, **options))
    both.build((BATCH, TIME, FEATURES))
    assert both.backward_layer.go_backwards
    start, x = [states(architecture, seed) for seed in range(2)], sequences()
    there, first = both.forward_layer(x, initial_state=start[0])
    back, second = both.backward_layer(x, initial_state=start[1])
    outputs, *last = both(x, initial_state=start)
    close(outputs, np.concatenate([there, back[:, ::-1]], axis=-1))
    close(last, [first, second])


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_time_distributed(architecture, dtype):
    """With a mask, as of words of sentences, and in another precision than the layer.

    The wrapper calls `call` itself: nothing is cast for the layer.
    """
    x = sequences(shape=(BATCH, 2, TIME, FEATURES))
    x = x.astype(dtype.removeprefix("mixed_")).astype("float32")
    mask = np.stack([MASK, MASK[::-1]], axis=1)
    layer = make_layer(architecture, dtype="float32")
    found = keras.layers.TimeDistributed(layer, dtype=dtype)(x, mask=mask)
    for i in range(2):
        close(found[:, i], layer(x[:, i], mask=mask[:, i]))


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e12])
def test_variables_of_any_size(architecture, size):
    """Zeros, and what a run that diverges leaves behind."""
    arguments = architecture.arguments | {"trainable_initial_state": False}
    layer = architecture.layer(**arguments, dtype="float64")
    layer.build((None, 1, FEATURES))
    others = {v.name for v in layer.trainable_variables} - {"kernel", "bias"}
    lively(layer, scale=size, names=others)
    state = states(architecture).astype("float64")
    value, found = weight_gradients(layer, ops.sum, state[:, None, :FEATURES], state)
    assert np.isfinite(value)
    for name, gradient in found.items():
        assert np.isfinite(gradient).all(), name
    # Where the variable is the matrix, an optimizer keeps it unitary; a set that
    # measures the distance in a way of its own, and names no parts, has none.
    kind, any_set = type(layer.cell.parametrization), Parametrization
    own = kind.distance is not any_set.distance and kind.parts is any_set.parts
    if own or "unitary" in map(group_of, layer.trainable_variables):
        return
    for name, part in manifold_parts(layer).items():
        # Some tens of products of orthogonal matrices with six rows.
        error = np.abs(part.conj().T @ part - np.eye(len(part))).max()
        assert error < 1e-12, name


def test_a_call_after_an_interrupted_one_uses_no_old_kernel(architecture):
    """Whether another layer calls the cell, nobody, or Keras's loop."""
    x, state = sequences(), states(architecture)

    class Broken(architecture.cell):
        def activate(self, inputs):
            raise RuntimeError("broken")

    cell, other = make_cell(architecture), lively(make_cell(architecture))
    cell.__class__ = Broken
    with pytest.raises(RuntimeError, match="broken"):
        keras.layers.RNN(cell, unroll=True)(x)
    cell.__class__ = architecture.cell
    cell.set_weights(other.get_weights())
    expected = steps(other, x, state)
    around = keras.layers.Lambda(lambda x: cell(x, [state])[1][0])
    close(around(x[:, 0]), expected[:, 0])
    tensors = map(ops.convert_to_tensor, (x[:, 0], state))
    close(cell.call(*tensors)[1], expected[:, 0])
    close(keras.layers.RNN(cell)(x, initial_state=state), expected[:, -1])


def test_what_one_thread_reads_is_not_anothers(architecture):
    """As where a server calls one model for several requests at once."""
    x, cell, found = sequences(), make_cell(architecture), []
    layer = keras.layers.RNN(cell)
    with cell.reading(x[:, 0]):
        mine = cell._thread.sequence
        thread = threading.Thread(target=lambda: found.append(layer(x)))
        thread.start()
        thread.join()
        assert cell._thread.sequence is mine is not None
    close(found[0], steps(cell, x)[:, -1])
