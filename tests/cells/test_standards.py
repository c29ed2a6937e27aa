"""The standards that every cell and layer meets."""

import inspect
import json
import threading

import keras
import numpy as np
import pytest
from keras import ops
from keras.src import testing

from keras_ortho.cells import layer as recurrent_layer
from keras_ortho.cells.cell import CellArguments
from keras_ortho.cells.layer import LayerArguments
from tests.cells.architectures import ARCHITECTURES, SHARED
from tests.cells.building import refused
from tests.gradients import weight_gradients

BATCH, TIME, FEATURES = 3, 5, 4
EPS = np.finfo("float32").eps
# Without XLA JAX runs one operation after the other: `test_runs_eagerly_...` does.
XLA = [True] if keras.backend.backend() == "jax" else [False, True]
# Ten steps' worth of products of a handful of numbers of order one.
ATOL = 100 * EPS

pytestmark = [
    pytest.mark.backends,
    pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str),
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]


def sequences(seed=0, shape=(BATCH, TIME, FEATURES), dtype="float32"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def lively(layer, seed=3):
    """Gives a built layer weights of order one, so that nothing hides in noise."""
    random = np.random.default_rng(seed)
    for weight in layer.trainable_variables:
        if weight.name in ("kernel", "bias", "initial_state"):
            weight.assign(0.5 * random.normal(size=weight.shape))
    return layer


def make_layer(architecture, **kwargs):
    layer = architecture.layer(**architecture.arguments, **kwargs)
    batch = BATCH if kwargs.get("stateful") else None
    layer.build((batch, TIME, FEATURES))
    return lively(layer)


def make_cell(architecture, **kwargs):
    cell = architecture.cell(**architecture.arguments, **kwargs)
    cell.build((None, FEATURES))
    return lively(cell)


def steps(cell, x, state=None, mask=None):
    """A loop in Python over single calls of a cell."""
    state = cell.get_initial_state(len(x)) if state is None else [state]
    outputs = []
    for t in range(x.shape[1]):
        _, new = cell(x[:, t], state)
        if mask is not None:
            new = [ops.where(mask[:, t, None], new[0], state[0])]
        state = new
        outputs.append(state[0])
    return np.stack([ops.convert_to_numpy(o) for o in outputs], axis=1)


@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize("unroll", [False, True])
def test_layer_equals_its_cell(architecture, go_backwards, unroll):
    x = sequences()
    layer = make_layer(
        architecture,
        return_sequences=True,
        return_state=True,
        go_backwards=go_backwards,
        unroll=unroll,
    )
    expected = steps(layer.cell, x[:, ::-1] if go_backwards else x)
    outputs, state = layer(x)
    assert outputs.shape == (BATCH, TIME, architecture.units)
    np.testing.assert_allclose(outputs, expected, atol=ATOL)
    np.testing.assert_allclose(state, expected[:, -1], atol=ATOL)
    stock = keras.layers.RNN(layer.cell, go_backwards=go_backwards, unroll=unroll)
    np.testing.assert_allclose(stock(x), expected[:, -1], atol=ATOL)


@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize("zero_output_for_mask", [False, True])
@pytest.mark.parametrize("unroll", [False, True])
def test_masks(architecture, go_backwards, zero_output_for_mask, unroll):
    x = sequences()
    # Whole, padded behind, padded in front and within, all of it.
    mask = np.ones((4, TIME), bool)
    mask[1, 3:] = mask[2, 0] = mask[2, 2] = mask[3] = False
    x = np.concatenate([x, x[:1]])
    layer = make_layer(
        architecture,
        return_sequences=True,
        return_state=True,
        go_backwards=go_backwards,
        zero_output_for_mask=zero_output_for_mask,
        unroll=unroll,
    )
    outputs, state = layer(x, mask=mask)
    way = slice(None, None, -1 if go_backwards else 1)
    expected = steps(layer.cell, x[:, way], mask=mask[:, way])
    np.testing.assert_allclose(state, expected[:, -1], atol=ATOL)
    if zero_output_for_mask:
        expected = np.where(mask[:, way, None], expected, 0)
    # Without it a step that is masked repeats the output of the step before, and
    # gives zero, as in Keras, where there was none.
    started = np.cumsum(mask[:, way], axis=1) > 0
    expected = np.where(started[:, :, None], expected, 0)
    np.testing.assert_allclose(outputs, expected, atol=ATOL)
    layer.return_sequences = False
    last, _ = layer(x, mask=mask)
    np.testing.assert_allclose(last, expected[:, -1], atol=ATOL)


def test_nothing_is_given_out_before_the_first_step_that_counts(architecture):
    """Zero on every backend, also where there is an initial state, which goes on."""
    x, mask = sequences(), np.ones((BATCH, TIME), bool)
    mask[0, :2] = False
    start = sequences(1, (BATCH, architecture.units))
    layer = make_layer(architecture, return_sequences=True, return_state=True)
    outputs, state = layer(x, initial_state=start, mask=mask)
    expected = steps(layer.cell, x, state=start, mask=mask)
    np.testing.assert_allclose(state, expected[:, -1], atol=ATOL)
    expected[0, :2] = 0
    np.testing.assert_allclose(outputs, expected, atol=ATOL)


def test_mask_of_a_masking_layer(architecture):
    x = sequences()
    x[1, 3:] = 0
    layer = make_layer(architecture)
    model = keras.Sequential(
        [keras.Input((TIME, FEATURES)), keras.layers.Masking(), layer]
    )
    expected = layer(x[1:2, :3])
    np.testing.assert_allclose(model(x)[1:2], expected, atol=ATOL)


def test_initial_state(architecture):
    x = sequences()
    layer = make_layer(architecture)
    start = np.random.default_rng(1).normal(size=(BATCH, architecture.units))
    start = start.astype("float32")
    expected = steps(layer.cell, x, state=start)[:, -1]
    np.testing.assert_allclose(layer(x, initial_state=[start]), expected, atol=ATOL)


def test_the_inputs_mask_beside_an_initial_state(architecture):
    """Which Keras hands over to a layer of a single tensor only."""
    x = sequences()
    x[0, 3:] = x[1, 0] = 0
    layer = make_layer(architecture)
    start = np.full((BATCH, architecture.units), 0.5, "float32")
    inputs, state = keras.Input((TIME, FEATURES)), keras.Input((architecture.units,))
    masked = keras.layers.Masking()(inputs)
    model = keras.Model([inputs, state], layer(masked, initial_state=state))
    expected = layer(x, initial_state=start, mask=x.any(axis=-1))
    np.testing.assert_allclose(model([x, start]), expected, atol=ATOL)
    unmasked = layer(x, initial_state=start)
    assert np.abs(ops.convert_to_numpy(unmasked - expected)).max() > 1000 * ATOL


def test_inputs_and_states_of_any_dtype(architecture):
    """As `LSTM` takes them: all is computed in the compute dtype."""
    x = np.random.default_rng(0).integers(0, 2, (BATCH, TIME, FEATURES))
    start = np.ones((BATCH, architecture.units))
    layer = make_layer(architecture, return_sequences=True)

    def results(dtype):
        inputs, state = x.astype(dtype), start.astype(dtype)
        sequences = layer(inputs, initial_state=[state])
        tensors = [ops.convert_to_tensor(each) for each in (inputs[:, 0], state)]
        called, (uncalled, _) = (
            layer.cell(inputs[:, 0], state),
            layer.cell.call(*tensors),
        )
        return [sequences, *called, uncalled]

    expected = results("float32")
    for dtype in ("bool", "uint8", "int32", "int64", "float16", "float64"):
        for found, each in zip(results(dtype), expected, strict=True):
            assert keras.backend.standardize_dtype(found.dtype) == "float32"
            np.testing.assert_allclose(found, each, atol=ATOL)


def test_complex_numbers_are_refused(architecture):
    """A cast would drop their imaginary part without a word."""
    layer, x = make_layer(architecture), sequences()
    start = np.zeros((BATCH, architecture.units), "complex64")
    message = r"`{0}` must be real: .*Received: {0}\.dtype=.*complex64"
    for name, call in {
        "sequences": lambda: layer(x.astype("complex64")),
        "initial_state": lambda: layer(x, initial_state=start),
        "inputs": lambda: layer.cell(x[:, 0].astype("complex64"), [start.real]),
        "states": lambda: layer.cell(x[:, 0], [start]),
    }.items():
        with pytest.raises(ValueError, match=message.format(name)):
            call()


def test_integers_train(architecture):
    x = np.random.default_rng(0).integers(0, 9, (BATCH, TIME, FEATURES))
    layer = make_layer(architecture)
    (_, found), (_, expected) = (
        weight_gradients(layer, ops.sum, inputs, training=True)
        for inputs in (x, x.astype("float32"))
    )
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient, rtol=1e-5, atol=ATOL)


