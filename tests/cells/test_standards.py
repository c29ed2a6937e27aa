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
    ("unroll", "go_backwards", "masked", "start"),
    [
        (False, False, False, "given"),
        (False, False, True, "trained"),
        (False, True, False, "zero"),
        (False, True, True, "one for all"),
        (True, False, False, "one for all"),
        (True, False, True, "zero"),
        (True, True, False, "trained"),
        (True, True, True, "given"),
    ],
)
def test_layer_equals_its_cell(architecture, unroll, go_backwards, masked, start):
    x, way = sequences(), slice(None, None, -1 if go_backwards else 1)
    mask, flipped = (MASK, MASK[:, way]) if masked else (None, None)
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
        x, initial_state=before, mask=mask
    )
    close(state, expected[:, -1])
    for zero in (False, True) if masked else (False,):
        layer.return_sequences, layer.zero_output_for_mask = True, zero
        outputs, state = layer(x, initial_state=given, mask=mask)
        close(state, expected[:, -1])
        shown = expected
        if masked:
            # A masked step repeats the output before it, zero where there is none.
            counts = flipped if zero else np.cumsum(flipped, axis=1) > 0
            shown = np.where(counts[:, :, None], expected, 0)
        close(outputs, shown)
        layer.return_sequences = False
        last, _ = layer(x, initial_state=given, mask=mask)
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


def given(**kwargs):
    return lambda a: make_layer(a, **kwargs)


def with_units(value):
    return lambda a: a.layer(
        **{k: value if k.endswith("units") else v for k, v in a.arguments.items()}
    )


def called(x=None, **kwargs):
    return lambda a: make_layer(a)(sequences() if x is None else x, **kwargs)


