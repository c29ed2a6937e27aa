"""What every dense layer with a kernel made of variables does."""

import functools
import inspect
import json

import keras
import numpy as np
import pytest
from keras import ops
from keras.src import testing

from keras_ortho import GORU, BNPDense, OrthoDense, ScoRNN, SVDDense
from keras_ortho.layers import TrainedInitialState
from keras_ortho.optimizers import group_of
from keras_ortho.parametrizations import Householder, ScaledCayley
from tests.saving import reloaded

pytestmark = [
    pytest.mark.backends,
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
]

MAKERS = {
    "bnp": BNPDense,
    "ortho": functools.partial(OrthoDense, parametrization=Householder()),
    "svd": SVDDense,
}
ARGUMENTS = {
    "units": 5,
    "activation": "relu",
    "use_bias": False,
    "kernel_initializer": "normal_reflectors",
    "bias_initializer": "ones",
    "kernel_regularizer": "l2",
    "bias_regularizer": "l1",
    "activity_regularizer": "l2",
    "kernel_constraint": "max_norm",
    "bias_constraint": "non_neg",
    "epsilon": 0.1,
    "parametrization": Householder(3),
    "reflections": [2, 3],
    "spectral_margin": 0.2,
    "spectral_center": 0.7,
}


@pytest.mark.parametrize("cls", [BNPDense, OrthoDense, SVDDense])
def test_config_holds_every_argument(cls):
    declared = set(inspect.signature(cls).parameters) - {"kwargs"}
    given = {name: ARGUMENTS[name] for name in declared}
    if cls is BNPDense:
        given["kernel_initializer"] = "he_normal"
    config = cls(**given, name="named", dtype="mixed_bfloat16").get_config()
    default = MAKERS[cls.__name__.removesuffix("Dense").lower()](4).get_config()
    assert all(config[name] != default[name] for name in declared)
    again = cls.from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    assert again.name == "named"


class KerasChecks(testing.TestCase):
    """Keras's own checks of a layer."""

    def check(self, make, arguments, shape):
        self.run_layer_test(
            getattr(make, "func", make),
            {"units": 3, **getattr(make, "keywords", {}), **arguments},
            input_shape=shape,
            expected_output_shape=(*shape[:-1], 3),
            expected_num_non_trainable_weights=0,
            expected_num_seed_generators=0,
            supports_masking=True,
        )


@pytest.mark.parametrize(
    ("name", "arguments", "shape"),
    [
        ("bnp", {"epsilon": 0.1, "kernel_regularizer": "l2"}, (2, 5, 4)),
        ("ortho", {}, (2, 5)),
        ("svd", {"spectral_margin": 0.1, "activation": "relu"}, (2, 7, 5)),
        ("svd", {"use_bias": False, "reflections": (2, 1)}, (2, 3)),
        ("svd", {"activity_regularizer": "l2"}, (2, 3, 2, 2)),
    ],
)
def test_keras_layer_checks(name, arguments, shape):
    KerasChecks().check(MAKERS[name], arguments, shape)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_trains_saves_and_loads(make, tmp_path):
    layer = make(3, activation="tanh", kernel_regularizer="l2")
    model = keras.Sequential([keras.Input((5,)), layer])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(16, 5)).astype("float32")
    before = model.get_weights()
    model.fit(x, np.abs(x[:, :3]), verbose=0)
    for weight, old in zip(model.get_weights(), before, strict=True):
        assert not np.array_equal(weight, old)
    again = reloaded(model, tmp_path, x).layers[0]
    assert again.get_config() == layer.get_config()
    group = "recurrent" if type(layer) is OrthoDense else "others"
    assert {group_of(w) for w in layer.weights[:-1]} == {group}
    assert group_of(layer.bias) == "others"