@pytest.mark.parametrize("inner", ["float32", "mixed_float16", "float64"])
@pytest.mark.parametrize("outer", ["float32", "mixed_float16", "float64"])
def test_within_a_wrapper_of_another_precision(architecture, inner, outer):
    """`TimeDistributed` calls `call` itself: nothing is cast for the layer."""
    x = sequences(shape=(2, 2, TIME, FEATURES)).astype(outer.removeprefix("mixed_"))
    layer = make_layer(architecture, dtype=inner)
    outputs = keras.layers.TimeDistributed(layer, dtype=outer)(x)
    dtype = inner.removeprefix("mixed_")
    assert keras.backend.standardize_dtype(outputs.dtype) == dtype
    # The same numbers, to what a product may be reordered: no weight is rounded.
    np.testing.assert_allclose(
        outputs[:, 1], layer(x[:, 1]), atol=100 * np.finfo(dtype).eps
    )


def test_one_initial_state_for_all_sequences(architecture):
    x = sequences()
    layer = make_layer(architecture)
    start = np.random.default_rng(1).normal(size=(1, architecture.units))
    start = start.astype("float32")
    expected = layer(x, initial_state=[np.repeat(start, BATCH, axis=0)])
    np.testing.assert_allclose(layer(x, initial_state=[start]), expected, atol=ATOL)


def test_shapes_that_do_not_fit_the_sequences(architecture):
    x = sequences()
    layer = make_layer(architecture)
    n = architecture.units
    for shape in ((BATCH + 1, n), (BATCH, n + 1), (1, n + 1), (1, 1), (1,), ()):
        with pytest.raises(ValueError, match="`initial_state` must have the shape"):
            layer(x, initial_state=[np.zeros(shape, "float32")])
    for shape in ((BATCH, TIME + 1), (BATCH - 1, TIME)):
        with pytest.raises(ValueError, match="`mask` must have the shape"):
            layer(x, mask=np.ones(shape, bool))


