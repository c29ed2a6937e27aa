"""The outputs of a recurrent layer and their gradients, traced once for many data."""

from collections.abc import Callable, Sequence
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
    evaluate = make[keras.backend.backend()](layer, structure, of_inputs)

    def call(x: Any, start: list, mask: list, coefficients: list) -> Any:
        outputs, found = evaluate(x, start, mask, coefficients)
        names = [v.name for v in layer.trainable_variables]
        names += ["inputs"] * of_inputs + ["start"] * len(start)
        return outputs, dict(zip(names, found, strict=True))

    return call


def _call(
    function: Callable[..., Any],
    layer: keras.layers.RNN,
    structure: Structure,
    *arguments: Any,
    **kwargs: Any,
) -> tuple[list[Any], Any]:
    """The outputs with what Keras's loops do with a mask on some backends only."""
    result = function(*arguments, training=structure.training, **kwargs)
    rest = None
    if function != layer:  # Of `stateless_call`.
        result, rest = result
    outputs = list(result) if structure.return_state else [result]
    if not structure.unknown[0] and not structure.unknown[1]:
        expected = layer.compute_output_shape(tuple(arguments[-1].shape))
        expected = list(expected) if structure.return_state else [expected]
        assert [tuple(output.shape) for output in outputs] == expected
    mask = kwargs.get("mask")
    if mask is not None and type(layer) is keras.layers.RNN:
        counts = ops.flip(mask, axis=1) if structure.go_backwards else mask
        if not structure.zero_output_for_mask:
            counts = ops.cumsum(ops.cast(counts, "int32"), axis=1) > 0
        shown = counts[:, :, None] if structure.return_sequences else counts[:, -1:]
        outputs[0] = ops.where(shown, outputs[0], 0)
    return outputs, rest


def _given(start: list, mask: list) -> dict[str, Any]:
    """The arguments of a call that are there."""
    given = {"initial_state": start} if start else {}
    return given | {"mask": mask[0]} if mask else given


def _value(outputs: Sequence[Any], coefficients: Sequence[Any]) -> Any:
    return sum(
        ops.sum(ops.cast(output, c.dtype) * c)
        for output, c in zip(outputs, coefficients, strict=True)
    )


def _tensorflow(
    layer: keras.layers.RNN, structure: Structure, of_inputs: bool
) -> Callable[..., Any]:
    import tensorflow as tf

    def compute(x: Any, start: list, mask: list, coefficients: list) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x] * of_inputs + start)
            kwargs = _given(start, mask)
            outputs, _ = _call(layer, layer, structure, x, **kwargs)
            value = _value(outputs, coefficients)
        wanted = [v.value for v in layer.trainable_variables] + [x] * of_inputs + start
        zero = tf.UnconnectedGradients.ZERO
        return outputs, tape.gradient(value, wanted, unconnected_gradients=zero)

    functions: dict[Any, Any] = {}

    def call(x: Any, start: list, mask: list, coefficients: list) -> Any:
        tensors = tf.nest.map_structure(tf.constant, (x, start, mask, coefficients))
        if structure.mode == "eager":
            return compute(*tensors)
        if not functions:
            signature = tf.nest.map_structure(lambda t: _spec(t, structure), tensors)
            functions[0] = tf.function(
                compute,
                input_signature=signature,
                jit_compile=structure.mode == "xla",
                autograph=False,
            )
        return functions[0](*tensors)

    return call


def _spec(tensor: Any, structure: Structure) -> Any:
    """Of a tensor whose axes of batch and time are not known, where they are not."""
    import tensorflow as tf

    shape = list(tensor.shape)
    if structure.unknown[0] and shape[0] == structure.batch:
        shape[0] = None
    if structure.unknown[1] and (len(shape) == 3 or tensor.dtype == tf.bool):
        shape[1] = None
    return tf.TensorSpec(shape, tensor.dtype)


def _torch(
    layer: keras.layers.RNN, structure: Structure, of_inputs: bool
) -> Callable[..., Any]:
    """In eager mode, whatever mode is wanted."""
    import torch

    def call(x: Any, start: list, mask: list, coefficients: list) -> Any:
        x = torch.as_tensor(x)
        start = [torch.as_tensor(state).requires_grad_() for state in start]
        mask = [torch.as_tensor(each) for each in mask]
        if of_inputs:
            x.requires_grad_()
        outputs, _ = _call(layer, layer, structure, x, **_given(start, mask))
        value = _value(outputs, [torch.as_tensor(c) for c in coefficients])
        wanted = [v.value for v in layer.trainable_variables] + [x] * of_inputs + start
        found = torch.autograd.grad(
            value, wanted, allow_unused=True, materialize_grads=True
        )
        return outputs, found

    return call


def _jax(
    layer: keras.layers.RNN, structure: Structure, of_inputs: bool
) -> Callable[..., Any]:
    import jax

    # Keras does not count the state of a layer among its weights.
    untrained = [*layer.non_trainable_variables, *(layer.states or [])]

    def scoped(trained: list, fixed: list, *arguments: Any, **kwargs: Any) -> Any:
        """As `stateless_call`, with the state of the layer."""
        variables = [*layer.trainable_variables, *untrained]
        mapping = list(zip(variables, [*trained, *fixed], strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            outputs = layer(*arguments, **kwargs)
            return outputs, [scope.get_current_value(v) for v in untrained]

    call_layer = scoped if structure.stateful else layer.stateless_call

    def compute(
        trained: list, x: Any, start: list, fixed: list, mask: list, coefficients: list
    ) -> Any:
        kwargs = _given(start, mask)
        outputs, fixed = _call(
            call_layer, layer, structure, trained, fixed, x, **kwargs
        )
        return _value(outputs, coefficients), (outputs, fixed)

    places = (0, 1, 2) if of_inputs else (0, 2)
    gradient = jax.value_and_grad(compute, argnums=places, has_aux=True)
    gradient = gradient if structure.mode == "eager" else jax.jit(gradient)

    def call(x: Any, start: list, mask: list, coefficients: list) -> Any:
        x = jax.numpy.asarray(x)
        trained = [v.value for v in layer.trainable_variables]
        fixed = [v.value for v in untrained]
        (_, (outputs, fixed)), found = gradient(
            trained, x, start, fixed, mask, coefficients
        )
        for variable, value in zip(untrained, fixed, strict=True):
            variable.assign(value)
        trained, *others = found
        to_x = others[:1] if of_inputs else []
        return outputs, [*trained, *to_x, *others[-1]]

    return call


def numbers(values: Any) -> np.ndarray:
    """A tensor in float64."""
    return ops.convert_to_numpy(values).astype("float64")
