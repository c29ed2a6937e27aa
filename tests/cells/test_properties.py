"""Every layer, however it is built and called, against two other ways to compute it.

Drawn at random: the architecture's arguments, sizes, activation, masks, states, dtypes
and modes. The layer is held against Keras's `RNN` around the same cell, with gradients,
and against a loop in NumPy, with a gradient by differences along a random direction.

`make test` runs few cases, always the same; `make properties` runs 10 000 a backend.
`PROPERTY_CASES` is how many, at least, and `PROPERTY_SEED` which.

How far the results may be apart: a step sums up m + n products, adds and applies the
activation, which in the precision eps makes an error of (8 + (m + n) / 2) eps of the
largest number on the way; later steps lengthen it by at most the `condition` of the
loop; and T steps add up. In float64 that is below 1e-12, which is what is allowed.
"""

import os
from collections import defaultdict

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies as st

from tests.cells import loops
from tests.cells.cases import (
    LAYERS,
    ON_JAX,
    data,
    draw_inputs,
    draw_mask,
    draw_state,
    draw_weights,
    rounded,
    structures,
)
from tests.cells.evaluation import evaluation, numbers

CASES = int(os.environ.get("PROPERTY_CASES", 0))
# Cases with one structure: what is traced or compiled serves all of them.
EACH = 25 if CASES else 3
MODES = ("eager", "graph", "graph", "xla") if CASES else ("eager", "eager", "graph")
if ON_JAX:  # Where each eager call would compile its loops anew.
    MODES = ("graph",)
STRUCTURES = -(-CASES // (EACH * len(LAYERS))) or 1

pytestmark = [pytest.mark.backends, pytest.mark.usefixtures("cut_in_two")]

EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10}
EPS["bfloat16"] = 2.0**-7
# Whose square is a number still.
LARGEST = {"float64": 2.0**500, "float32": 2.0**60, "bfloat16": 2.0**60, "float16": 255}


class Report:
    """The number of cases, and the largest errors among them."""

    def __init__(self):
        self.cases = self.idle = 0
        self.worst = defaultdict(lambda: defaultdict(float))

    def compare(self, structure, kind, what, found, expected, scale, allowed):
        assert found.shape == expected.shape, what
        error = np.abs(found - expected).max(initial=0) / scale
        row = self.worst[structure.name, structure.dtype]
        row[kind] = max(row[kind], error)
        if not error <= allowed:  # A NaN is not, either.
            raise AssertionError(
                f"{kind} {what}: off by {error:.2g} of {scale:.2g}, {allowed:.2g} is "
                f"allowed\nfound {found}\nexpected {expected}"
            )


@pytest.fixture(scope="module")
def report():
    """Prints it after the long form."""
    report = Report()
    yield report
    if CASES:
        kinds = ("values", "gradients", "differences")
        print(
            f"\n{keras.backend.backend()}: {report.cases} cases, {report.idle} with "
            "nothing to compare; largest errors"
        )
        print(f"{'':26}", *(f"{kind:>12}" for kind in kinds))
        for (name, dtype), row in sorted(report.worst.items()):
            print(f"{name:17}{dtype:9}", *(f"{row[kind]:12.2g}" for kind in kinds))


def settings():
    return hypothesis.settings(
        max_examples=STRUCTURES,
        database=None,
        deadline=None,
        # A case is small as it is, and to shrink it would build hundreds of layers.
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
        print_blob=False,
    )


@pytest.mark.parametrize("architecture", LAYERS)
def test_layer_stock_and_loop(architecture, report):
    keras.backend.clear_session()
    if ON_JAX:  # Nor does it forget what it has compiled by itself.
        import jax

        jax.clear_caches()

    @settings()
    @hypothesis.given(
        structures(architecture, MODES), st.lists(data, min_size=EACH, max_size=EACH)
    )
    def holds(structure, cases):
        check(structure, cases, report)

    # Another for each, or all would draw alike.
    chosen = int(os.environ.get("PROPERTY_SEED", 0)) * len(LAYERS)
    holds = hypothesis.seed(chosen + list(LAYERS).index(architecture))(holds)
    holds()