def test_a_layer_has_one_initial_state(architecture):
    layer = make_layer(architecture)
    state = np.zeros((BATCH, architecture.units), "float32")
    inputs, start = keras.Input((TIME, FEATURES)), keras.Input((architecture.units,))
    message = "must be a tensor, or a list with one tensor.*Received: 2 init"
    for several in ([state, state], (state, state)):  # As of an LSTM.
        with pytest.raises(ValueError, match=message):
            layer(sequences(), initial_state=several)
    with pytest.raises(ValueError, match=message):
        layer(inputs, initial_state=[start, start])
    assert layer(inputs, initial_state=[start]).shape == (None, architecture.units)


def test_a_layer_is_no_cell(architecture):
    """What to use instead is said where the weights would be made."""
    name, cell = str(architecture), architecture.cell.__name__
    message = (
        rf"`{name}` is a layer, .* `keras.layers.RNN\({cell}\(...\)\)`. Received: "
    )
    layer = architecture.layer(**architecture.arguments)
    with pytest.raises(ValueError, match=message):
        keras.Sequential([keras.Input((TIME, FEATURES)), keras.layers.RNN(layer)])
    assert layer.weights == []


def test_initializers_of_other_variables(architecture):
    """None of another kind of matrix, whatever shape it takes."""
    own = make_layer(architecture).cell.parametrization.takes
    kinds = {
        "henaff_skew": "skew entries",
        "normal_reflectors": "reflectors",
        "uniform_phases": "phases",
        "unitary_composition": "a unitary composition",
    }
    if not own:
        pytest.skip("It takes any initializer")
    for name, makes in kinds.items():
        if makes != own:
            with pytest.raises(
                ValueError, match=f"must return {own}, or a matrix. Rec"
            ):
                make_layer(architecture, recurrent_initializer=name)


def test_arrays_of_another_shape(architecture):
    """Keras would repeat them."""
    own = str(architecture.arguments)
    for name, shape in (
        ("kernel_initializer", (1, architecture.units)),
        ("bias_initializer", (1,)),
        ("initial_state_initializer", (1,)),
    ):
        if name in own:
            continue
        with pytest.raises(ValueError, match=f"`{name}` must have the shape .* Rec"):
            make_layer(
                architecture,
                trainable_initial_state=True,
                **{name: np.ones(shape, "float32")},
            )


def test_a_complex_initializer_needs_complex_units(architecture):
    if not architecture.layer.cell_class.complex_state:
        with pytest.raises(ValueError, match="`recurrent_initializer` must be real"):
            make_layer(architecture, recurrent_initializer=1j * np.eye(2))


def test_trainable_initial_state(architecture):
    x = sequences()
    layer = make_layer(architecture, trainable_initial_state=True)
    assert layer.cell.initial_state.shape == (architecture.units,)
    added = not architecture.starts_trained
    assert len(layer.trainable_weights) == architecture.num_trainable + added
    start = np.tile(layer.cell.initial_state, (BATCH, 1))
    expected = steps(layer.cell, x, state=start)[:, -1]
    np.testing.assert_allclose(layer(x), expected, atol=ATOL)
    _, found = weight_gradients(layer, ops.sum, x)
    assert np.all(np.abs(found["initial_state"]) > 0)
    # The stock layer asks the cell, too.
    np.testing.assert_allclose(keras.layers.RNN(layer.cell)(x), expected, atol=ATOL)


@pytest.mark.parametrize("trainable_initial_state", [False, True])
def test_stateful(architecture, trainable_initial_state):
    x = sequences()
    layer = make_layer(
        architecture,
        stateful=True,
        trainable_initial_state=trainable_initial_state,
    )
    whole = steps(layer.cell, x)
    np.testing.assert_allclose(layer(x[:, :2]), whole[:, 1], atol=ATOL)
    np.testing.assert_allclose(layer(x[:, 2:]), whole[:, -1], atol=ATOL)
    layer.reset_state()
    start = layer.cell.initial_state if trainable_initial_state else 0.0
    np.testing.assert_allclose(
        layer.states[0], np.broadcast_to(start, layer.states[0].shape)
    )
    np.testing.assert_allclose(layer(x), whole[:, -1], atol=ATOL)


def test_stateful_trains_its_initial_state(architecture):
    """By the first batch, which alone begins from it, whatever it was at the build."""
    x = sequences()
    layer = make_layer(architecture, stateful=True, trainable_initial_state=True)
    for begins in (True, False):
        _, found = weight_gradients(layer, ops.sum, x)
        assert np.all((found["initial_state"] != 0) == begins)
        layer(x)  # JAX's gradient leaves the layer as it was.
    layer.reset_state()
    layer.cell.initial_state.assign(-0.5 * layer.cell.initial_state)
    expected = steps(layer.cell, x)[:, -1]
    np.testing.assert_allclose(layer(x), expected, atol=ATOL)


def test_variable_lengths(architecture):
    layer = architecture.layer(**architecture.arguments)
    model = keras.Sequential([keras.Input((None, FEATURES)), layer])
    lively(layer)
    for length in (1, 3, 9):
        x = sequences(shape=(2, length, FEATURES))
        expected = steps(layer.cell, x)[:, -1]
        np.testing.assert_allclose(model.predict(x, verbose=0), expected, atol=ATOL)


def test_bidirectional(architecture):
    layer = keras.layers.Bidirectional(
        architecture.layer(**architecture.arguments, return_sequences=True)
    )
    x = sequences()
    forward, backward = np.split(ops.convert_to_numpy(layer(x)), 2, axis=-1)
    np.testing.assert_allclose(forward, steps(layer.forward_layer.cell, x), atol=ATOL)
    np.testing.assert_allclose(
        backward[:, ::-1], steps(layer.backward_layer.cell, x[:, ::-1]), atol=ATOL
    )


