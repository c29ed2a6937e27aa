"""Checks every layer on the device against its definition in float64 on the CPU.

The reference is one loop over time around the cell's step, differentiated by JAX. It
uses neither the loops of the layers nor their hand-written gradients. It shares only
the computations within a step, which the tests compare with NumPy.

The allowed difference is computed, not guessed. The reference runs several more times,
with random errors of `MARGIN` times the rounding error of the precision wherever the
layer rounds. Most errors arise in the time steps: a relative error of each state (its
product, sum, activation and storage), an error of each entry relative to the state's
root mean square (where a sum cancels), and a relative error of each entry of the
matrix. The result thus includes how the errors add up over time, how the matrix and the
activation change them, and which units they push across a kink of the activation.

The size of an error is u + sqrt(n) v. Here, `u` is the rounding unit of the factors of
the products, and sqrt(n) v is the accumulated random error of n terms summed in
float32, with rounding unit `v`. If an activation has a kink, every low-precision step
pushes some units across it. After many steps the gradient differs, even if it is
correct, so low-precision sequences should be short.
"""

import math
from collections.abc import Mapping
from typing import Any

import jax
import keras
import numpy as np
from gpu_candidates import set_precision
from jax import numpy as jnp
from layers import make_layer
from shapes import FEATURES

Shape = tuple[int, int, int]
Arrays = list[np.ndarray]

# Half the spacing of the numbers at 1. For TensorFloat-32, the whole spacing, for each
# of the two factors: some devices truncate instead of rounding, and the errors of
# truncation all have the same sign.
UNITS = {"float32": 2.0**-24, "tf32": 2.0**-9, "bfloat16": 2.0**-8}
MARGIN, RUNS = 2.0, 4


def rounding(precision: str, n: int) -> float:
    """Estimates the rounding error of a product of a state and a matrix."""
    return UNITS[precision] + math.sqrt(n) * UNITS["float32"]


def check(name: str, shapes: Mapping[str, Shape]) -> dict[str, dict[str, Any]]:
    """Compares the outputs and gradients of a layer with its definition."""
    if not jax.config.read("jax_enable_x64"):
        raise RuntimeError("The check needs float64: set JAX_ENABLE_X64=1")
    references: dict[Shape, Reference] = {}
    results = {}
    for precision, shape in shapes.items():
        if shape not in references:
            references[shape] = Reference(name, shape)
        reference = references[shape]
        found = evaluate(name, precision, reference)
        allowed = reference.allowed(rounding(precision, shape[0]))
        results[precision] = {
            quantity: [
                distance(value, reference.expected[quantity.split(",")[0]]),
                allowed[quantity.split(",")[0]],
            ]
            for quantity, value in found.items()
        }
    return results


def distance(value: np.ndarray, expected: np.ndarray) -> float:
    """Returns the distance of two arrays relative to the second, in the 2-norm."""
    value = np.asarray(value, "float64")
    return float(np.linalg.norm(value - expected) / np.linalg.norm(expected))


