"""Checks every layer on a GPU, and measures it beside JAX's and PyTorch's LSTM.

The check compares outputs and gradients of each layer with those of Keras's loop around
its cell, in float64 on the CPU. The difference may be five times that of this loop on
the device, in the same precision. Nothing is measured where a layer is wrong. Then come
training and inference, of the LSTM by Keras's loop, by cuDNN through JAX and through
PyTorch.

Run it as `python benchmarks/gpu.py`, with JAX and PyTorch for the GPU; TensorFlow is
not needed. It writes two tables. It also runs on a CPU, without cuDNN.
"""

import itertools
import os
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"
# PyTorch needs memory, too.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import keras
import measuring
import numpy as np
from jax import numpy as jnp
from measuring import LAYERS, MATCHED, make_layer

# Keras's dtype policy, JAX's precision of float32 products, and the rounding error of
# their factors: of TensorFloat-32 the whole spacing, as some devices truncate.
PRECISIONS: dict[str, tuple[str, str | None, float]] = {
    "float32": ("float32", "float32", 2.0**-24),
    "tf32": ("float32", "tensorfloat32", 2.0**-9),
    "bfloat16": ("mixed_bfloat16", None, 2.0**-8),
}
ALLOWED = 5  # times the error of Keras's loop
CHECKED = [name for name in LAYERS if name != "LSTM"]
LSTMS = ["LSTM, loop", "LSTM, cuDNN", "torch LSTM"]
CANDIDATES = [*CHECKED, "SimpleRNN", *LSTMS, *(name + MATCHED for name in LSTMS)]


def set_precision(precision: str) -> None:
    """Sets the precision of Keras and JAX."""
    policy, products, _ = PRECISIONS[precision]
    keras.config.set_dtype_policy(policy)
    jax.config.update("jax_default_matmul_precision", products)


def evaluate(layer: Any, weights: Any, x: Any, upstream: Any) -> dict[str, np.ndarray]:
    """Computes the outputs and gradients of a layer with some weights."""
    layer.build(x.shape)
    layer.cell.set_weights(weights)
    trained = [variable.value for variable in layer.trainable_variables]
    fixed = [variable.value for variable in layer.non_trainable_variables]

    def infer(weights: Any, x: Any, training: bool = False) -> Any:
        outputs, _ = layer.stateless_call(weights, fixed, x, training=training)
        return outputs.astype(upstream.dtype)

    def loss(weights: Any, x: Any) -> Any:
        outputs = infer(weights, x, training=True)
        return jnp.sum(outputs * upstream), outputs

    train = jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))
    (_, outputs), (to_weights, to_x) = train(trained, x)
    names = (variable.name for variable in layer.trainable_variables)
    found = dict(zip(names, to_weights, strict=True))
    plain = type(layer) is keras.layers.RNN  # The same in inference as in training.
    found |= {"outputs": outputs, "inputs": to_x}
    found["inference"] = outputs if plain else jax.jit(infer)(trained, x)
    return {name: np.asarray(value, "float64") for name, value in found.items()}


def distance(value: np.ndarray, expected: np.ndarray) -> float:
    """Returns the distance of two arrays relative to the second, in the 2-norm."""
    return float(np.linalg.norm(value - expected) / np.linalg.norm(expected))


def check(name: str, precision: str, n: int) -> dict[str, tuple[float, float]]:
    """Returns the error of each result of a layer, and the largest one to allow."""
    # More than two segments of the recurrence; few steps where states are rounded so
    # coarsely that units cross the kink of an activation.
    batch, steps = 16, 131 if precision == "float32" else 8
    random = np.random.default_rng(0)
    keras.utils.set_random_seed(0)
    set_precision("float32")
    layer = make_layer(name, n)
    layer.build((batch, steps, 1))
    for variable in layer.trainable_variables:
        if variable.name == "bias":
            # With a positive bias, modReLU would jump at zero.
            variable.assign(-0.1 * np.abs(random.normal(size=variable.shape)))
    weights = layer.cell.get_weights()
    sizes = [(batch, steps, 1), layer.compute_output_shape((batch, steps, 1))]
    given = [random.normal(size=size).astype("float32") for size in sizes]

    def loop() -> Any:
        return keras.layers.RNN(make_layer(name, n).cell)

    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(True):
        keras.config.set_dtype_policy("float64")
        exact = (jnp.asarray(array, "float64") for array in given)
        expected = evaluate(loop(), weights, *exact)
    set_precision(precision)
    ordinary = evaluate(loop(), weights, *given)
    found = {}
    for quantity, value in evaluate(make_layer(name, n), weights, *given).items():
        wanted = expected[quantity]
        usual = PRECISIONS[precision][-1] + distance(ordinary[quantity], wanted)
        found[quantity] = distance(value, wanted), min(0.5, ALLOWED * usual)
    return found


def times(names: list[str], repeats: int, precision: str, *shape: int) -> Any:
    """Measures candidates; returns their cells of the table, or why there are none."""
    set_precision(precision)
    found: dict[str, list[str]] = {}
    for name in names:
        try:
            own = measuring.measure([name], repeats, *shape, "auto", precision)[name]
            found[name] = [f"{1e3 * own[kind]:.3g}" for kind in ("train", "infer")]
            found[name].append(f"{own['first']:.1f}")
        except Exception as error:  # Such as a lack of memory; others are measured.
            why = " ".join(f"{type(error).__name__}: {error}".split())[:150]
            found[name] = [why, "", ""]
    return found


def main() -> None:
    """Runs the benchmark from the command line."""
    sizes: dict[str, Any] = {"units": [128, 512], "steps": 784, "batch": 128}
    sizes |= {"repeats": 10, "precision": list(PRECISIONS)}
    options = measuring.parse(__doc__, "", CANDIDATES, **sizes)
    device = f"{jax.devices()[0].device_kind}, "
    checked = [name for name in CHECKED if name in options.only]
    rows, wrong = [], []
    for precision, name in itertools.product(options.precision, checked):
        found = check(name, precision, options.units[0]).items()
        for quantity, (error, allowed) in found:
            rows.append([name, precision, quantity, f"{error:.1e}", f"{allowed:.1e}"])
            if not error <= allowed:
                wrong.append(" ".join(rows[-1]))
    titles = ["layer", "precision", "quantity", "error", "allowed"]
    measuring.report(options.out / "gpu-check.md", titles, rows, device)
    if wrong:
        raise SystemExit("Nothing is measured:\n" + "\n".join(wrong))

    rows = []
    for n, precision in itertools.product(options.units, options.precision):
        given = precision, n, options.steps, options.batch
        found = measuring.grouped(times, options.only, options.repeats, *given)
        for name, cells in found.items():
            rows.append([name, *map(str, given), *cells])
    titles = ["layer", "precision", "n", "T", "B"]
    titles += ["training step, ms", "inference, ms", "first step, s"]
    measuring.report(options.out / "gpu-speed.md", titles, rows, device)


if __name__ == "__main__":
    main()
