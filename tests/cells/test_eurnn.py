import keras
import numpy as np
import pytest

from keras_ortho import EURNN, EURNNCell, RecurrentLayer
from keras_ortho.parametrizations import orthogonality_error
from tests import reference
from tests.cells.building import builder, refused, weights_of
from tests.reference import random_unitary

pytestmark = pytest.mark.backends

EPS32, EPS64 = np.finfo("float32").eps, np.finfo("float64").eps


built = builder(EURNN, 6)


def eurnn(x, weights, style):
    """All states, complex, one step after the other."""
    w = reference.rotations(
        style,
        weights["recurrent_angles"],
        weights["recurrent_phases"],
        weights["output_phases"],
    )
    n = len(w)
    kernel = weights["kernel"][:, :n] + 1j * weights["kernel"][:, n:]
    h, states = np.zeros((len(x), n), complex), []
    for t in range(x.shape[1]):
        h = reference.complex_modrelu(x[:, t] @ kernel + h @ w, weights["bias"])
        states.append(h)
    return np.stack(states, axis=1)


@pytest.mark.parametrize(
    ("n", "capacity", "style"),
    [(2, 2, "tunable"), (6, 2, "tunable"), (6, 6, "tunable"), (8, 2, "fft")],
)
@pytest.mark.parametrize("real_output", [False, True])
def test_against_numpy(n, capacity, style, real_output):
    layer = built(
        units=n,
        capacity=capacity,
        style=style,
        real_output=real_output,
        return_sequences=True,
        return_state=True,
        dtype="float64",
        bias_initializer=keras.initializers.RandomNormal(stddev=0.3),
    )
    x = np.random.default_rng(0).normal(size=(4, 9, 3))
    expected = eurnn(x, weights_of(layer), style)
    outputs, state = layer(x)
    whole = np.concatenate([expected.real, expected.imag], axis=-1)
    # The guard at zero divides by the modulus, which multiplies an error at most by
    # the inverse of the square root of 1e-5 at one step.
    atol = 9 * 300 * n * EPS64 * np.abs(expected).max()
    np.testing.assert_allclose(state, whole[:, -1], atol=atol)
    wanted = expected.real if real_output else whole
    assert outputs.shape == wanted.shape
    np.testing.assert_allclose(outputs, wanted, atol=atol)
    assert layer.cell.output_size == wanted.shape[-1]


@pytest.mark.parametrize("zero_output_for_mask", [False, True])
def test_real_output_in_keras_loop(zero_output_for_mask):
    """With a mask, and an activation of which the derivative is not known."""
    x = np.random.default_rng(0).normal(size=(3, 5, 3)).astype("float32")
    mask = np.ones((3, 5), bool)
    mask[0, 3:] = mask[1, 0] = mask[1, 2] = False
    settings = {"zero_output_for_mask": zero_output_for_mask, "return_sequences": True}
    loop = built(units=6, real_output=True, activation="softsign", **settings)
    unrolled = built(
        units=6, real_output=True, activation="softsign", unroll=True, **settings
    )
    unrolled.set_weights(loop.get_weights())
    outputs = loop(x, mask=mask)
    assert outputs.shape == (3, 5, 6)
    np.testing.assert_allclose(
        outputs, unrolled(x, mask=mask), atol=100 * np.finfo("float32").eps
    )


class Doubled(EURNNCell):
    """One with an output of its own."""

    def call(self, inputs, states, training=False):
        output, new = super().call(inputs, states, training=training)
        return 2 * output, new


class DoubledRNN(RecurrentLayer):
    cell_class = Doubled


def test_a_cell_with_an_output_of_its_own():
    x = np.random.default_rng(0).normal(size=(3, 5, 3))
    settings = {"real_output": True, "return_sequences": True, "dtype": "float64"}
    layer, plain = DoubledRNN(6, **settings), built(units=6, **settings)
    expected = plain(x)
    layer.build(x.shape)
    layer.set_weights(plain.get_weights())
    # In float64, far above the rounding of five steps and far below a factor of two.
    atol = 100 * np.finfo("float32").eps * np.abs(expected).max()
    np.testing.assert_allclose(layer(x), 2 * np.asarray(expected), atol=atol)