def test_stacked(architecture):
    x = sequences()
    first = make_layer(architecture, return_sequences=True)
    second = architecture.layer(**architecture.arguments)
    expected = second(first(x))
    stock = keras.layers.RNN([first.cell, second.cell])
    np.testing.assert_allclose(stock(x), expected, atol=ATOL)


def test_time_distributed(architecture):
    x = sequences(shape=(2, 3, TIME, FEATURES))
    layer = make_layer(architecture)
    outputs = keras.layers.TimeDistributed(layer)(x)
    for i in range(3):
        np.testing.assert_allclose(outputs[:, i], layer(x[:, i]), atol=ATOL)


@pytest.mark.parametrize("name", ["dropout", "recurrent_dropout"])
def test_dropout(architecture, name):
    x = np.ones((BATCH, TIME, FEATURES), "float32")
    layer, twin = (make_layer(architecture, **{name: 0.5}, seed=1) for _ in range(2))
    twin.set_weights(layer.get_weights())
    once, again = (np.asarray(layer(x, training=True)) for _ in range(2))
    assert np.abs(once - again).max() > 0.01
    # The same seed, the same masks.
    np.testing.assert_allclose(twin(x, training=True), once, atol=ATOL)
    without = make_layer(architecture)
    without.set_weights(layer.get_weights())
    assert np.abs(once - without(x)).max() > 0.01
    for inferring in (layer, keras.layers.RNN(layer.cell)):
        np.testing.assert_allclose(inferring(x, training=False), without(x), atol=ATOL)


def test_dropout_masks_stay_the_same_over_time(architecture):
    cell = make_cell(architecture, dropout=0.5, recurrent_dropout=0.5, seed=1)
    x = sequences(shape=(BATCH, TIME, FEATURES))
    masks = []

    class Spy(type(cell)):
        def _mask(self, like, rate):
            masks.append((tuple(like.shape), super()._mask(like, rate)))
            return masks[-1][1]

    cell.__class__ = Spy
    layer = keras.layers.RNN(cell, unroll=True)
    masked = layer(x, training=True)
    cell.__class__ = architecture.cell
    assert [shape for shape, _ in masks] == [
        (BATCH, FEATURES),
        (BATCH, architecture.units),
    ]
    cell.dropout = cell.recurrent_dropout = 0.0
    input_mask, state_mask = (ops.convert_to_numpy(mask) for _, mask in masks)
    state = cell.get_initial_state(BATCH)[0]
    for t in range(TIME):
        kept = state * state_mask
        left = state - kept if cell.residual else 0
        state = cell(x[:, t] * input_mask, kept)[0] + left
    np.testing.assert_allclose(masked, state, atol=ATOL)


@pytest.mark.parametrize("recompute", [False, 2])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_the_layer_has_the_gradient_of_the_stock_loop(
    architecture, masked, return_sequences, recompute, dropout
):
    """A gradient by hand, where the layer has one, against autodiff."""
    x = sequences()
    mask = np.ones((BATCH, TIME), bool)
    mask[0, 2:] = mask[1, 1] = False
    kwargs = {"mask": mask if masked else None, "training": True}
    shared = {"trainable_initial_state": True, "go_backwards": True}
    shared["return_sequences"] = return_sequences
    shared |= {"recurrent_dropout": dropout, "seed": 1}
    layer = make_layer(architecture, recompute=recompute, **shared)
    stock = make_layer(architecture, unroll=True, **shared)
    stock.set_weights(layer.get_weights())
    (_, found), (_, expected) = (
        weight_gradients(each, lambda h: ops.sum(ops.sin(h)), x, **kwargs)
        for each in (layer, stock)
    )
    for name, gradient in expected.items():
        atol = ATOL * max(1, np.abs(gradient).max())
        np.testing.assert_allclose(found[name], gradient, atol=atol, err_msg=name)


@pytest.mark.parametrize("training", [False, True])
def test_the_layer_leaves_the_loop_of_keras(architecture, training, monkeypatch):
    def loop(*args, **kwargs):
        raise AssertionError("Keras's loop has been called")

    monkeypatch.setattr(recurrent_layer, "rnn", loop)
    layer = make_layer(architecture)
    assert np.isfinite(layer(sequences(), training=training)).all()
    with pytest.raises(AssertionError, match="Keras's loop"):
        make_layer(architecture, unroll=True)(sequences())


