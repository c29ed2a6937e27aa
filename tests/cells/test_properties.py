"""Every layer, however it is built and called, against two other ways to compute it.

Drawn at random: the architecture's arguments, sizes, activation, masks, states and
modes, all in float64. The layer is held against Keras's `RNN` around the same cell,
with gradients, and against a loop in NumPy.

`make test` runs few cases, always the same; `make properties` runs 10 000 a backend.
`PROPERTY_CASES` is how many, at least, and `PROPERTY_SEED` which.
"""

import os

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies as st
from keras import ops

from tests.cells.oracle import LAYERS, ON_JAX, data, loop, structures

CASES = int(os.environ.get("PROPERTY_CASES", 0))
# Cases with one structure: what is traced or compiled serves all of them.
EACH = 25 if CASES else 3
MODES = ("eager", "graph", "graph", "xla") if CASES else ("eager", "eager", "graph")
if ON_JAX:  # Where each eager call would compile its loops anew.
    MODES = ("graph",)
STRUCTURES = -(-CASES // (EACH * len(LAYERS))) or 1
# Of the largest state or gradient: where complex units are nearly zero,
# rounding errors grow to some 1e-9 of it, and what is wrong is off by 1e-3 or more.
ALLOWED = 1e-7

pytestmark = [
    pytest.mark.backends,
    pytest.mark.usefixtures("cut_in_two"),
    pytest.mark.skipif(keras.backend.backend() == "torch", reason="traces no program"),
]


@pytest.mark.parametrize("architecture", LAYERS)
def test_layer_stock_and_loop(architecture):
    keras.backend.clear_session()
    if ON_JAX:  # Nor does it forget what it has compiled by itself.
        import jax

        jax.clear_caches()

    @hypothesis.settings(
        max_examples=STRUCTURES,
        database=None,
        deadline=None,
        # A case is small as it is, and to shrink it would build hundreds of layers.
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
        print_blob=False,
    )
    @hypothesis.given(
        structures(architecture, MODES), st.lists(data, min_size=EACH, max_size=EACH)
    )
    def holds(structure, cases):
        layer, stock = structure.make()
        trace = _traced_by_jax if ON_JAX else _traced_by_tensorflow
        evaluate = {each: trace(each, structure) for each in (layer, stock)}
        for case in cases:
            Trial(structure, case, layer.cell, evaluate).hold(layer, stock)

    # Another for each, or all would draw alike.
    chosen = int(os.environ.get("PROPERTY_SEED", 0)) * len(LAYERS)
    hypothesis.seed(chosen + list(LAYERS).index(architecture))(holds)()


def _value(layer, structure, differentiated, mask, coefficients):
    """The sum of the outputs times coefficients, and the outputs.

    With what Keras's loops do with a mask on some backends only.
    """
    x, *start = differentiated
    kwargs = {"initial_state": start} if start else {}
    kwargs |= {"mask": mask[0]} if mask else {}
    result = layer(x, training=structure.training, **kwargs)
    nested = structure.arguments["return_state"]
    outputs = list(result) if nested else [result]
    if not structure.unknown:
        told = layer.compute_output_shape(tuple(x.shape))
        assert [tuple(y.shape) for y in outputs] == (list(told) if nested else [told])
    if mask and type(layer) is keras.layers.RNN:
        (counts,) = mask
        counts = ops.flip(counts, axis=1) if layer.go_backwards else counts
        if not layer.zero_output_for_mask:
            counts = ops.cumsum(ops.cast(counts, "int32"), axis=1) > 0
        shown = counts[:, :, None] if layer.return_sequences else counts[:, -1:]
        outputs[0] = ops.where(shown, outputs[0], 0)
    both = zip(outputs, coefficients, strict=True)
    return sum(ops.sum(ops.cast(y, c.dtype) * c) for y, c in both), outputs


def _traced_by_tensorflow(layer, structure):
    """A function to outputs, and gradients of their sum, which is traced once."""
    import tensorflow as tf

    def compute(differentiated, *given):
        with tf.GradientTape() as tape:
            tape.watch(differentiated)
            value, outputs = _value(layer, structure, differentiated, *given)
        wanted = [v.value for v in layer.trainable_variables] + differentiated
        zero = tf.UnconnectedGradients.ZERO
        return outputs, tape.gradient(value, wanted, unconnected_gradients=zero)

    def spec(tensor):
        shape = list(tensor.shape)
        if structure.unknown:
            if shape[0] == structure.shape[0]:
                shape[0] = None
            if len(shape) == 3 or tensor.dtype == tf.bool:
                shape[1] = None
        return tf.TensorSpec(shape, tensor.dtype)

    function = tf.function(
        compute, jit_compile=structure.mode == "xla", autograph=False
    )

    def call(*given):
        tensors = tf.nest.map_structure(tf.constant, given)
        if structure.mode == "eager":
            return compute(*tensors)
        signature = tf.nest.map_structure(spec, tensors)
        return function.get_concrete_function(*signature)(*tensors)

    return call


def _traced_by_jax(layer, structure):
    """The same in one program, which returns the state of the layer as well."""
    import jax

    # Keras does not count the state of a layer among its weights.
    untrained = [*layer.non_trainable_variables, *(layer.states or [])]

    def compute(trained, differentiated, fixed, *given):
        variables = [*layer.trainable_variables, *untrained]
        mapping = list(zip(variables, [*trained, *fixed], strict=True))
        with keras.StatelessScope(state_mapping=mapping) as scope:
            value, outputs = _value(layer, structure, differentiated, *given)
            fixed = [scope.get_current_value(v) for v in untrained]
        return value, (outputs, fixed)

    gradient = jax.jit(jax.value_and_grad(compute, argnums=(0, 1), has_aux=True))

    def call(differentiated, *given):
        trained = [v.value for v in layer.trainable_variables]
        fixed = [v.value for v in untrained]
        (_, (outputs, fixed)), found = gradient(trained, differentiated, fixed, *given)
        for variable, value in zip(untrained, fixed, strict=True):
            variable.assign(value)
        return outputs, [*found[0], *found[1]]

    return call


class Trial:
    """One layer with one set of data."""

    def __init__(self, structure, case, cell, evaluate):
        self.structure, self.case, self.cell = structure, case, cell
        self.traced, self.arguments = evaluate, structure.arguments
        self.assign(case.weights(cell))
        self.values = {weight.name: numbers(weight) for weight in cell.weights}
        self.x, self.mask = case.inputs(structure), case.booleans(structure)
        self.way = slice(None, None, -1 if self.arguments["go_backwards"] else 1)
        self.flipped = None if self.mask is None else self.mask[:, self.way]
        drawn = case.state(structure, cell.state_size)
        self.state_shape = structure.shape[0], cell.state_size
        self.whole = np.array(np.broadcast_to(drawn, self.state_shape))
        self.start = [] if structure.start == "own" else [drawn]
        # Of the linear function of all outputs whose gradient is compared.
        batch, time, _ = structure.shape
        steps = (time,) if self.arguments["return_sequences"] else ()
        shapes = [(batch, *steps, cell.output_size)]
        shapes += [self.state_shape] * self.arguments["return_state"]
        random = case.random(4)
        self.coefficients = [random.normal(size=shape) for shape in shapes]

    def assign(self, values):
        for weight in self.cell.weights:
            weight.assign(values[weight.name])

    def evaluate(self, layer, start):
        """Outputs and gradients, from weights and state that no call has changed."""
        self.assign(self.values)
        if layer.stateful:
            layer.states[0].assign(self.whole)
            if getattr(layer, "has_begun", None) is not None:
                layer.has_begun.assign(True)
        mask = [] if self.mask is None else [self.mask]
        outputs, found = self.traced[layer]([self.x, *start], mask, self.coefficients)
        names = [v.name for v in layer.trainable_variables]
        names += ["inputs", *["start"] * len(start)]
        return outputs, dict(zip(names, map(numbers, found), strict=True))

    def loop(self):
        """The states that NumPy computes."""
        self.assign(self.values)
        matrix = numbers(self.cell.recurrent_matrix())
        start = self.whole
        if not (self.start or self.arguments["stateful"]):
            own = self.values.get("initial_state", 0.0)
            start = np.broadcast_to(own, self.state_shape)
        x, activation = self.x[:, self.way], self.structure.activation
        return loop(self.cell, activation, self.values, matrix, x, start, self.flipped)

    def shown(self, states):
        """What the layer returns of the states of a loop."""
        outputs, counts = states[..., : self.cell.output_size], self.flipped
        if counts is not None:
            if not self.arguments["zero_output_for_mask"]:
                # It repeats the output of the step before, zero where there was none.
                counts = np.cumsum(counts, axis=1) > 0
            outputs = np.where(counts[:, :, None], outputs, 0)
        output = outputs if self.arguments["return_sequences"] else outputs[:, -1]
        return [output] + [states[:, -1]] * self.arguments["return_state"]

    def hold(self, layer, stock):
        states = self.loop()
        size = max(1.0, np.abs(states).max())
        outputs, found = self.evaluate(layer, self.start)
        expected = self.shown(states) + [states[:, -1]] * layer.stateful
        everything = [*outputs, *(layer.states or [])]
        for k, (a, b) in enumerate(zip(everything, expected, strict=True)):
            compare(f"output {k}", a, b, ALLOWED * size)

        start = [self.whole] if self.start else []
        stock_outputs, stock_found = self.evaluate(stock, start)
        for k, (a, b) in enumerate(zip(outputs, stock_outputs, strict=True)):
            compare(f"stock output {k}", a, numbers(b), ALLOWED * size)
        if self.structure.start == "given to all":
            stock_found["start"] = stock_found["start"].sum(axis=0, keepdims=True)
        scale = size * max(np.abs(g).max(initial=1) for g in stock_found.values())
        assert found.keys() == stock_found.keys()
        for name, gradient in found.items():
            compare(f"gradient {name}", gradient, stock_found[name], ALLOWED * scale)


def numbers(values):
    """A tensor in float64."""
    return ops.convert_to_numpy(values).astype("float64")


def compare(what, found, expected, allowed):
    """Holds numbers to others."""
    found = numbers(found)
    assert found.shape == expected.shape, what
    error = np.abs(found - expected).max(initial=0)  # A NaN is not allowed, either.
    assert error <= allowed, f"{what}: {error}\nfound {found}\nexpected {expected}"