COMPLEX = sequences().astype("complex64")
# Calls, and what the errors say.
REFUSED = {
    "no units": (lambda a: a.layer(), r"^{layer}\.__init__.* missing .*units'"),
    "zero units": (with_units(0), "units` must be a positive integer. Received: "),
    "nothing left": (given(dropout=1), "`dropout` must be a fraction.*Received: "),
    "modReLU without a bias": (
        given(activation="modrelu", use_bias=False),
        "Received: activation='modrelu', use_bias=False",
    ),
    "a kernel of another shape": (
        given(kernel_initializer=np.ones((1, 8))),
        "`kernel_initializer` must have the shape .* Received",
    ),
    "no weights yet": (
        lambda a: a.cell(**a.arguments).recurrent_matrix(),
        "Received: .* with built=False",
    ),
    "another matrix": (
        lambda a: make_cell(a).set_recurrent_matrix(np.eye(a.units + 1)),
        "Received: .*shape",
    ),
    "a layer for a cell": (
        lambda a: keras.layers.RNN(a.layer(**a.arguments))(sequences()),
        r"`{layer}` is a layer, .* `keras.layers.RNN\({cell}\(...\)\)`. Received: ",
    ),
    "one step": (called(np.zeros((2, FEATURES))), "expected ndim=3"),
    "complex inputs": (called(COMPLEX), "`sequences` must be real: .*Received: "),
    "complex states": (
        lambda a: make_cell(a)(sequences()[:, 0], [1j * states(a)]),
        "`states` must be real: .*Received: ",
    ),
    "the state of an LSTM": (
        lambda a: make_layer(a)(sequences(), initial_state=2 * [states(a)]),
        "must be a tensor, or a list with one tensor.*Received: 2 init",
    ),
    "another batch": (
        lambda a: make_layer(a)(sequences(), initial_state=states(a, rows=BATCH + 1)),
        "`initial_state` must have the shape",
    ),
    "another mask": (called(mask=MASK[:, 1:]), "`mask` must have the shape"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(architecture, what):
    call, message = REFUSED[what]
    names = {"layer": str(architecture), "cell": architecture.cell.__name__}
    with pytest.raises((TypeError, ValueError), match=message.format(**names)):
        call(architecture)


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


def test_variable_lengths(architecture):
    layer = architecture.layer(**architecture.arguments)
    model = keras.Sequential([keras.Input((None, FEATURES)), layer])
    lively(layer, names=ORDINARY)
    for length in (1, 3, 9):
        x = sequences(shape=(2, length, FEATURES))
        close(model.predict(x, verbose=0), steps(layer.cell, x)[:, -1])


@pytest.mark.parametrize("name", ["dropout", "recurrent_dropout"])
def test_dropout(architecture, name):
    x = np.ones((BATCH, TIME, FEATURES), "float32")
    layer, twin = (make_layer(architecture, **{name: 0.5}, seed=1) for _ in range(2))
    twin.set_weights(layer.get_weights())
    once, again = (np.asarray(layer(x, training=True)) for _ in range(2))
    assert np.abs(once - again).max() > 0.01
    close(twin(x, training=True), once)  # The same seed, the same masks.
    without = make_layer(architecture)
    without.set_weights(layer.get_weights())
    assert np.abs(once - without(x)).max() > 0.01
    for inferring in (layer, keras.layers.RNN(layer.cell)):
        close(inferring(x, training=False), without(x))


def test_dropout_masks_stay_the_same_over_time(architecture):
    x, generator = sequences(), keras.random.SeedGenerator(1)
    input_mask, state_mask = (
        keras.random.dropout(ops.ones((BATCH, size)), 0.5, seed=generator)
        for size in (FEATURES, architecture.units)
    )
    cell = make_cell(architecture, dropout=0.5, recurrent_dropout=0.5, seed=1)
    masked = keras.layers.RNN(cell, unroll=True)(x, training=True)
    cell.dropout = cell.recurrent_dropout = 0.0
    state = cell.get_initial_state(BATCH)[0]
    for t in range(TIME):
        kept = state * state_mask
        left = state - kept if cell.residual else 0
        state = cell(x[:, t] * input_mask, kept)[1] + left
    close(masked, state[:, : cell.output_size])


@pytest.mark.parametrize(
    ("masked", "return_sequences", "recompute", "dropout"),
    [
        (False, False, 2, 0.3),
        (False, True, 2, 0.0),
        (True, False, False, 0.0),
        (True, True, False, 0.3),
        (True, True, 2, 0.3),
    ],
)
def test_the_layer_has_the_gradient_of_the_stock_loop(
    architecture, masked, return_sequences, recompute, dropout
):
    """A gradient by hand, where the layer has one, against autodiff."""
    kwargs = {"mask": MASK if masked else None, "training": True}
    shared = {"trainable_initial_state": True, "go_backwards": True, "seed": 1}
    shared |= {"return_sequences": return_sequences, "recurrent_dropout": dropout}
    layer = make_layer(architecture, recompute=recompute, **shared)
    stock = make_layer(architecture, unroll=True, **shared)
    stock.set_weights(layer.get_weights())
    (_, found), (_, expected) = (
        weight_gradients(each, lambda h: ops.sum(ops.sin(h)), sequences(), **kwargs)
        for each in (layer, stock)
    )
    for name, gradient in expected.items():
        atol = ATOL * max(1, np.abs(gradient).max())
        close(found[name], gradient, atol=atol, err_msg=name)


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
    if stock:
        cell = architecture.cell(**architecture.arguments)
        layer = keras.layers.RNN(cell, return_sequences=True)
    else:
        layer = architecture.layer(**architecture.arguments, return_sequences=True)
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


@pytest.mark.slow
def test_is_built_within_fit(architecture):
    """Where the weights are made while a training step is being traced."""
    for initializer in (None, *architecture.start_matrices()):
        arguments = dict(architecture.arguments)
        if initializer is not None:
            arguments["recurrent_initializer"] = initializer
        layer = architecture.layer(**arguments)
        model = keras.Sequential([layer, keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(sequences(), np.zeros((BATCH, 1)), verbose=0)
        kernel = ops.convert_to_numpy(layer.recurrent_matrix())
        assert np.isfinite(kernel).all()
        if isinstance(initializer, np.ndarray):
            # One step of Adam away from it.
            assert np.abs(kernel - initializer).max() < 0.01


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(architecture, policy):
    x, compute = sequences(), policy.removeprefix("mixed_")
    layer, exact = make_layer(architecture, dtype=policy), make_layer(architecture)
    exact.set_weights(layer.get_weights())
    outputs = layer(x)
    assert dtype_of(outputs) == compute
    # Each of the steps rounds its products and the state.
    atol = 4 * TIME * float(ml_dtypes.finfo(compute).eps)
    close(ops.cast(outputs, "float32"), exact(x), atol=atol)
    model = keras.Sequential([keras.Input((TIME, FEATURES)), layer])
    model.compile("sgd", "mse")
    model.train_on_batch(x, np.ones((BATCH, architecture.units)))
    for weight, old in zip(layer.weights, exact.get_weights(), strict=True):
        assert np.isfinite(weight).all()
        assert weight.name != "kernel" or not np.array_equal(weight, old)


def test_mixed_precision_makes_the_kernel_from_whole_variables(architecture):
    """Only the result is rounded to the compute dtype, not what it is made from."""
    kernels = []

    class Spy(architecture.cell):
        def step(self, inputs, state, recurrent_kernel):
            kernels.append(recurrent_kernel)
            return super().step(inputs, state, recurrent_kernel)

    cell = make_cell(architecture, dtype="mixed_bfloat16")
    cell.__class__ = Spy
    cell(sequences()[:, 0], cell.get_initial_state(BATCH))
    (kernel,) = kernels
    assert dtype_of(kernel) == "bfloat16"
    expected = ops.cast(ops.cast(cell.recurrent_matrix(), "bfloat16"), "float32")
    close(ops.cast(kernel, "float32"), expected, atol=0)


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
        stock = keras.layers.RNN(architecture.cell(**architecture.arguments))
        layer = keras.layers.Bidirectional(stock)
    model = keras.Sequential([keras.Input((TIME, FEATURES)), layer])
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    for weight in model.trainable_variables:  # No initializer gives such values.
        weight.assign(weight + 0.01)
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


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"return_sequences": True, "go_backwards": True},
        {"unroll": True},
        {"dropout": 0.5, "recurrent_dropout": 0.5},
    ],
    ids=["plain", "backwards", "unrolled", "dropout"],
)
def test_keras_layer_checks(architecture, kwargs):
    """Keras's own, of the layer and of the stock one around the cell."""
    shape = (BATCH, TIME, architecture.units)
    common = {
        "input_shape": (BATCH, TIME, FEATURES),
        "expected_output_shape": shape if "return_sequences" in kwargs else shape[::2],
        "supports_masking": True,
    }
    check = testing.TestCase().run_layer_test
    trained, fixed = architecture.num_weights
    check(
        architecture.layer,
        architecture.arguments | kwargs,
        call_kwargs={"training": True},
        expected_num_trainable_weights=trained,
        expected_num_non_trainable_weights=fixed,
        expected_num_seed_generators=1,
        **common,
    )
    if "dropout" not in kwargs:
        cell = architecture.cell(**architecture.arguments)
        check(keras.layers.RNN, {"cell": cell, **kwargs}, **common)


def test_a_call_after_an_interrupted_one_uses_no_old_kernel(architecture):
    """Whether another layer calls the cell, nobody, or Keras's loop."""
    x, state = sequences(), states(architecture)

    class Broken(architecture.cell):
        def activate(self, inputs):
            raise RuntimeError("broken")

    class Around(keras.layers.Layer):
        def __init__(self, cell):
            super().__init__()
            self.cell = cell

        def call(self, inputs, state):
            return self.cell(inputs, [state])[1][0]

    cell, other = make_cell(architecture), lively(make_cell(architecture))
    cell.__class__ = Broken
    with pytest.raises(RuntimeError, match="broken"):
        keras.layers.RNN(cell, unroll=True)(x)
    cell.__class__ = architecture.cell
    cell.set_weights(other.get_weights())
    expected = steps(other, x, state)
    close(Around(cell)(x[:, 0], state), expected[:, 0])
    tensors = map(ops.convert_to_tensor, (x[:, 0], state))
    close(cell.call(*tensors)[1], expected[:, 0])
    close(keras.layers.RNN(cell)(x, initial_state=state), expected[:, -1])


def test_what_one_thread_reads_is_not_anothers(architecture):
    """As where a server calls one model for several requests at once."""
    x, cell, found = sequences(), make_cell(architecture), []
    layer = keras.layers.RNN(cell)
    with cell.reading(x[:, 0]):
        mine = cell._sequence
        thread = threading.Thread(target=lambda: found.append(layer(x)))
        thread.start()
        thread.join()
        assert cell._sequence is mine is not None
    close(found[0], steps(cell, x)[:, -1])