@pytest.mark.parametrize("jit_compile", XLA)
@pytest.mark.parametrize("stock", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_trains(architecture, jit_compile, stock):
    keras.utils.set_random_seed(0)
    layer = architecture.layer(**architecture.arguments, return_sequences=True)
    if stock:
        layer = keras.layers.RNN(
            architecture.cell(**architecture.arguments), return_sequences=True
        )
    model = keras.Sequential(
        [keras.Input((TIME, FEATURES)), layer, keras.layers.Dense(2)]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=jit_compile)
    x = sequences(shape=(96, TIME, FEATURES))
    y = np.cumsum(x, axis=1)[:, :, :2]
    before = model.get_weights()
    losses = model.fit(x, y, epochs=10, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]
    for weight, old in zip(model.trainable_weights, before, strict=False):
        assert not np.array_equal(weight, old), weight.path
    np.testing.assert_allclose(
        model.predict(x, verbose=0), model(x), atol=ATOL * np.abs(y).max()
    )


def test_runs_eagerly_and_compiled_alike(architecture):
    x, y = sequences(), np.ones((BATCH, architecture.units), "float32")
    start = make_layer(architecture).get_weights()
    weights = []
    for run_eagerly, jit_compile in [(True, False), (False, False), (False, True)]:
        layer = make_layer(architecture)
        model = keras.Sequential([keras.Input((TIME, FEATURES)), layer])
        model.compile(
            keras.optimizers.SGD(0.01),
            "mse",
            run_eagerly=run_eagerly,
            jit_compile=jit_compile,
        )
        layer.set_weights(start)
        model.fit(x, y, epochs=3, verbose=0)
        weights.append(layer.get_weights())
    for found in weights[1:]:
        for value, expected in zip(found, weights[0], strict=True):
            np.testing.assert_allclose(value, expected, atol=ATOL)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(architecture, policy):
    x = sequences()
    layer = make_layer(architecture, dtype=policy)
    exact = make_layer(architecture)
    exact.set_weights(layer.get_weights())
    outputs = layer(x)
    compute = policy.removeprefix("mixed_")
    assert keras.backend.standardize_dtype(outputs.dtype) == compute
    assert layer.recurrent_matrix().dtype == exact.recurrent_matrix().dtype
    np.testing.assert_allclose(
        ops.convert_to_numpy(ops.cast(outputs, "float32")),
        ops.convert_to_numpy(exact(x)),
        # Each of the steps rounds its products and the state.
        atol=4
        * TIME
        * float(ops.cast(np.finfo("float32").eps, "float32"))
        * 2 ** (16 if compute == "bfloat16" else 13),
    )


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_trains_in_mixed_precision(architecture, policy):
    x = sequences()
    layer = make_layer(architecture, dtype=policy)
    model = keras.Sequential([keras.Input((TIME, FEATURES)), layer])
    model.compile("sgd", "mse")
    before = layer.get_weights()
    model.train_on_batch(x, np.ones((BATCH, architecture.units)))
    assert all(np.isfinite(w).all() for w in layer.get_weights())
    assert not np.array_equal(layer.get_weights()[1], before[1])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_pure_precision(architecture, dtype):
    layer = make_layer(architecture, dtype=dtype)
    assert keras.backend.standardize_dtype(layer(sequences()).dtype) == dtype
    free = layer.cell.parametrization.variables(layer.cell.units)
    exact = {v.name for v in free if v.exact}
    others = [w for w in layer.weights if w.name not in exact]
    dtypes = {keras.backend.standardize_dtype(w.dtype) for w in others}
    assert {d for d in dtypes if "float" in d} == {dtype}
    kernel = "float64" if dtype == "float64" else "float32"
    assert keras.backend.standardize_dtype(layer.recurrent_matrix().dtype) == kernel


def test_is_registered_under_the_package_name(architecture):
    for cls in (architecture.cell, architecture.layer):
        assert keras.saving.get_registered_name(cls) == f"keras_ortho>{cls.__name__}"


@pytest.mark.parametrize("kind", ["cell", "layer"])
def test_config_holds_every_argument(architecture, kind):
    cls = getattr(architecture, kind)
    shared = {"cell": CellArguments, "layer": LayerArguments}[kind].__annotations__
    keras_own = inspect.signature(keras.layers.Layer.__init__).parameters
    declared = {*inspect.signature(cls).parameters, *shared} - {*keras_own}
    given = {**architecture.arguments, **SHARED, **architecture.others}
    if kind == "layer":
        given |= dict.fromkeys(
            ["return_sequences", "return_state", "go_backwards", "stateful"], True
        )
        given |= dict.fromkeys(["recompute", "unroll", "zero_output_for_mask"], True)
    # Every argument is given, with a value that is not its default.
    assert set(given) == declared
    usual = cls(**architecture.arguments).get_config()
    config = cls(**given, name="named", dtype="mixed_bfloat16").get_config()
    for name in declared - {*architecture.arguments}:
        assert config[name] != usual[name], name
    again = cls.from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    for name, value in given.items():
        if isinstance(value, int | float):
            assert getattr(again if hasattr(again, name) else again.cell, name) == value
    assert again.name == "named"
    assert again.dtype_policy.name == "mixed_bfloat16"


def test_shared_arguments_have_an_effect(architecture):
    """None of them is taken and then forgotten."""
    x = sequences()
    given = {name: value for name, value in SHARED.items() if name != "use_bias"}
    layer = architecture.layer(**architecture.arguments, **given)
    layer.build((None, TIME, FEATURES))
    cell = layer.cell
    weights = {weight.name: np.asarray(weight) for weight in cell.weights}
    assert np.abs(weights["kernel"]).max() > 0.1
    np.testing.assert_array_equal(weights["bias"], 1)
    np.testing.assert_array_equal(weights["initial_state"], 1)
    kernel = weights["kernel"]
    if kernel.ndim == 2:
        assert cell.kernel.constraint is SHARED["kernel_constraint"]
        assert cell.kernel.regularizer is SHARED["kernel_regularizer"]
    else:  # Heads that read inputs of their own: block by block.
        eps = np.finfo("float32").eps
        constrained = np.asarray(cell.kernel.constraint(cell.kernel))
        for each, block in zip(constrained, kernel, strict=True):
            expected = SHARED["kernel_constraint"](block)
            np.testing.assert_allclose(each, expected, rtol=10 * eps)
        penalty = sum(float(SHARED["kernel_regularizer"](block)) for block in kernel)
        # A sum of as many squares.
        found = float(cell.kernel.regularizer(cell.kernel))
        np.testing.assert_allclose(found, penalty, rtol=kernel.size * eps)
    assert cell.bias.constraint is SHARED["bias_constraint"]
    assert layer.activation is keras.activations.tanh
    assert cell.seed == 7  # What it does: `test_dropout`.
    layer(x)
    regularized = [w.regularizer for w in cell.weights if w.regularizer is not None]
    for name, value in SHARED.items():
        if name.endswith("regularizer") and name != "kernel_regularizer":
            assert value in regularized, name
    assert len(layer.losses) == len(regularized)
    assert sum(map(float, layer.losses)) > 0
    biasless = architecture.layer(
        **architecture.arguments, use_bias=False, activation="tanh"
    )
    biasless.build((None, TIME, FEATURES))
    assert biasless.cell.bias is None
    assert "bias" not in {weight.name for weight in biasless.weights}


@pytest.mark.parametrize("wrapped", [False, True])
def test_saves_and_loads(architecture, wrapped, tmp_path):
    layer = architecture.layer(**architecture.arguments, trainable_initial_state=True)
    if wrapped:
        layer = keras.layers.Bidirectional(
            keras.layers.RNN(architecture.cell(**architecture.arguments))
        )
    model = keras.Sequential([keras.Input((TIME, FEATURES)), layer])
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    for weight in model.trainable_variables:  # No initializer gives such values.
        weight.assign(weight + 0.01)
    x = sequences()
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    np.testing.assert_array_equal(loaded(x), model(x))
    assert len(loaded.optimizer.variables) == len(model.optimizer.variables)
    model.save_weights(tmp_path / "model.weights.h5")
    clone = keras.models.clone_model(model)
    clone.load_weights(tmp_path / "model.weights.h5")
    for weight, saved in zip(clone.weights, model.weights, strict=True):
        np.testing.assert_array_equal(weight, saved, err_msg=weight.path)


def halved(x):
    """A regularizer that Keras does not know by its name."""
    return 0.5 * x


def test_loads_with_what_is_not_registered(architecture, tmp_path):
    """As Keras's own layers do, from `custom_objects` or within a scope."""
    layer = architecture.layer(**architecture.arguments, bias_regularizer=halved)
    model = keras.Sequential([keras.Input((TIME, FEATURES)), layer])
    model.save(tmp_path / "model.keras")
    objects = {"halved": halved}
    loaded = keras.saving.load_model(
        tmp_path / "model.keras", custom_objects=objects, compile=False
    )
    np.testing.assert_array_equal(loaded(sequences()), model(sequences()))
    with keras.saving.custom_object_scope(objects):
        made = [keras.models.clone_model(model).layers[0]]
        made += [keras.layers.Bidirectional(layer).forward_layer]
    made += [type(layer).from_config(layer.get_config(), custom_objects=objects)]
    for each in [loaded.layers[0], *made]:
        assert each.bias_regularizer is halved


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="a SavedModel is TensorFlow's"
)
def test_exports(architecture, tmp_path):
    import tensorflow as tf

    layer = make_layer(architecture)
    model = keras.Sequential([keras.Input((None, FEATURES)), layer])
    model.export(tmp_path / "saved", verbose=False)
    artifact = tf.saved_model.load(str(tmp_path / "saved"))
    for length in (TIME, 2 * TIME):
        x = sequences(shape=(2, length, FEATURES))
        np.testing.assert_allclose(artifact.serve(x), model(x), atol=ATOL)


