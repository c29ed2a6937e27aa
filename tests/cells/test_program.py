"""What the compiled program holds: the kernel once, and no call to the host."""

from collections import Counter

import keras
import numpy as np
import pytest

from tests.cells.architectures import ARCHITECTURES

pytestmark = [
    pytest.mark.backends,
    pytest.mark.skipif(
        keras.backend.backend() == "torch", reason="PyTorch has no program to read"
    ),
    pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str),
]

FACTORIZATIONS = {
    # TensorFlow
    "BatchMatrixInverse",
    "Cholesky",
    "Lu",
    "MatrixInverse",
    "MatrixExponential",
    "MatrixSolve",
    "MatrixTriangularSolve",
    "Qr",
    "SelfAdjointEigV2",
    "Svd",
    # JAX
    "cholesky",
    "eig",
    "eigh",
    "householder_product",
    "lu",
    "qr",
    "schur",
    "svd",
    "triangular_solve",
}
HOST_CALLS = {
    "EagerPyFunc",
    "PyFunc",
    "PyFuncStateless",
    "debug_callback",
    "io_callback",
    "pure_callback",
}


# Loops, and what runs only where it is needed, such as ENRNN's search for an eigenpair
# that powers of the matrix do not give: its loops are none over time.
LOOPS = {"While", "StatelessWhile", "scan", "while"}
BRANCHES = {"If", "StatelessIf", "cond"}


def place_within(operation, place):
    """Where the operations stand that an operation holds."""
    if place == "outside" and operation in BRANCHES:
        return "where needed"
    return "inside" if place == "outside" and operation in LOOPS else place


def operations(program, model, x, y):
    """Counts the operations of a step, within loops and outside of them."""
    if keras.backend.backend() == "jax":
        return _jax_operations(program, model, x, y)
    return _tensorflow_operations(program, model, x, y)


def _tensorflow_operations(program, model, x, y):
    import tensorflow as tf

    x, y = tf.constant(x), tf.constant(y)
    if program == "training":
        function = tf.function(model.train_step).get_concrete_function((x, y))
    else:
        function = tf.function(lambda x: model(x)).get_concrete_function(x)
    graph = function.graph.as_graph_def()
    library = {f.signature.name: f for f in graph.library.function}
    counts = {"outside": Counter(), "inside": Counter(), "where needed": Counter()}

    def visit(nodes, place):
        for node in nodes:
            counts[place][node.op] += 1
            below = place_within(node.op, place)
            for attribute in node.attr.values():
                for name in [
                    attribute.func.name,
                    *(f.name for f in attribute.list.func),
                ]:
                    if name in library:
                        visit(library[name].node_def, below)

    visit(graph.node, "outside")
    return counts


def _jax_operations(program, model, x, y):
    import jax

    state = [
        [v.value for v in variables]
        for variables in (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
    ]
    if program == "training":
        traced = jax.make_jaxpr(model.train_step)(state, (x, y))
    else:
        traced = jax.make_jaxpr(model.stateless_call)(*state[:2], x)
    counts = {"outside": Counter(), "inside": Counter(), "where needed": Counter()}

    def visit(jaxpr, place):
        for equation in jaxpr.eqns:
            name = equation.primitive.name
            counts[place][name] += 1
            if name == "custom_linear_solve":
                continue  # With the factors of an `lu` that has been counted.
            below = place_within(name, place)
            for value in equation.params.values():
                visit_value(value, below)

    def visit_value(value, place):
        if hasattr(value, "jaxpr"):
            visit_value(value.jaxpr, place)
        elif hasattr(value, "eqns"):
            visit(value, place)
        elif isinstance(value, tuple | list):
            for item in value:
                visit_value(item, place)

    visit(traced.jaxpr, "outside")
    return counts


def compiled_model(*layers):
    model = keras.Sequential([keras.Input((12, 4)), *layers, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.optimizer.build(model.trainable_variables)
    x, y = np.zeros((2, 12, 4), "float32"), np.zeros((2, 1), "float32")
    if keras.backend.backend() == "jax":  # Which needs the metrics' variables, too.
        model.train_on_batch(x, y)
    return model, x, y


def factorizations(counts):
    return sum(counts["outside"][op] for op in FACTORIZATIONS)


class MatrixAlone(keras.layers.Layer):
    """Adds the norm of a recurrent matrix: no step is made with it."""

    def __init__(self, architecture):
        super().__init__()
        self.cell = architecture.cell(**architecture.arguments)

    def build(self, input_shape):
        self.cell.build(input_shape[::2])

    def call(self, inputs):
        return inputs[:, 0] + keras.ops.mean(self.cell.recurrent_matrix() ** 2)


def models(architecture):
    def cell():
        return architecture.cell(**architecture.arguments)

    def layer(**kwargs):
        return architecture.layer(**architecture.arguments, **kwargs)

    rnn = keras.layers.RNN
    return {
        "layer": ([layer()], 1),
        "stock": ([rnn(cell())], 1),
        "unrolled": ([rnn(cell(), unroll=True)], 1),
        "two layers": ([rnn(cell(), return_sequences=True), layer()], 2),
        "stacked cells": ([rnn([cell(), cell()])], 2),
        "bidirectional": ([keras.layers.Bidirectional(rnn(cell()))], 2),
        "time distributed": (
            [
                keras.layers.Reshape((1, 12, 4)),
                keras.layers.TimeDistributed(layer()),
                keras.layers.Reshape((-1,)),
            ],
            1,
        ),
        "dropout": ([layer(dropout=0.1, recurrent_dropout=0.1)], 1),
    }


# Whatever is around a layer, training holds what inference does.
@pytest.mark.parametrize(
    ("program", "name"),
    [("training", name) for name in models(ARCHITECTURES[0])]
    + [
        pytest.param(
            "inference",
            name,
            marks=[] if name in ("layer", "stock") else [pytest.mark.slow],
        )
        for name in models(ARCHITECTURES[0])
    ],
)
def test_kernel_is_made_once_and_outside_of_the_loop(architecture, name, program):
    layers, kernels = models(architecture)[name]
    counts = operations(program, *compiled_model(*layers))
    if name != "unrolled":
        loops = counts["outside"]
        # Forward, and backward, or this looked at no loop at all.
        found = sum(loops[op] for op in LOOPS)
        assert found >= (2 if program == "training" else 1)
    inside = FACTORIZATIONS | architecture.kernel_operations
    assert inside.isdisjoint(counts["inside"])
    each = architecture.num_factorizations
    if each is None:
        alone = operations(program, *compiled_model(MatrixAlone(architecture)))
        each = factorizations(alone)
    assert factorizations(counts) == kernels * each
    assert all(HOST_CALLS.isdisjoint(found) for found in counts.values())


def test_a_kernel_inside_the_loop_would_be_seen(architecture):
    """The test above can fail: a cell that makes its kernel at each step."""

    class Naive(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.cell = architecture.cell(**architecture.arguments)
            self.state_size = self.cell.state_size

        def build(self, input_shape):
            self.cell.build(input_shape)

        def call(self, inputs, states):
            return self.cell(inputs, states)

    # In training JAX moves what does not change from step to step out of the loop by
    # itself; in inference nobody does.
    counts = operations("inference", *compiled_model(keras.layers.RNN(Naive())))
    if not architecture.num_factorizations and not architecture.kernel_operations:
        pytest.skip("No operation is known by which the kernel is made")
    sought = FACTORIZATIONS | architecture.kernel_operations
    assert not sought.isdisjoint(counts["inside"])
