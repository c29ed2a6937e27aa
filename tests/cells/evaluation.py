"""The outputs of a recurrent layer and their gradients, traced once for many data."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from tests.cells.cases import Structure

Evaluation = Callable[..., tuple[list[Any], dict[str, Any]]]


def evaluation(layer: keras.layers.RNN, structure: Structure) -> Evaluation:
    """A function of `x, start, mask, coefficients`.

    `start` and `mask` are lists of one, or empty; `coefficients` are as many as
    outputs. It returns the outputs, and the gradients of the sum of their products
    with the coefficients: for each weight, `"inputs"` (where they are of the layer's
    own dtype) and `"start"` (where there is one). It changes a stateful layer's state.
    """
    of_inputs = structure.inputs is None
    make = {"jax": _jax, "tensorflow": _tensorflow, "torch": _torch}
    evaluate = make[keras.backend.backend()](layer, structure)

    def call(x: Any, start: list, mask: list, coefficients: list) -> Any:
        differentiated = [x] * of_inputs + start
        outputs, found = evaluate(differentiated, x, mask, coefficients)
        names = [v.name for v in layer.trainable_variables]
        names += ["inputs"] * of_inputs + ["start"] * len(start)
        return outputs, dict(zip(names, found, strict=True))

    return call


def _call(
    layer: keras.layers.RNN,
    structure: Structure,
    differentiated: list,
    x: Any,
    mask: list,
    coefficients: list,
) -> tuple[Any, list[Any]]:
    """The sum of the products, and the outputs.

    With what Keras's loops do with a mask on some backends only.
    """
    start = differentiated
    if structure.inputs is None:
        x, *start = differentiated
    kwargs = {"initial_state": start} if start else {}
    kwargs |= {"mask": mask[0]} if mask else {}
    result = layer(x, training=structure.training, **kwargs)
    nested = structure.arguments["return_state"]
    outputs = list(result) if nested else [result]
    if not structure.unknown:
        expected = layer.compute_output_shape(tuple(x.shape))
        expected = list(expected) if nested else [expected]
        assert [tuple(output.shape) for output in outputs] == expected
    if mask and type(layer) is keras.layers.RNN:
        (counts,) = mask
        counts = ops.flip(counts, axis=1) if layer.go_backwards else counts
        if not layer.zero_output_for_mask:
            counts = ops.cumsum(ops.cast(counts, "int32"), axis=1) > 0
        shown = counts[:, :, None] if layer.return_sequences else counts[:, -1:]
        outputs[0] = ops.where(shown, outputs[0], 0)
    products = [
        ops.sum(ops.cast(output, c.dtype) * c)
        for output, c in zip(outputs, coefficients, strict=True)
    ]
    return sum(products), outputs


def _tensorflow(layer: keras.layers.RNN, structure: Structure) -> Callable[..., Any]:
    import tensorflow as tf

    def compute(differentiated: list, *arguments: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(differentiated)
            value, outputs = _call(layer, structure, differentiated, *arguments)
        wanted = [v.value for v in layer.trainable_variables] + differentiated
        zero = tf.UnconnectedGradients.ZERO
        return outputs, tape.gradient(value, wanted, unconnected_gradients=zero)

    def spec(tensor: Any) -> Any:
        shape = list(tensor.shape)
        if structure.unknown:
            if shape[0] == structure.shape[0]:
                shape[0] = None
            if len(shape) == 3 or tensor.dtype == tf.bool:
                shape[1] = None
        return tf.TensorSpec(shape, tensor.dtype)

    functions: dict[Any, Any] = {}

    def call(*arguments: Any) -> Any:
        tensors = tf.nest.map_structure(tf.constant, arguments)
        if structure.mode == "eager":
            return compute(*tensors)
        if not functions:
            functions[0] = tf.function(
                compute,
                input_signature=tf.nest.map_structure(spec, tensors),
                jit_compile=structure.mode == "xla",
                autograph=False,
            )
        return functions[0](*tensors)

    return call


def _torch(layer: keras.layers.RNN, structure: Structure) -> Callable[..., Any]:
    """In eager mode, whatever mode is wanted."""
    import torch

    def call(differentiated: list, x: Any, mask: list, coefficients: list) -> Any:
        differentiated = [torch.as_tensor(v).requires_grad_() for v in differentiated]
        mask, coefficients = (
            [torch.as_tensor(each) for each in given] for given in (mask, coefficients)
        )
        x = torch.as_tensor(x)
        value, outputs = _call(layer, structure, differentiated, x, mask, coefficients)
        wanted = [v.value for v in layer.trainable_variables] + differentiated
        options = {"allow_unused": True, "materialize_grads": True}
        return outputs, torch.autograd.grad(value, wanted, **options)

    return call


def _jax(layer: keras.layers.RNN, structure: Structure) -> Callable[..., Any]:
    """In one program, whatever mode is wanted."""
    import jax

    # Keras does not count the state of a layer among its weights.
    untrained = [*layer.non_trainable_variables, *(layer.states or [])]

    def compute(trained: list, differentiated: list, fixed: list, *given: Any) -> Any:
        variables = [*layer.trainable_variables, *untrained]
        mapping = list(zip(variables, [*trained, *fixed], strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            value, outputs = _call(layer, structure, differentiated, *given)
            fixed = [scope.get_current_value(v) for v in untrained]
        return value, (outputs, fixed)

    gradient = jax.jit(jax.value_and_grad(compute, argnums=(0, 1), has_aux=True))

    def call(differentiated: list, *given: Any) -> Any:
        trained, fixed = (
            [v.value for v in variables]
            for variables in (layer.trainable_variables, untrained)
        )
        (_, (outputs, fixed)), found = gradient(trained, differentiated, fixed, *given)
        for variable, value in zip(untrained, fixed, strict=True):
            variable.assign(value)
        return outputs, [*found[0], *found[1]]

    return call


def numbers(values: Any) -> np.ndarray:
    """A tensor in float64."""
    return ops.convert_to_numpy(values).astype("float64")