class KerasChecks(testing.TestCase):
    """Keras's own checks of a layer."""

    def check(self, architecture, **kwargs):
        arguments = {**architecture.arguments, **kwargs}
        shape = (BATCH, TIME, architecture.units)
        self.run_layer_test(
            architecture.layer,
            arguments,
            input_shape=(BATCH, TIME, FEATURES),
            call_kwargs={"training": True},
            expected_output_shape=shape
            if kwargs.get("return_sequences")
            else shape[::2],
            expected_num_trainable_weights=architecture.num_trainable,
            expected_num_non_trainable_weights=architecture.num_fixed,
            expected_num_seed_generators=1,
            supports_masking=True,
        )
        self.run_layer_test(
            keras.layers.RNN,
            {"cell": architecture.cell(**architecture.arguments), **kwargs},
            input_shape=(BATCH, TIME, FEATURES),
            expected_output_shape=shape
            if kwargs.get("return_sequences")
            else shape[::2],
            supports_masking=True,
        )


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"return_sequences": True, "go_backwards": True},
        {"unroll": True},
    ],
    ids=["plain", "backwards", "unrolled"],
)
def test_keras_layer_checks(architecture, kwargs):
    KerasChecks().check(architecture, **kwargs)


def test_keras_layer_checks_with_dropout(architecture):
    arguments = {**architecture.arguments, "dropout": 0.5, "recurrent_dropout": 0.5}
    KerasChecks().run_layer_test(
        architecture.layer,
        arguments,
        input_shape=(BATCH, TIME, FEATURES),
        call_kwargs={"training": True},
        expected_output_shape=(BATCH, architecture.units),
        expected_num_seed_generators=1,
        supports_masking=True,
    )


def test_an_exception_in_the_loop_leaves_nothing_behind(architecture):
    x = sequences()
    cell = make_cell(architecture)
    layer = keras.layers.RNN(cell, unroll=True)
    expected = np.asarray(layer(x))

    class Broken(type(cell)):
        def activate(self, inputs):
            raise RuntimeError("broken")

    cell.__class__ = Broken
    with pytest.raises(RuntimeError, match="broken"):
        layer(x)
    cell.__class__ = architecture.cell
    weights = cell.get_weights()
    # Other weights from here on: a kernel that was left behind would show.
    other = make_cell(architecture)
    cell.set_weights(other.get_weights())
    np.testing.assert_allclose(steps(cell, x), steps(other, x), atol=ATOL)
    np.testing.assert_allclose(layer(x), steps(other, x)[:, -1], atol=ATOL)
    cell.set_weights(weights)
    np.testing.assert_allclose(layer(x), expected, atol=ATOL)