def check(structure, cases, report):
    """Holds one layer to what it should compute, for each of some data."""
    report.cases += len(cases)
    if structure.fault:
        with pytest.raises(ValueError, match=f"`{structure.fault}.*Received: "):
            structure.make()
        return
    layer = structure.make()
    stock = structure.make_stock(layer)
    evaluate = {each: evaluation(each, structure) for each in (layer, stock)}
    for number, case in enumerate(cases):
        trial = Trial(structure, case, layer.cell, report)
        trial.hold(layer, stock, evaluate, along=number < 5)


class Trial:
    """One layer with one set of data."""

    def __init__(self, structure, case, cell, report):
        self.structure, self.case, self.cell = structure, case, cell
        self.report = report
        for name, value in draw_weights(cell, case).items():
            self.weight(name).assign(value)
        # As they are in the precision of the variables.
        self.values = {weight.name: numbers(weight) for weight in cell.weights}
        self.x, self.mask = draw_inputs(structure, case), draw_mask(structure, case)
        given_to_all = structure.start == "given to all"
        rows = 1 if given_to_all else structure.batch
        drawn = draw_state(structure, case, cell.state_size, rows)
        self.whole = np.array(np.broadcast_to(drawn, self.state_shape))
        self.start = [] if structure.start == "own" else [drawn]
        self.coefficients = draw_coefficients(structure, case, cell)

    @property
    def state_shape(self):
        return self.structure.batch, self.cell.state_size

    @property
    def carried(self):
        """Whether the state before the first step is `whole`."""
        return bool(self.start) or self.structure.stateful

    def weight(self, name):
        return next(w for w in self.cell.weights if w.name == name)

    def assign(self, values):
        for name, value in values.items():
            self.weight(name).assign(value)

    def evaluate(self, layer, function, start):
        """Outputs and gradients, from weights and state that no call has changed."""
        self.assign(self.values)
        if self.structure.stateful:
            layer.states[0].assign(self.whole)
        mask = [] if self.mask is None else [self.mask]
        return function(self.x, start, mask, self.coefficients)

    def loop(self, values, x, before, dtype):
        """The states that NumPy computes with numbers in a precision."""
        self.assign(values)
        way = slice(None, None, -1 if self.structure.go_backwards else 1)
        return loops.loop(
            self.structure.cell,
            {name: rounded(value, dtype) for name, value in values.items()},
            rounded(numbers(self.cell.recurrent_matrix()), dtype),
            rounded(x, dtype)[:, way],
            rounded(before, dtype),
            None if self.mask is None else self.mask[:, way],
        )

    def before(self, values):
        """The state before the first step."""
        if self.carried:
            return self.whole
        start = values.get("initial_state", 0.0)
        return np.broadcast_to(start, self.state_shape)

    def shown(self, loop):
        """What the layer returns of a loop."""
        structure, mask = self.structure, self.mask
        if mask is not None and structure.go_backwards:
            mask = mask[:, ::-1]
        outputs = loops.outputs(
            loop.states,
            mask,
            size=self.cell.output_size,
            zero_output_for_mask=structure.zero_output_for_mask,
        )
        output = outputs if structure.return_sequences else outputs[:, -1]
        return [output] + [loop.states[:, -1]] * structure.return_state

    def compare(self, kind, what, found, expected, scale, allowed):
        self.report.compare(
            self.structure, kind, what, numbers(found), expected, scale, allowed
        )

    def hold(self, layer, stock, evaluate, along):
        structure, cell = self.structure, self.cell
        dtype = structure.dtype
        loop = self.loop(self.values, self.x, self.before(self.values), dtype)
        terms = 8 + (structure.features + cell.state_size) / 2
        allowed = terms * EPS[dtype] * (structure.time + 1)
        if dtype == "float64":
            allowed = max(allowed, 1e-12)
        condition = loop.condition * kernel_condition(cell)
        allowed, size = allowed * condition, loop.size
        # Where numbers leave the range of the dtype, or any error could have grown to
        # all of the result, there is nothing to compare.
        if not (size < LARGEST[dtype] and allowed < 1):
            self.report.idle += 1
            return
        away = loop.margin > allowed * size

        outputs, found = self.evaluate(layer, evaluate[layer], self.start)
        expected = self.shown(loop)
        everything = list(outputs)
        if structure.stateful:
            everything.append(layer.states[0])
            expected.append(loop.states[:, -1])
        if away or not loops.ACTIVATIONS[structure.activation].jumps:
            for k, (a, b) in enumerate(zip(everything, expected, strict=True)):
                self.compare("values", k, a, b, size, allowed)
        if not away:
            return  # Beyond the bend the gradient is another, and as right.

        start = [self.whole] if self.start else []
        stock_outputs, stock_found = self.evaluate(stock, evaluate[stock], start)
        for k, (a, b) in enumerate(zip(outputs, stock_outputs, strict=True)):
            self.compare("values", (k, "stock"), a, numbers(b), size, allowed)
        found = {name: numbers(g) for name, g in found.items()}
        stock_found = {name: numbers(g) for name, g in stock_found.items()}
        if structure.start == "given to all":
            stock_found["start"] = stock_found["start"].sum(axis=0, keepdims=True)
        scale = size * max(np.abs(g).max(initial=1) for g in stock_found.values())
        assert found.keys() == stock_found.keys()
        for name, gradient in found.items():
            self.compare("gradients", name, gradient, stock_found[name], scale, allowed)
        if along and dtype == "float64":
            self.hold_along(found, scale * condition, loop)

    def hold_along(self, found, scale, loop):
        """The gradient along one direction, by differences of the loop in NumPy."""
        random = np.random.default_rng([self.case.seed, 5])
        directions = {name: random.normal(size=g.shape) for name, g in found.items()}

        def at(distance):
            def move(name, value):
                return value + distance * directions.get(name, 0.0)

            values = {name: move(name, value) for name, value in self.values.items()}
            before = move("start", self.before(values))
            return self.loop(values, move("inputs", self.x), before, "float64")

        size = 1e-5
        points = [at(k * size) for k in (-2, -1, 1, 2)]
        if not loops.same_sides([loop, *points]):
            return
        sums = [
            sum(
                np.sum(c * output)
                for c, output in zip(self.coefficients, self.shown(point), strict=True)
            )
            for point in points
        ]
        wide, narrow = (
            (sums[3] - sums[0]) / (4 * size),
            (sums[2] - sums[1]) / (2 * size),
        )
        along = sum(np.sum(g * directions[name]) for name, g in found.items())
        # Rounding of the sums, and the next term of the series: the wider one has four
        # times as much of it.
        allowed = 1e-8 + np.abs(wide - narrow) / scale
        self.compare("differences", "", along, np.asarray(narrow), scale, allowed)


