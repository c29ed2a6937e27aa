"""Checks every layer on a GPU, and measures it beside JAX's and PyTorch's LSTM.

The check compares outputs and gradients of each layer with those of Keras's loop around
its cell, in float64 on the CPU. The difference may be five times that of this loop on
the device, in the same precision. Nothing is measured where a layer is wrong.

Then come outputs with gradients (training without the optimizer) and inference: of all
layers, of `SimpleRNN`, and of the LSTM, with as many units and with as many parameters
as a `ScoRNN`, by Keras's loop, by cuDNN through JAX and through PyTorch (in another
process; its training step includes Adam).

Run it as `python benchmarks/gpu.py`, with JAX and PyTorch for the GPU; TensorFlow is
not needed. It writes two tables. It also runs on a CPU, without cuDNN.
"""

import argparse
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"
# PyTorch needs memory, too.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import keras
import measuring
import numpy as np
from jax import numpy as jnp
from measuring import LAYERS, make_layer, matched

# Keras's dtype policy, JAX's precision of float32 products, and the rounding error of
# their factors: of TensorFloat-32 the whole spacing, as some devices truncate.
PRECISIONS: dict[str, tuple[str, str | None, float]] = {
    "float32": ("float32", "float32", 2.0**-24),
    "tf32": ("float32", "tensorfloat32", 2.0**-9),
    "bfloat16": ("mixed_bfloat16", None, 2.0**-8),
}
ALLOWED = 5  # times the error of Keras's loop
CHECKED = [name for name in LAYERS if name != "LSTM"]
PEERS = ["SimpleRNN", "LSTM", "LSTM, cuDNN", "torch LSTM"]
PEERS += [f"{name}, as many parameters" for name in PEERS[1:]]
Shape = tuple[int, int, int]


def set_precision(precision: str) -> None:
    """Sets the precision of Keras and JAX."""
    policy, products, _ = PRECISIONS[precision]
    keras.config.set_dtype_policy(policy)
    jax.config.update("jax_default_matmul_precision", products)


def functions(layer: Any, upstream: Any) -> tuple[Callable[..., Any], ...]:
    """Makes functions of weights and inputs: outputs with gradients, and outputs."""
    fixed = [variable.value for variable in layer.non_trainable_variables]

    def infer(weights: Any, x: Any, training: bool = False) -> Any:
        outputs, _ = layer.stateless_call(weights, fixed, x, training=training)
        return outputs.astype(upstream.dtype)

    def loss(weights: Any, x: Any) -> Any:
        outputs = infer(weights, x, training=True)
        return jnp.sum(outputs * upstream), outputs

    return jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True)), jax.jit(infer)


def evaluate(
    layer: Any, x: Any, upstream: Any, weights: Any, inference: bool = False
) -> dict[str, np.ndarray]:
    """Computes the outputs and gradients of a layer with some weights."""
    layer.build(x.shape)
    layer.cell.set_weights(weights)
    train, infer = functions(layer, upstream)
    trained = [variable.value for variable in layer.trainable_variables]
    (_, outputs), (to_weights, to_x) = train(trained, x)
    names = (variable.name for variable in layer.trainable_variables)
    found = dict(zip(names, to_weights, strict=True))
    found |= {"outputs": outputs, "inputs": to_x}
    if inference:
        found["inference"] = infer(trained, x)
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
    x = random.normal(size=(batch, steps, 1)).astype("float32")
    size = layer.compute_output_shape(x.shape)
    upstream = random.normal(size=size).astype("float32")

    with jax.default_device(jax.devices("cpu")[0]), jax.enable_x64(True):
        keras.config.set_dtype_policy("float64")
        x64, upstream64 = jnp.asarray(x, "float64"), jnp.asarray(upstream, "float64")
        loop = keras.layers.RNN(make_layer(name, n).cell)
        expected = evaluate(loop, x64, upstream64, weights)
    set_precision(precision)
    loop = keras.layers.RNN(make_layer(name, n).cell)
    ordinary = evaluate(loop, x, upstream, weights)
    found = evaluate(make_layer(name, n), x, upstream, weights, inference=True)
    for values in (expected, ordinary):
        values["inference"] = values["outputs"]
    unit = PRECISIONS[precision][-1]
    return {
        quantity: (
            distance(value, expected[quantity]),
            min(
                0.5, ALLOWED * (unit + distance(ordinary[quantity], expected[quantity]))
            ),
        )
        for quantity, value in found.items()
    }