def test_a_call_after_an_interrupted_one_uses_no_old_kernel(architecture):
    """Where the cell is called within another layer, which has prepared nothing."""
    x = sequences()
    state = np.ones((BATCH, architecture.units), "float32")

    class Broken(architecture.cell):
        def activate(self, inputs):
            raise RuntimeError("broken")

    class Around(keras.layers.Layer):
        def __init__(self, cell):
            super().__init__()
            self.cell = cell

        def call(self, inputs, state):
            return self.cell(inputs, [state])[0]

    cell, other = make_cell(architecture), make_cell(architecture)
    random = np.random.default_rng(5)
    for weight in other.trainable_variables:
        weight.assign(0.5 * random.normal(size=weight.shape))
    cell.__class__ = Broken
    with pytest.raises(RuntimeError, match="broken"):
        keras.layers.RNN(cell, unroll=True)(x)
    cell.__class__ = architecture.cell
    cell.set_weights(other.get_weights())
    expected, _ = other(x[:, 0], [state])
    np.testing.assert_allclose(Around(cell)(x[:, 0], state), expected, atol=ATOL)


def test_what_one_thread_reads_is_not_anothers(architecture):
    """As where a server calls one model for several requests at once."""
    x = sequences()
    cell = make_cell(architecture)
    layer = keras.layers.RNN(cell)
    expected = np.asarray(layer(x))
    found = []

    def other():
        found.append(cell._sequence)
        found.append(np.asarray(layer(x)))

    with cell.reading(x[:, 0]):
        mine = cell._sequence
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert cell._sequence is mine is not None
    assert found[0] is None
    np.testing.assert_allclose(found[1], expected, atol=ATOL)


def test_one_cell_in_two_layers(architecture):
    cell = make_cell(architecture)
    inputs = keras.Input((TIME, FEATURES))
    model = keras.Model(
        inputs,
        [
            keras.layers.RNN(cell)(inputs),
            keras.layers.RNN(cell, go_backwards=True)(inputs),
        ],
    )
    x = sequences()
    forward, backward = model(x)
    np.testing.assert_allclose(forward, steps(cell, x)[:, -1], atol=ATOL)
    np.testing.assert_allclose(backward, steps(cell, x[:, ::-1])[:, -1], atol=ATOL)


def test_what_keras_recurrent_layers_tell_of_their_cell(architecture):
    layer = architecture.layer(**architecture.arguments, dropout=0.3)
    assert layer.dropout == 0.3
    told = {n for n, v in vars(keras.layers.SimpleRNN).items() if type(v) is property}
    assert len(told) == 14
    for name in told - {"recurrent_constraint"}:
        assert getattr(layer, name) is getattr(layer.cell, name)


@pytest.mark.parametrize("units", [0, -3, 2.5, None, "six", True])
def test_units_must_be_a_positive_integer(architecture, units):
    names = [name for name in architecture.arguments if name.endswith("units")]
    assert names
    for name in names:
        with pytest.raises(
            ValueError, match=f"`{name}` must be a positive integer. Received: {name}"
        ):
            architecture.cell(**{**architecture.arguments, name: units})


@pytest.mark.parametrize("name", ["dropout", "recurrent_dropout"])
@pytest.mark.parametrize("rate", [-0.1, 1, 1.5, None, "half"])
def test_dropout_must_be_a_fraction(architecture, name, rate):
    with pytest.raises(
        ValueError, match=f"`{name}` must be a fraction.*Received: {name}"
    ):
        architecture.layer(**architecture.arguments, **{name: rate})


def test_what_needs_a_built_cell(architecture):
    def cell():
        return architecture.cell(**architecture.arguments, trainable_initial_state=True)

    calls = [
        lambda: cell().recurrent_matrix(),
        lambda: cell().get_initial_state(1),
    ]
    if architecture.matrices:  # Or none can be set at all.
        matrix = np.eye(architecture.units)
        calls.append(lambda: cell().set_recurrent_matrix(matrix))
    for call in calls:
        with pytest.raises(ValueError, match="Received: .* with built=False"):
            call()


def test_a_matrix_of_another_shape(architecture):
    cell = make_cell(architecture)
    with refused(cell, r"Received: .*shape"):
        cell.set_recurrent_matrix(np.eye(architecture.units + 1))


def test_modrelu_needs_its_bias(architecture):
    with pytest.raises(
        ValueError, match="Received: activation='modrelu', use_bias=False"
    ):
        architecture.cell(
            **architecture.arguments, activation="modrelu", use_bias=False
        )


def test_missing_arguments(architecture):
    """The error speaks of what was called, not of the cell within."""
    name, given = str(architecture), architecture.arguments
    for missing in [name for name in given if name.endswith("units")]:
        rest = {key: value for key, value in given.items() if key != missing}
        with pytest.raises(TypeError, match=rf"^{name}\.__init__.*'{missing}'"):
            architecture.layer(**rest)


def test_unknown_arguments(architecture):
    for cls in (architecture.cell, architecture.layer):
        message = rf"passed to {cls.__name__}: .*recurrent_constraint"
        with pytest.raises(ValueError, match=message):
            cls(**architecture.arguments, recurrent_constraint="max_norm")


def test_features_must_be_known(architecture):
    with pytest.raises(ValueError, match=r"Received: input_shape=\(None, None\)"):
        architecture.cell(**architecture.arguments).build((None, None))


