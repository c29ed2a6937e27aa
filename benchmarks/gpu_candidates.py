"""Candidates of `gpu.py`: precompiled JAX steps with data on the device."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import keras
from candidates import floor_steps, matched, network
from gpu_names import CUDNN, LAYER_NAMES, PRECISIONS, TORCH
from jax import numpy as jnp
from layers import expression, make_layer
from shapes import Shape, data
from torch_candidates import torch_steps

from keras_ortho.optimizers import group_of, paper_optimizer

MIB = 2**20


class NotMeasuredError(Exception):
    """Raised if a candidate cannot be measured here; the message says why."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A candidate to measure.

    Attributes:
        steps: By kind, `"train"` and `"infer"`, a function that returns when its
            computation is complete, or `None`.
        about: Facts known before the steps run, such as parameters and compile time.
        programs: By kind, the compiled program, if JAX compiled it.
    """

    steps: dict[str, Callable[[], Any] | None]
    about: dict[str, Any]
    programs: dict[str, Any] = dataclasses.field(default_factory=dict)


def set_precision(precision: str) -> None:
    """Sets the precision of Keras and JAX to one of `PRECISIONS`."""
    policy, products = PRECISIONS[precision]
    keras.config.set_dtype_policy(policy)
    jax.config.update("jax_default_matmul_precision", products)


def make(name: str, shape: Shape, precision: str) -> Candidate:
    """Makes a candidate."""
    base, _, equal = name.partition(", equal")
    kind = base.removeprefix("torch ").removesuffix(", cuDNN")
    cell = {"RNN": "SimpleRNN"}.get(kind, kind)
    units = matched(cell, shape.units) if equal else shape.units
    own = dataclasses.replace(shape, units=units)
    if name in TORCH:
        kind = kind.removeprefix("RNN, ")
        train, infer = torch_steps(own, kind, precision, resident=True)
        return Candidate({"train": train, "infer": infer}, {"own_units": units})
    if name == "matrix products":
        dtype = keras.config.dtype_policy().compute_dtype
        train, infer = floor_steps(shape, dtype=dtype)
        return Candidate({"train": train, "infer": infer}, {})
    if name in LAYER_NAMES:
        layer = make_layer(name, shape.units)
        about = {"made_by": expression(name, shape.units)}
        return _of_layer(layer, shape, about)
    if name in CUDNN:
        if jax.default_backend() != "gpu":
            raise NotMeasuredError("needs a GPU")
        if precision == "bfloat16":
            raise NotMeasuredError("`jax.experimental.rnn` computes in float32 only")
    # By default, Keras uses cuDNN's LSTM on a GPU.
    arguments = {"use_cudnn": name in CUDNN} if cell == "LSTM" else {}
    layer = getattr(keras.layers, cell)(units, **arguments)
    found = _of_layer(layer, shape, {"own_units": units})
    # If cuDNN's is unavailable, Keras silently falls back to its own loop.
    if name in CUDNN and "dnn_rnn" not in found.programs["infer"].as_text():
        raise NotMeasuredError("Keras has not compiled its LSTM to cuDNN's")
    return found


def compiled(
    function: Callable[..., Any], *arguments: Any, donate: tuple[int, ...] = ()
) -> tuple[Any, dict[str, float]]:
    """Compiles a function for given arguments, and measures the time."""
    start = time.perf_counter()
    lowered = jax.jit(function, donate_argnums=donate).lower(*arguments)
    traced = time.perf_counter()
    program = lowered.compile()
    seconds = {"trace": traced - start, "compile": time.perf_counter() - traced}
    return program, seconds


def _of_layer(
    layer: keras.layers.Layer, shape: Shape, about: dict[str, Any]
) -> Candidate:
    """Makes the candidate for a network with a Keras layer."""
    model = network(layer, shape)
    variables = model.trainable_variables
    # If the optimizer keeps a matrix unitary, that work belongs to the step.
    kept = "unitary" in map(group_of, variables)
    optimizer = paper_optimizer() if kept else keras.optimizers.Adam()
    optimizer.build(variables)
    x, y = map(jax.device_put, data(shape))

    def loss(trained: Any, fixed: Any, x: Any, y: Any) -> tuple[Any, Any]:
        outputs, fixed = model.stateless_call(trained, fixed, x, training=True)
        return jnp.mean((outputs.astype(y.dtype) - y) ** 2), fixed

    def train(state: Any, x: Any, y: Any) -> tuple[Any, Any]:
        trained, fixed, own = state
        (value, fixed), gradients = jax.value_and_grad(loss, has_aux=True)(
            trained, fixed, x, y
        )
        trained, own = optimizer.stateless_apply(own, gradients, trained)
        return (trained, fixed, own), value

    def infer(trained: Any, fixed: Any, x: Any) -> Any:
        return model.stateless_call(trained, fixed, x, training=False)[0]

    groups = (variables, model.non_trainable_variables, optimizer.variables)
    # Copies, because a training step overwrites its arguments.
    state = tuple([jnp.array(v.value) for v in group] for group in groups)
    holder = [state]
    train_program, seconds = compiled(train, state, x, y, donate=(0,))
    infer_program, others = compiled(infer, *state[:2], x)

    def train_once() -> None:
        holder[0], value = train_program(holder[0], x, y)
        jax.block_until_ready((holder[0], value))

    return Candidate(
        {
            "train": train_once,
            "infer": lambda: jax.block_until_ready(infer_program(*holder[0][:2], x)),
        },
        about
        | {"parameters": layer.count_params()}
        | seconds
        | {"compile_infer": sum(others.values())}
        | _planned(train_program),
        {"train": train_program, "infer": infer_program},
    )


def kernel_candidate(name: str, units: int) -> Candidate:
    """Makes the candidate for a recurrent matrix, which a step computes once."""
    layer = make_layer(name, units)
    layer.build((1, 1, 1))
    cell = layer.cell
    trained, fixed = (
        [jnp.array(v.value) for v in group]
        for group in (cell.trainable_variables, cell.non_trainable_variables)
    )

    def matrix(trained: Any, fixed: Any) -> Any:
        mapping = zip(cell.trainable_variables, trained, strict=True)
        others = zip(cell.non_trainable_variables, fixed, strict=True)
        with keras.StatelessScope(state_mapping=[*mapping, *others]):
            return cell.step_kernel()

    def gradient(trained: Any, fixed: Any, upstream: Any) -> Any:
        return jax.grad(lambda t: jnp.sum(matrix(t, fixed) * upstream))(trained)

    shape = jax.eval_shape(matrix, trained, fixed)
    upstream = jax.random.normal(jax.random.key(0), shape.shape, shape.dtype)
    train, seconds = compiled(gradient, trained, fixed, upstream)
    infer, _ = compiled(matrix, trained, fixed)
    return Candidate(
        {
            "train": lambda: jax.block_until_ready(train(trained, fixed, upstream)),
            "infer": lambda: jax.block_until_ready(infer(trained, fixed)),
        },
        {"made_by": expression(name, units)} | seconds | _planned(train),
        {"train": train, "infer": infer},
    )


def _planned(program: Any) -> dict[str, float]:
    """Returns the temporary memory that XLA plans, without arguments and results."""
    analysis = program.memory_analysis()
    if analysis is None:  # Unavailable on some platforms.
        return {}
    return {"temporary_mib": analysis.temp_size_in_bytes / MIB}