def draw_coefficients(structure, case, cell):
    """Of the linear function of all outputs whose gradient is compared."""
    random = np.random.default_rng([case.seed, 4])
    batch, time = structure.batch, structure.time
    sequence = (batch, time) if structure.return_sequences else (batch,)
    shapes = [(*sequence, cell.output_size)]
    if structure.return_state:
        shapes.append((batch, cell.state_size))
    dtype = "float64" if structure.policy == "float64" else "float32"
    return [random.normal(size=shape).astype(dtype) for shape in shapes]


def kernel_condition(cell):
    """How much the map to `W` lengthens an error: the spectral radius can, by much."""
    if not hasattr(cell, "short_term_matrix"):
        return 1.0
    matrix = numbers(cell.short_term_matrix)
    eigenvalues, right = np.linalg.eig(matrix)
    first = np.argmax(np.abs(eigenvalues))
    left = np.linalg.inv(right)[first]
    of_eigenvalue = np.linalg.norm(left) * np.linalg.norm(right[:, first])
    others = np.delete(eigenvalues, first)
    others = others[np.abs(others - np.conj(eigenvalues[first])) > 0]
    gap = np.abs(np.abs(eigenvalues[first]) - np.abs(others)).min(initial=np.inf)
    norm = np.linalg.norm(matrix, 2)
    return (
        of_eigenvalue
        * max(1.0, norm / gap)
        * max(1.0, norm / np.abs(eigenvalues[first]))
    )