@pytest.mark.slow
@pytest.mark.parametrize("stock", [False, True])
def test_is_built_within_fit(architecture, stock):
    """Where the weights are made while a training step is being traced."""
    # The cell is the same: within Keras's layer one initializer will do.
    for initializer in (None,) if stock else (None, *architecture.matrices):
        arguments = dict(architecture.arguments)
        if initializer is not None:
            arguments["recurrent_initializer"] = initializer
        layer = architecture.layer(**arguments)
        if stock:
            layer = keras.layers.RNN(architecture.cell(**arguments))
        model = keras.Sequential([layer, keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(sequences(), np.zeros((BATCH, 1)), verbose=0)
        kernel = ops.convert_to_numpy(layer.cell.recurrent_matrix())
        assert np.isfinite(kernel).all()
        if isinstance(initializer, np.ndarray):
            # One step of Adam away from it.
            assert np.abs(kernel - initializer).max() < 0.01


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_stateless_call(architecture, dropout):
    """Keras's functional form, as a training loop in JAX calls it."""
    x = sequences()
    layer = make_layer(architecture, dropout=dropout, recurrent_dropout=dropout, seed=1)
    state = [
        [v.value for v in layer.trainable_variables],
        [v.value for v in layer.non_trainable_variables],
    ]

    def call(trainable, fixed, x):
        return layer.stateless_call(trainable, fixed, x, training=True)[0]

    expected = make_layer(
        architecture, dropout=dropout, recurrent_dropout=dropout, seed=1
    )
    expected.set_weights(layer.get_weights())
    expected = ops.convert_to_numpy(expected(x, training=True))
    np.testing.assert_allclose(call(*state, x), expected, atol=ATOL)
    if keras.backend.backend() == "jax":
        import jax

        np.testing.assert_allclose(jax.jit(call)(*state, x), expected, atol=ATOL)


def test_a_call_without_keras_around_it_uses_no_old_kernel(architecture):
    x = sequences()
    layer = make_layer(architecture, unroll=True)

    class Broken(architecture.cell):
        def activate(self, inputs):
            raise RuntimeError("broken")

    layer.cell.__class__ = Broken
    with pytest.raises(RuntimeError, match="broken"):
        layer.call(ops.convert_to_tensor(x))
    layer.cell.__class__ = architecture.cell
    other = make_cell(architecture)
    layer.cell.set_weights(other.get_weights())
    state = np.ones((BATCH, architecture.units), "float32")
    inputs = ops.convert_to_tensor(x[:, 0])
    found, _ = layer.cell.call(inputs, [ops.convert_to_tensor(state)])
    expected, _ = other(x[:, 0], [state])
    np.testing.assert_allclose(found, expected, atol=ATOL)


@pytest.mark.parametrize("cell_policy", ["mixed_bfloat16", "float32"])
@pytest.mark.parametrize("layer_policy", ["mixed_bfloat16", "float32"])
def test_cell_of_another_policy(architecture, cell_policy, layer_policy):
    cell = architecture.cell(**architecture.arguments, dtype=cell_policy)
    layer = keras.layers.RNN(cell, dtype=layer_policy)
    expected = layer_policy.removeprefix("mixed_")
    assert keras.backend.standardize_dtype(layer(sequences()).dtype) == expected


def test_dropout_in_a_single_call_of_a_cell(architecture):
    cell = make_cell(architecture, recurrent_dropout=0.5, seed=1)
    x = np.zeros((BATCH, FEATURES), "float32")
    state = np.ones((BATCH, architecture.units), "float32")
    outputs = [np.asarray(cell(x, [state], training=t)[0]) for t in (False, True)]
    assert np.abs(outputs[0] - outputs[1]).max() > 0.01


def test_a_frozen_layer(architecture):
    layer = architecture.layer(**architecture.arguments, trainable=False)
    layer.build((None, TIME, FEATURES))
    assert layer.trainable_weights == []
    assert layer.cell.trainable_weights == []


def test_input_must_be_sequences(architecture):
    with pytest.raises(ValueError, match="expected ndim=3"):
        architecture.layer(**architecture.arguments)(np.zeros((2, FEATURES)))


def test_mixed_precision_makes_the_kernel_from_whole_variables(architecture):
    """Only the result is rounded to the compute dtype, not what it is made from."""
    kernels = []

    class Spy(architecture.cell):
        def step(self, inputs, state, recurrent_kernel):
            kernels.append(recurrent_kernel)
            return super().step(inputs, state, recurrent_kernel)

    cell = architecture.cell(**architecture.arguments, dtype="mixed_bfloat16")
    cell.build((None, FEATURES))
    cell.__class__ = Spy
    cell(sequences()[:, 0], cell.get_initial_state(BATCH))
    expected = ops.cast(cell.recurrent_matrix(), "bfloat16")
    assert len(kernels) == 1
    assert keras.backend.standardize_dtype(kernels[0].dtype) == "bfloat16"
    np.testing.assert_array_equal(
        ops.convert_to_numpy(ops.cast(kernels[0], "float32")),
        ops.convert_to_numpy(ops.cast(expected, "float32")),
    )


def test_subclasses(architecture):
    """A cell of the user's own, with an argument more, or passing all on."""

    @keras.saving.register_keras_serializable(package="tests")
    class Own(architecture.cell):
        def __init__(self, *args, gain=1.0, **kwargs):
            super().__init__(*args, **kwargs)
            self.gain = gain

    cell = Own(**architecture.arguments, gain=2.0, dropout=0.5)
    again = Own.from_config(cell.get_config())
    assert again.gain == 2.0
    assert again.dropout == 0.5
    assert again.get_config() == cell.get_config()