def steps_of(name: str, precision: str, shape: Shape) -> measuring.Steps:
    """Makes the steps of a candidate."""
    n, steps, batch = shape
    kind, *others = name.split(", ")
    units = matched("LSTM", n) if "as many parameters" in others else n
    if kind == "torch LSTM":
        return measuring.torch_steps("LSTM", units, steps, batch, precision)
    if kind == "LSTM":
        layer = keras.layers.LSTM(units, use_cudnn="cuDNN" in others)
    else:
        layer = make_layer(name, n)
    layer.build((batch, steps, 1))
    x = jax.random.normal(jax.random.key(0), (batch, steps, 1))
    upstream = jnp.ones(layer.compute_output_shape(x.shape))
    weights = [variable.value for variable in layer.trainable_variables]
    train, infer = functions(layer, upstream)
    return (
        lambda: jax.block_until_ready(train(weights, x)),
        lambda: jax.block_until_ready(infer(weights, x)),
    )


def times(names: list[str], precision: str, shape: Shape, repeats: int) -> Any:
    """Measures candidates; returns their seconds, or why there are none."""
    set_precision(precision)
    found: dict[str, Any] = {}
    for name in names:
        make = functools.partial(steps_of, name, precision, shape)
        try:
            found |= measuring.measure({name: make}, repeats)
        except Exception as error:  # Such as a lack of memory; others are measured.
            found[name] = f"{type(error).__name__}: {error}".splitlines()[0][:100]
    return found


def main() -> None:
    """Runs the benchmark from the command line."""
    names = [*CHECKED, *PEERS]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    add = parser.add_argument
    add("--only", nargs="+", choices=names, default=names, metavar="NAME")
    add("--precision", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    add("--units", nargs="+", type=int, default=[128, 512], help="(128 512)")
    add("--steps", type=int, default=784, help="in a sequence (784)")
    add("--batch", type=int, default=128, help="sequences (128)")
    add("--repeats", type=int, default=10, help="of each step (10)")
    add("--out", type=Path, default=measuring.OUT)
    options = parser.parse_args()
    device = f"{jax.devices()[0].device_kind}, "

    rows, wrong = [], []
    for precision in options.precision:
        for name in (name for name in CHECKED if name in options.only):
            found = check(name, precision, options.units[0])
            for quantity, (error, allowed) in found.items():
                rows.append(
                    [name, precision, quantity, f"{error:.1e}", f"{allowed:.1e}"]
                )
                if not error <= allowed:
                    wrong.append(" ".join(rows[-1]))
    titles = ["layer", "precision", "quantity", "error", "allowed"]
    measuring.report(options.out / "gpu-check.md", titles, rows, device)
    if wrong:
        raise SystemExit("Nothing is measured:\n" + "\n".join(wrong))

    rows = []
    by_torch = [name for name in options.only if name.startswith("torch")]
    by_jax = [name for name in options.only if name not in by_torch]
    for n in options.units:
        for precision in options.precision:
            shape = (n, options.steps, options.batch)
            results: dict[str, Any] = {}
            for names in filter(None, (by_jax, by_torch)):
                arguments = (names, precision, shape, options.repeats)
                results |= measuring.apart(times, arguments)[0]
            for name in options.only:
                own = results[name]
                cells = [own, "", ""]
                if not isinstance(own, str):
                    cells = [f"{1e3 * own[kind]:.3g}" for kind in ("train", "infer")]
                    cells.append(f"{own['first']:.1f}")
                rows.append([name, *map(str, shape), precision, *cells])
    titles = ["layer", "n", "T", "B", "precision"]
    titles += ["training step, ms", "inference, ms", "first step, s"]
    measuring.report(options.out / "gpu-speed.md", titles, rows, device)


if __name__ == "__main__":
    main()