class Reference:
    """A layer evaluated by its definition, in float64 on the CPU.

    Attributes:
        units: Requested number of real entries of the state.
        weights: Values of the weights in Keras's order, as float32 arrays.
        x: Inputs, of shape `(batch, steps, m)`.
        upstream: Upstream gradient of the outputs.
        expected: Outputs and gradients by name.
    """

    def __init__(self, name: str, shape: Shape) -> None:
        n, steps, batch = shape
        self.units = n
        self.cpu = jax.devices("cpu")[0]
        random = np.random.default_rng(0)
        self.x = random.normal(size=(batch, steps, FEATURES)).astype("float32")
        with jax.default_device(self.cpu):
            self.weights = _draw(name, n, random)
            keras.config.set_dtype_policy("float64")
            self.layer = make_layer(name, n)
            self.layer.build((batch, steps, FEATURES))
            self.layer.set_weights(self.weights)
            cell = self.layer.cell
            size, output = cell.state_size, cell.output_size
            self.upstream = random.normal(size=(batch, output)).astype("float32")
            self._steps = (steps, batch, size)
            self._compiled = jax.jit(jax.value_and_grad(self._value, 0, has_aux=True))
            self.expected = self._run(0.0, 0)

    def allowed(self, size: float) -> dict[str, float]:
        """Computes the relative error to allow in each result."""
        moved = [self._run(MARGIN * size, seed) for seed in range(1, RUNS + 1)]
        return {
            quantity: MARGIN * size + max(distance(m[quantity], value) for m in moved)
            for quantity, value in self.expected.items()
        }

    def _run(self, size: float, seed: int) -> dict[str, np.ndarray]:
        random = np.random.default_rng(seed)
        layer = self.layer

        def errors(shape: tuple[int, ...]) -> np.ndarray:
            return size * random.normal(size=shape)

        fixed = [np.asarray(v.value) for v in layer.non_trainable_variables]
        trained = [np.asarray(v.value) for v in layer.trainable_variables]
        trained.insert(0, self.x.astype("float64"))
        state = self._steps[-1]
        arguments = (
            [value * (1 + errors(value.shape)) for value in trained],
            fixed,
            self.upstream.astype("float64"),
            (errors((state, state)), errors(self._steps), errors(self._steps)),
        )
        with jax.default_matmul_precision("float32"):  # Avoids recompilation.
            (_, outputs), gradients = self._compiled(
                *jax.device_put(arguments, self.cpu)
            )
        return _by_name(layer, outputs, gradients)

    def _value(
        self, trained: Any, fixed: Any, upstream: Any, errors: Any
    ) -> tuple[Any, Any]:
        x, *weights = trained
        of_kernel, *of_states = errors
        layer, cell = self.layer, self.layer.cell
        mapping = zip(layer.trainable_variables, weights, strict=True)
        others = zip(layer.non_trainable_variables, fixed, strict=True)
        with keras.StatelessScope(state_mapping=[*mapping, *others]):
            kernel = cell.step_kernel() * (1 + of_kernel)

            def step(state: Any, entries: Any) -> tuple[Any, None]:
                inputs, relative, absolute = entries
                state = cell.step(inputs, state, kernel)
                mean = jax.lax.stop_gradient(jnp.sqrt(jnp.mean(state**2)))
                return state * (1 + relative) + mean * absolute, None

            (start,) = cell.get_initial_state(x.shape[0])
            steps = (jnp.swapaxes(x, 0, 1), *of_states)
            last, _ = jax.lax.scan(step, start, steps)
            outputs = cell.read_out(last)
        return jnp.sum(outputs * upstream), outputs


def evaluate(name: str, precision: str, reference: Reference) -> dict[str, np.ndarray]:
    """Computes the outputs and gradients of a layer on the device."""
    set_precision(precision)
    layer = make_layer(name, reference.units)
    layer.build(reference.x.shape)
    layer.set_weights(reference.weights)
    fixed = [v.value for v in layer.non_trainable_variables]
    values = [v.value for v in layer.trainable_variables]
    inputs = jnp.asarray(reference.x)
    upstream = jnp.asarray(reference.upstream)

    def value(trained: Any) -> tuple[Any, Any]:
        x, *weights = trained
        outputs, _ = layer.stateless_call(weights, fixed, x, training=True)
        outputs = outputs.astype("float32")
        return jnp.sum(outputs * upstream), outputs

    def infer(trained: Any) -> Any:
        x, *weights = trained
        outputs, _ = layer.stateless_call(weights, fixed, x, training=False)
        return outputs.astype("float32")

    trained = [inputs, *values]
    (_, outputs), gradients = jax.jit(jax.value_and_grad(value, has_aux=True))(trained)
    found = _by_name(layer, outputs, gradients)
    return found | {"outputs, inference": np.asarray(jax.jit(infer)(trained))}


def _by_name(layer: Any, outputs: Any, gradients: Any) -> dict[str, np.ndarray]:
    names = ["outputs", "inputs", *(v.name for v in layer.trainable_variables)]
    return {n: np.asarray(x) for n, x in zip(names, [outputs, *gradients], strict=True)}


def _draw(name: str, n: int, random: np.random.Generator) -> Arrays:
    """Draws initial weights, with biases on which the activation has an effect."""
    set_precision("float32")
    keras.utils.set_random_seed(0)
    layer = make_layer(name, n)
    layer.build((1, 1, FEATURES))
    for variable in layer.trainable_variables:
        if variable.name == "bias":
            # With a positive bias, modReLU would jump at zero.
            variable.assign(-0.1 * np.abs(random.normal(size=variable.shape)))
    return [np.asarray(weight) for weight in layer.get_weights()]
