"""What the compiled program holds: the kernel once, and no call to the host."""

from collections import Counter

import keras
import numpy as np
import pytest
from keras import layers

from tests.cells.architectures import ARCHITECTURES

pytestmark = [
    pytest.mark.backends,
    pytest.mark.skipif(
        keras.backend.backend() == "torch", reason="PyTorch has no program to read"
    ),
    pytest.mark.parametrize("architecture", ARCHITECTURES, ids=str),
]

# Of TensorFlow and of JAX.
FACTORIZATIONS = {
    *("BatchMatrixInverse", "Cholesky", "Lu", "MatrixInverse", "MatrixExponential"),
    *("MatrixSolve", "MatrixTriangularSolve", "Qr", "SelfAdjointEigV2", "Svd"),
    *("cholesky", "eig", "eigh", "householder_product", "lu", "qr", "schur", "svd"),
    "triangular_solve",
}
HOST_CALLS = {
    *("EagerPyFunc", "PyFunc", "PyFuncStateless"),
    *("debug_callback", "io_callback", "pure_callback"),
}
# Loops, and what runs only where it is needed, such as ENRNN's search for an eigenpair
# that powers of the matrix do not give: its loops are none over time.
LOOPS = {"While", "StatelessWhile", "scan", "while"}
BRANCHES = {"If", "StatelessIf", "cond"}


class Program:
    """The operations of a step, counted outside of loops, inside, or where needed."""

    def __init__(self, program, layer):
        self.counts = {place: Counter() for place in ("outside", "inside", "needed")}
        model = keras.Sequential([keras.Input((12, 4)), layer, layers.Dense(1)])
        model.compile("adam", "mse")
        model.optimizer.build(model.trainable_variables)
        x, y = np.zeros((2, 12, 4), "float32"), np.zeros((2, 1), "float32")
        read = {"jax": self._read_jax, "tensorflow": self._read_tensorflow}
        read[keras.backend.backend()](program, model, x, y)

    @property
    def num_factorizations(self):
        return sum(self.counts["outside"][name] for name in FACTORIZATIONS)

    def count(self, name, place):
        """Counts an operation, and returns the place of those that it holds."""
        self.counts[place][name] += 1
        if place != "outside":
            return place
        return "needed" if name in BRANCHES else "inside" if name in LOOPS else place

    def _read_tensorflow(self, program, model, x, y):
        import tensorflow as tf

        x, y = tf.constant(x), tf.constant(y)
        if program == "training":
            function = tf.function(model.train_step).get_concrete_function((x, y))
        else:
            function = tf.function(lambda x: model(x)).get_concrete_function(x)
        graph = function.graph.as_graph_def()
        library = {f.signature.name: f for f in graph.library.function}

        def visit(nodes, place):
            for node in nodes:
                below = self.count(node.op, place)
                for attribute in node.attr.values():
                    for held in [attribute.func, *attribute.list.func]:
                        if held.name in library:
                            visit(library[held.name].node_def, below)

        visit(graph.node, "outside")

    def _read_jax(self, program, model, x, y):
        import jax

        model.train_on_batch(x, y)  # Which makes the variables of the metrics.
        groups = [model.trainable_variables, model.non_trainable_variables]
        groups += [model.optimizer.variables, model.metrics_variables]
        state = [[v.value for v in variables] for variables in groups]
        if program == "training":
            traced = jax.make_jaxpr(model.train_step)(state, (x, y))
        else:
            traced = jax.make_jaxpr(model.stateless_call)(*state[:2], x)

        def visit(value, place):
            if hasattr(value, "jaxpr"):
                visit(value.jaxpr, place)
            elif hasattr(value, "eqns"):
                for equation in value.eqns:
                    below = self.count(equation.primitive.name, place)
                    # With the factors of an `lu` that has been counted.
                    if equation.primitive.name != "custom_linear_solve":
                        visit([*equation.params.values()], below)
            elif isinstance(value, tuple | list):
                for item in value:
                    visit(item, place)

        visit(traced.jaxpr, "outside")


class Naive(layers.Layer):
    """A cell that makes its kernel at each step."""

    def __init__(self, cell):
        super().__init__()
        self.cell, self.state_size = cell, cell.state_size

    def build(self, input_shape):
        self.cell.build(input_shape)

    def call(self, inputs, states):
        return self.cell(inputs, states)


def time_distributed(layer):
    around = [layers.TimeDistributed(layer), layers.Reshape((-1,))]
    return keras.Sequential([layers.Reshape((1, 12, 4)), *around])


# From functions that make a layer and a cell to what is around them, and the number of
# kernels.
AROUND = {
    "layer": (lambda layer, cell: layer(), 1),
    "stock": (lambda layer, cell: layers.RNN(cell()), 1),
    "unrolled": (lambda layer, cell: layers.RNN(cell(), unroll=True), 1),
    "stacked cells": (lambda layer, cell: layers.RNN([cell(), cell()]), 2),
    "bidirectional": (lambda layer, cell: layers.Bidirectional(layers.RNN(cell())), 2),
    "time distributed": (lambda layer, cell: time_distributed(layer()), 1),
    "dropout": (lambda layer, cell: layer(dropout=0.1, recurrent_dropout=0.1), 1),
}
# Whatever is around a layer, training holds what inference does.
CASES = [*(("training", name) for name in AROUND)]
CASES += [("inference", "layer"), ("inference", "stock")]


@pytest.mark.parametrize(("program", "name"), CASES)
def test_kernel_is_made_once_and_outside_of_the_loop(architecture, name, program):
    def cell():
        return architecture.cell(**architecture.arguments)

    def layer(**kwargs):
        return architecture.layer(**architecture.arguments, **kwargs)

    make, kernels = AROUND[name]
    found = Program(program, make(layer, cell))
    if name != "unrolled":
        # Forward, and backward, or this looked at no loop at all.
        num_loops = sum(found.counts["outside"][op] for op in LOOPS)
        assert num_loops >= (2 if program == "training" else 1)
    sought = FACTORIZATIONS | architecture.kernel_operations
    assert sought.isdisjoint(found.counts["inside"])
    each = architecture.num_factorizations
    assert each is None or found.num_factorizations == kernels * each
    assert all(HOST_CALLS.isdisjoint(counts) for counts in found.counts.values())
    is_known = architecture.num_factorizations or architecture.kernel_operations
    if is_known and (program, name) == ("inference", "stock"):
        # This test can fail. (In training JAX moves what does not change out of loops.)
        naive = Program(program, layers.RNN(Naive(cell())))
        assert not sought.isdisjoint(naive.counts["inside"])