@pytest.mark.slow
def test_real_output_trains():
    model = keras.Sequential(
        [
            keras.Input((None, 2)),
            EURNN(8, style="fft", real_output=True),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    x = np.random.default_rng(0).normal(size=(32, 5, 2)).astype("float32")
    losses = model.fit(x, x.sum(axis=(1, 2)), epochs=30, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.slow_on_jax
def test_starts_with_the_papers_settings():
    weights = weights_of(
        built(units=512, capacity=4, features=10, **EURNNCell.paper_arguments)
    )
    assert np.abs(weights["kernel"]).max() <= 0.01
    np.testing.assert_array_equal(weights["bias"], 0)
    drawn = [
        weights[name].ravel()
        for name in ("recurrent_angles", "recurrent_phases", "output_phases")
    ]
    for values in drawn:
        assert np.abs(values).max() <= np.pi
        # Of a uniform draw, to five standard errors.
        assert abs(values.mean()) <= 5 * np.pi / np.sqrt(3 * len(values))
    # None of them is a copy of another.
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert not np.array_equal(drawn[i][:100], drawn[j][:100])
    assert orthogonality_error(built(units=64).recurrent_matrix()) <= 128 * EPS32


@pytest.mark.parametrize("units", [4, 16, 64])
def test_full_capacity_has_as_many_angles_as_unitary_matrices_have_dimensions(units):
    layer = built(units=units, capacity=units)
    free = [w for name, w in weights_of(layer).items() if "phases" in name]
    assert sum(w.size for w in free) + free[0].size == units**2


@pytest.mark.parametrize(
    "n", [2, 6, 20] if keras.backend.backend() == "tensorflow" else [6]
)
@pytest.mark.slow_on_jax
def test_set_recurrent_matrix(n):
    layer = built(units=n, capacity=n, dtype="float64")
    matrix = random_unitary(n)
    for given in (matrix, reference.complex_block(matrix), -np.eye(n)):
        layer.set_recurrent_matrix(given)
        expected = (
            given
            if given.shape == (2 * n, 2 * n)
            else reference.complex_block(given + 0j)
        )
        np.testing.assert_allclose(
            layer.recurrent_matrix(), expected, atol=10 * n * EPS64
        )


def test_starts_from_a_unitary_array():
    matrix = random_unitary(4)
    layer = built(units=4, capacity=4, recurrent_initializer=matrix)
    np.testing.assert_allclose(
        layer.recurrent_matrix(), reference.complex_block(matrix), atol=40 * EPS32
    )


@pytest.mark.parametrize("kwargs", [{"capacity": 2}, {"style": "fft", "capacity": 4}])
def test_too_few_layers_for_a_matrix(kwargs):
    with pytest.raises(ValueError, match="`style` must be .*Received: style="):
        built(units=4, recurrent_initializer="identity", **kwargs)
    layer = built(units=4, **kwargs)
    with pytest.raises(ValueError, match=f"Received: .*capacity={kwargs['capacity']}"):
        layer.set_recurrent_matrix(np.eye(4))


@pytest.mark.slow_on_jax
def test_matrices_that_do_not_fit():
    layer = built(units=4, capacity=4)
    with refused(layer, "must be unitary"):
        layer.set_recurrent_matrix(2 * np.eye(4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"units": 5}, "`units` must be even.*Received: units=5"),
        ({"units": 6, "style": "fft"}, "power of two.*Received: units=6"),
        ({"units": 6, "capacity": 3}, "`capacity` must be.*Received: capacity=3"),
        ({"units": 6, "style": "dense"}, "`style` must be.*Received: style='dense'"),
    ],
)
def test_bad_arguments(arguments, message):
    for cls in (EURNN, EURNNCell):
        with pytest.raises(ValueError, match=message):
            cls(**arguments)