@pytest.mark.parametrize(
    "layer",
    [
        SVDDense(4, kernel_initializer="glorot_uniform"),
        OrthoDense(4, ScaledCayley(1), kernel_initializer="orthogonal"),
    ],
)
def test_is_built_within_fit(layer):
    """With a matrix whose inverse is taken while a training step is being traced."""
    model = keras.Sequential([layer])
    model.compile("adam", "mse")
    model.fit(np.ones((3, 2)), np.zeros((3, 4)), verbose=0)
    assert np.isfinite(layer.kernel_matrix()).all()


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "float16"])
@pytest.mark.parametrize("name", ["ortho", "svd"])
def test_low_precision(name, policy):
    """The kernel is made in float32."""
    layer, exact = MAKERS[name](6, dtype=policy), MAKERS[name](6)
    x = np.random.default_rng(0).normal(size=(4, 5)).astype("float32")
    compute = policy.removeprefix("mixed_")
    outputs, _ = layer(x), exact(x)
    assert keras.backend.standardize_dtype(layer.kernel_matrix().dtype) == "float32"
    assert keras.backend.standardize_dtype(outputs.dtype) == compute
    exact.set_weights(layer.get_weights())
    eps = 2.0**-7 if compute == "bfloat16" else 2.0**-10
    found = ops.convert_to_numpy(ops.cast(outputs, "float32"))
    np.testing.assert_allclose(found, exact(x), atol=10 * eps)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_inputs_of_any_dtype(make):
    """As `Dense` takes them, and where a wrapper has cast nothing."""
    x = np.random.default_rng(0).integers(0, 2, (2, 3, 4))
    layer = make(3, dtype="mixed_float16")
    expected = layer(x.astype("float16"))
    for dtype in ("bool", "int32", "int64", "float32", "float64"):
        found = layer(x.astype(dtype))
        assert keras.backend.standardize_dtype(found.dtype) == "float16"
        np.testing.assert_array_equal(found, expected)
    found = keras.layers.TimeDistributed(layer, dtype="float32")(x.astype("float32"))
    assert keras.backend.standardize_dtype(found.dtype) == "float16"


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_complex_inputs_are_refused(make):
    """A cast would drop their imaginary part without a word."""
    layer = make(3)
    layer.build((None, 4))
    with pytest.raises(ValueError, match="`inputs` must be real: .*Received: inputs"):
        layer(np.ones((2, 4), "complex64"))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_subclass_keeps_the_arguments_that_it_passes_on(make):
    cls = getattr(make, "func", make)

    class Scaled(cls):
        def __init__(self, *arguments, scale=1.0, **kwargs):
            super().__init__(*arguments, **kwargs)
            self.scale = scale

        def get_config(self):
            return {**super().get_config(), "scale": self.scale}

    given = getattr(make, "keywords", {})
    layer = Scaled(3, scale=2.0, activation="relu", name="mine", **given)
    copy = Scaled.from_config(layer.get_config())
    assert copy.get_config() == layer.get_config()
    assert (copy.scale, copy.name) == (2.0, "mine")
    assert copy.activation is keras.activations.relu


@pytest.mark.skipif(
    keras.backend.backend() == "tensorflow", reason="Keras rematerializes no variables"
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.layers.TimeDistributed(MAKERS["ortho"](3)),
        lambda: ScoRNN(3),
        lambda: TrainedInitialState(GORU(4)),
    ],
    ids=["OrthoDense", "ScoRNN", "TrainedInitialState"],
)
def test_rematerialized(make):
    """JAX then traces `training`, as it does every argument."""
    x = np.random.default_rng(0).normal(size=(4, 5, 2))
    losses = []
    for mode in (None, "full"):
        keras.utils.set_random_seed(0)
        with keras.RematScope(mode):
            layer = make()
        model = keras.Sequential([keras.Input(x.shape[1:]), layer])
        model.compile(keras.optimizers.SGD(0.1), "mse")
        y = np.zeros((4, *model.output_shape[1:]))
        history = model.fit(x, y, epochs=2, shuffle=False, verbose=0)
        losses.append(history.history["loss"])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)
